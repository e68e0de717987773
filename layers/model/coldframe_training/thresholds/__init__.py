"""Estimator outputs on the training rows, and the thresholds that are chosen from them."""
