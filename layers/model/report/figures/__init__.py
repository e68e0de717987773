"""Figures of a report: scores, intervals, calibration, confusion, coverage and comparisons."""
