"""Checks before a deployment, and what the server costs outside Lambda."""
