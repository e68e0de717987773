"""A value that takes long to make: made once, in the background or by whoever needs it first."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_MAX_ATTEMPTS = 3


class LazyValue(Generic[T]):
    """Hands out one value, which `make` returns when it is first needed. Safe for threads.

    EMPTY   Nothing is made yet. `start` has a thread call `make`; `get` calls it itself.
            `make` returns -> MADE; `make` raises -> FAILED
    MADE    Every `get` returns the value, at once and without a lock.
    FAILED  The latest attempt raised. What went wrong may have been of that moment, so the next
            `get` calls `make` again, also a `get` that was waiting for the attempt that failed.
            `make` returns -> MADE; `make` raises for the third time -> BROKEN
    BROKEN  Every `get` raises the latest error at once: no request pays for a further attempt.

    One thread at a time calls `make`; the others wait for its outcome.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._making = threading.Lock()
        self._started = threading.Lock()  # held for good by the one `start` that made a thread
        self._made: list[T] = []
        self._attempts = 0
        self._error: Exception | None = None

    @property
    def is_made(self) -> bool:
        """Whether `get` returns at once."""
        return bool(self._made)

    def get(self) -> T:
        """The value; waits until it is made, by a thread or here. Raises what `make` raised."""
        if not self._made:
            with self._making:
                self._make_once()
        return self._made[0]

    def start(self, delay_s: float = 0.0) -> None:
        """Has a thread make the value after a delay, unless a thread or `get` has tried."""
        if not self._attempts and self._started.acquire(blocking=False):
            timer = threading.Timer(delay_s, self._try)
            timer.daemon = True  # no reason to keep a process that wants to end
            timer.start()

    def _make_once(self) -> None:
        if self._made:
            return
        if self._error is not None and self._attempts >= _MAX_ATTEMPTS:
            raise self._error.with_traceback(None)
        self._attempts += 1
        try:
            self._made.append(self._make())
        except Exception as exc:
            self._error = exc
            raise

    def _try(self) -> None:
        """The thread's attempt. Its error is kept: who needs the value makes an attempt of their own."""
        try:
            self.get()
        except Exception:  # kept by _make_once
            return
