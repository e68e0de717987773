"""Cold starts: stages, floors and first requests of fresh processes."""
