"""Errors of a template, or of a part that this machine does not have."""

from __future__ import annotations

from coldframe.errors import ColdframeError


class TemplateError(ColdframeError):
    """A template that cannot be used; the text says what was found, expected and what to do."""


class NotKnown(TemplateError):
    """A value that exists on AWS alone. What uses it is left out and named; the rest runs.

    why: the text without the place.
    """

    def __init__(self, why: str, where: str = "") -> None:
        super().__init__(f"{where}: {why}." if where else why)
        self.why = why


class NotRunnable(TemplateError):
    """A part of a template that is right, but has nothing to run it on this machine: it is left out."""
