"""Facts for platforms that run the server: port, routes, exit codes. Imports the standard library only."""

DEFAULT_PORT = 8080
PORT = "PORT"
"""The variable with the port, as Knative and most platforms name it."""

HTTP_ENDPOINT = "AWS_LAMBDA_HTTP_ENDPOINT"
"""The variable with host and port, as web functions of Lambda name it: `0.0.0.0:3000`."""

LIVE = "/v2/health/live"
"""200 from start to end; 503 once a device's thread has ended with an error."""
READY = "/v2/health/ready"
"""200 once every golden vector has passed, 503 before, and again after the signal that ends the server."""
HEALTH = "/healthz"
"""Like READY, with the versions that are served."""
PROBES = (LIVE, READY, HEALTH)
"""Routes for a platform's checks: they need no token."""
METRICS = "/metrics"
"""Prometheus' text format."""

DRAINED = 0
"""Exit code: every accepted request was answered."""
FAILED = 1
"""Exit code: the server could not start, or left an accepted request unanswered at the end of its grace."""

UID, GID = 993, 990
"""User of the image, who owns no file."""
HEALTH_COMMAND = ("python3", "-m", "coldframe.server.health")
"""Whether the server in this container is ready, for platforms whose health check is a command."""
