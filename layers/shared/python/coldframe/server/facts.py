"""What a home of the server has to know: port, routes, exit codes. Imports the standard library only."""

DEFAULT_PORT = 8080
PORT = "PORT"
"""The variable with the port, as Knative and most platforms name it."""

LIVE = "/v2/health/live"
"""200 from the first moment to the last; 503 once a device's thread has ended with an error."""
READY = "/v2/health/ready"
"""200 once every golden vector has passed, 503 before, and again from the signal on that ends the server."""
HEALTH = "/healthz"
"""As READY, with the versions that are served."""
PROBES = (LIVE, READY, HEALTH)
"""Routes that a platform asks: they need no token."""
METRICS = "/metrics"
"""Prometheus' text format."""

DRAINED = 0
"""Every request that was accepted has its answer."""
FAILED = 1
"""It could not start; or a request that was accepted had no answer when the grace was over."""

UID, GID = 993, 990
"""Of the image's user, who owns no file."""
HEALTH_COMMAND = ("python3", "-m", "coldframe.server.health")
"""Whether the server in this container is ready, for homes whose health check is a command."""
