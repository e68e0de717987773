"""Environment start: early loading, imports and pings."""
