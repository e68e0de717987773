"""Command line of coldframe, with emulator, planner, deployment checks and batch work."""
