"""Targets of benchmarks: processes, containers, peers and stores that fail on demand."""
