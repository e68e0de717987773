"""Paths, JSON files, progress and errors that every step of a build uses."""
