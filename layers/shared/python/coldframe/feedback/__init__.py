"""Feedback: ids of answers, right labels that come later, and the table that keeps these."""
