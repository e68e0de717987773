"""Checks before a deployment, and homes of the server outside of Lambda."""
