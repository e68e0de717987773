"""Passes that requests in many threads share: a server's threads and clocks, around the scheduling."""
