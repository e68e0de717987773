"""Cold starts: stages, floors and first requests in fresh processes."""
