"""Traces: arrivals from tables, logs, CloudWatch or a formula."""
