"""Monitoring: sketches of answers, drift, and accuracy estimated with few labels or none."""
