"""Pipeline for one request: cache, estimator, encoder, heads and answers."""
