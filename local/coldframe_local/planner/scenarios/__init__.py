"""Scenarios: one configuration under one trace, with its times and its bill."""
