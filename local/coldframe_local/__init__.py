"""Coldframe's command line, with emulator, planner, deployment checks and batch work."""
