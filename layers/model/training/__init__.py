"""Training of heads, centroids and estimator, their evaluation, and the check of what is served."""
