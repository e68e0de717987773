"""Warming policies under a trace: the contest, the replay and the demand."""
