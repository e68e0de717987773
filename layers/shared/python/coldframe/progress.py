"""Progress of long work on standard error: a bar on a terminal, lines anywhere else. It needs tqdm."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast, overload

from tqdm import tqdm

T = TypeVar("T")

_LINES_S = 5.0
_MOVE_UP = "\x1b[A"


if TYPE_CHECKING:

    class _Bar(tqdm[T]):
        """tqdm has type parameters in its stubs only."""

else:

    class _Bar(tqdm, Generic[T]):
        """A bar of tqdm over items of one type."""


class Progress(_Bar[T]):
    """Progress of a loop, or of the phases of long work; takes the arguments of tqdm.

    Without a terminal it writes lines instead of a bar: none in the first five seconds, and then at most one
    every five. The name of a new phase (`set_postfix_str`) is a line at once.
    """

    @overload
    def __init__(self, iterable: Iterable[T], **options: Any) -> None: ...

    @overload
    def __init__(self: Progress[NoReturn], iterable: None = None, **options: Any) -> None: ...

    def __init__(self, iterable: Iterable[T] | None = None, **options: Any) -> None:
        self._is_bar = sys.stderr.isatty()
        if not self._is_bar:
            # miniters: tqdm's estimate of a line's worth of items would be late when the work becomes slower.
            options |= {"file": _Lines(), "mininterval": _LINES_S, "delay": _LINES_S, "miniters": 1}
            options |= {"leave": False}
        super().__init__(cast(Iterable[T], iterable), **options)

    def __str__(self) -> str:
        if self._is_bar:
            return str(super().__str__())
        values = self.format_dict
        count = f"{values['n']:,}" + (f" of {values['total']:,}" if values["total"] else "")
        parts = (values["postfix"], f"{count} {values['unit']}s" if values["n"] else "")
        text = ", ".join(part for part in parts if part)
        return f"{values['prefix'] or 'progress'}: {text} ({self.format_interval(values['elapsed'])})"


class _Lines:
    """Standard error as a file of lines: what tqdm writes to redraw a bar is left out."""

    def write(self, text: str) -> None:
        line = text.replace(_MOVE_UP, "").strip()
        if line:
            print(line, file=sys.stderr, flush=True)

    def flush(self) -> None:
        sys.stderr.flush()


def announce(phase: str) -> None:
    """Write a line on standard error: a phase of long work begins. A bar stays below it."""
    tqdm.write(phase, file=sys.stderr)
