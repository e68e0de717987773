"""Warming: forecasts how many environments the traffic needs, by the standard library alone."""
