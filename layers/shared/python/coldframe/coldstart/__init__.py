"""Start of an environment: early loading, imports and pings."""
