"""A report's figures: scores, intervals, calibration, confusion, coverage and comparisons."""
