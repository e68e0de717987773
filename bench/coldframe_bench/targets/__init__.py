"""Benchmark targets: processes, containers, peers and stores that fail on demand."""
