"""Template checks: properties that AWS would refuse or that lose events."""
