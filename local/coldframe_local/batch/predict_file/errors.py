"""Errors of files with texts."""

from coldframe.errors import ColdframeError


class BadFile(ColdframeError):
    """A file cannot be read or written. The message has row numbers and column names, never a text."""


class Stopped(ColdframeError):
    """A run ended before its end. What it has computed is kept for the next run."""
