"""Passes shared across requests: the scheduler beside fixed delays, none, and other servers."""
