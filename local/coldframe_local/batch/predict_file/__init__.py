"""Predictions for the rows of a file: read, answered in parts by all cores, written in order."""
