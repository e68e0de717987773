"""Function telemetry: log lines, reports, metrics and recordings."""
