"""Simulator and planner: cold starts and costs for given traffic, before anything is deployed."""
