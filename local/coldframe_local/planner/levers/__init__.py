"""Levers: configurations that the planner tries, and their predicted effect."""
