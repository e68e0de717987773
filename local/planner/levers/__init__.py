"""Levers: configurations that the planner tries, and the prediction of their effect."""
