"""Telemetry of requests: their trace context, metrics in their log lines, and spans made of these lines."""
