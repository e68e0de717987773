"""Exchanges two folders in one step, so that a name always has a folder."""

import ctypes
import errno
import os
import sys
from pathlib import Path

_HERE = -2 if sys.platform == "darwin" else -100  # AT_FDCWD: paths are relative to the working directory
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
_CALLS = ("renameat2", "renameatx_np")


class CannotExchange(OSError):
    """This system, or this disk, cannot exchange two names in one step."""


def exchange(one: Path, other: Path) -> None:
    """Each name then has the other's folder; at no moment is a name missing.

    Raises CannotExchange where the system lacks such a call, OSError when it fails.
    Source: renameat2(2), RENAME_EXCHANGE, Linux 3.15; renamex_np(2), RENAME_SWAP, macOS 10.12.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    call = next((getattr(libc, name) for name in _CALLS if hasattr(libc, name)), None)
    if call is None:
        raise CannotExchange(errno.ENOSYS, os.strerror(errno.ENOSYS), str(one))
    if call(_HERE, os.fsencode(one), _HERE, os.fsencode(other), ctypes.c_uint(_EXCHANGE)):
        number = ctypes.get_errno()
        is_unable = number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
        raise (CannotExchange if is_unable else OSError)(number, os.strerror(number), str(one))
