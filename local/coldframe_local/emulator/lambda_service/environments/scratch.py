"""Folders for temporary files: each environment's own is as close to Lambda's /tmp as an ordinary user gets.

Lambda's /tmp belongs to one environment. Here /tmp itself stays the machine's, because another one would
need a mount of its own, which takes rights that a developer's machine need not give, and would hide
whatever of the function lies below /tmp. So the environment's TMPDIR, where Python's `tempfile` and most
libraries write, is a folder of its own that is removed with it. A path written out as "/tmp/…" is shared
and stays, and the size (EphemeralStorage) is not limited.

These folders are in one folder of the emulator's process, which goes when the process ends. A process that is
killed leaves its folder behind, and the next emulator removes it. What tells such a folder from one in use is
a lock: the system gives it back when its process ends, however that ends. A process id would not do, because
the system gives ids out again.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import itertools
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "coldframe-"
_LOCK = ".emulator"
_numbers = itertools.count()


class ScratchFolder:
    """Made when it is first needed, kept until `remove`."""

    def __init__(self) -> None:
        self._path: Path | None = None

    def path(self) -> Path:
        """Where it is. Raises OSError when it cannot be made."""
        if self._path is None:
            self._path = new_folder()
        return self._path

    def remove(self) -> None:
        """Removes it with all that was written."""
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            self._path = None


def new_folder() -> Path:
    """An empty folder, which goes with this process at the latest. Raises OSError when it cannot be made."""
    if not _process_folder().is_dir():  # somebody tidied up the directory for temporary files
        _process_folder.cache_clear()
    # A number is short: a function may put a socket here, and a socket's path has about a hundred bytes.
    folder = _process_folder() / str(next(_numbers))
    folder.mkdir()
    return folder


def remove_leftovers() -> None:
    """Removes the folders of this user's processes that were killed. What cannot be removed stays."""
    with contextlib.suppress(OSError):  # there is no directory for temporary files
        for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            _remove_if_left(folder)


@functools.cache
def _process_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # a file system without locks: nobody removes what is left
        unlocked = folder / f"{_LOCK}.new"
        # Stays open as long as this process lives; the processes that it starts do not inherit it.
        fcntl.flock(os.open(unlocked, os.O_CREAT | os.O_RDONLY, 0o600), fcntl.LOCK_EX)
        unlocked.rename(folder / _LOCK)  # last, so that no other process ever finds it without its lock
    return folder


def _remove_if_left(folder: Path) -> None:
    # OSError: it is not a folder of this kind, or its process lives and has the lock.
    with contextlib.suppress(OSError):
        if folder.lstat().st_uid == os.geteuid():
            with (folder / _LOCK).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
