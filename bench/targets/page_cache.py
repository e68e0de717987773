"""Taking files out of the page cache, so that the next process reads them from storage."""

import os
from collections.abc import Iterable


def can_drop() -> bool:
    """Whether this system has posix_fadvise; macOS has not."""
    return hasattr(os, "posix_fadvise")


def drop(files: Iterable[str]) -> None:
    """Asks the kernel to drop its cached pages of these files; that needs no privileges.

    Pages that another process has mapped stay. Changed pages would stay, too, so they are written first.
    """
    os.sync()
    for name in files:
        descriptor = os.open(name, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
