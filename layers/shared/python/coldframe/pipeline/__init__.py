"""Pipeline of one request: cache, estimator, encoder, heads and answers."""
