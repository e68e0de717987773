"""Paths, JSON files, progress and errors that every build step uses."""
