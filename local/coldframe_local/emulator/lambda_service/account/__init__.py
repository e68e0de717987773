"""An account's functions: versions, aliases, concurrency and invocations."""
