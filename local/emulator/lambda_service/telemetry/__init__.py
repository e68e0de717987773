"""Telemetry of functions: log lines, reports, metrics and recordings."""
