"""Functions of an account: versions, aliases, concurrency and invocations."""
