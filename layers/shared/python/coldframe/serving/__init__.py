"""Passes that requests of many threads share: threads and clocks of a server, around the scheduling."""
