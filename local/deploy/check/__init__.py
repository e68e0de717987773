"""Checks of a template: properties that AWS would refuse or that lose events."""
