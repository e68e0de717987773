"""API Gateway: HTTP requests to events in both payload formats, and results to answers."""
