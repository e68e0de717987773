"""Simulator and planner: cold starts and costs of traffic, before anything is deployed."""
