"""Passes that requests share: the scheduler beside fixed delays, none, and other servers."""
