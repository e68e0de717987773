"""Texts and traffic mixes that benchmarks send."""
