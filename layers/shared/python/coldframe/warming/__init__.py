"""Warming: forecasts of how many environments the traffic needs, by the standard library alone."""
