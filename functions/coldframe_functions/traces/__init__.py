"""Function that forwards spans from log lines to CloudWatch or to a collector."""
