"""API Gateway: HTTP requests to events of both payload formats, and results to answers."""
