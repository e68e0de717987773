"""A value that takes long to make: made once, in the background or by whoever needs it first."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """Nobody ever sees a value half made: it is handed out once `make` has returned."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: list[T] = []
        self._error: Exception | None = None
        self._timer: threading.Timer | None = None

    @property
    def is_made(self) -> bool:
        """Whether `get` returns at once."""
        return bool(self._made)

    def get(self) -> T:
        """The value; waits until it is made, by a thread or here. Raises what `make` raised."""
        if not self._made:
            with self._lock:
                self._make_once()
        return self._made[0]

    def start(self, delay_s: float = 0.0) -> None:
        """Has a thread make it, after a delay, unless that is done or under way."""
        if self._timer is None and not self._made and self._error is None:
            self._timer = threading.Timer(delay_s, self._try)
            self._timer.daemon = True  # no reason to keep a process that wants to end
            self._timer.start()

    def _make_once(self) -> None:
        if self._error is not None:
            raise self._error.with_traceback(None)
        if not self._made:
            try:
                self._made.append(self._make())
            except Exception as exc:
                self._error = exc
                raise

    def _try(self) -> None:
        """What goes wrong in the thread is told to whoever needs the value."""
        try:
            self.get()
        except Exception:  # kept by _make_once
            return
