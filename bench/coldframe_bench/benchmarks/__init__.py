"""Benchmarks: each measures one question, and writes raw lines."""
