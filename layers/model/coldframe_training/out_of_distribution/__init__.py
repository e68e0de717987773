"""Scores for texts that a model was not trained for, and the texts that measure these scores."""
