"""Trains heads, centroids and estimator, evaluates them, and checks the served model."""
