"""Experiments: arms for the same requests, their evidence at every look, and the decisions that follow."""
