"""Checks before a deployment, and platforms for the server outside Lambda."""
