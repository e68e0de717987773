"""Warming policies on a trace: published ones and ours, their costs, and the first weights for ours."""
