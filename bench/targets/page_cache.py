"""Taking files out of the page cache, so that the next process reads them from storage."""

import os
from collections.abc import Iterable


def can_drop() -> bool:
    """Whether this system has posix_fadvise; macOS has not."""
    return hasattr(os, "posix_fadvise")


def drop(files: Iterable[str]) -> None:
    """Asks the kernel to forget its copies. Needs no rights; what another process has mapped stays.

    Changed pages are written first, as they would stay too.
    """
    os.sync()
    for name in files:
        descriptor = os.open(name, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
