"""Execution environments: processes, their Runtime API, memory, CPU and snapshots."""
