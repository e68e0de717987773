"""An environment's own folder for temporary files: as close to Lambda's /tmp as an ordinary user gets.

Lambda's /tmp belongs to one environment. Here /tmp itself stays the machine's, because another one would
need a mount of its own, which takes rights that a developer's machine need not give, and would hide
whatever of the function lies below /tmp. So the environment's TMPDIR, where Python's `tempfile` and most
libraries write, is a folder of its own that is removed with it. A path written out as "/tmp/…" is shared
and stays, and the size (EphemeralStorage) is not limited.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path


class ScratchFolder:
    """Made when it is first needed, kept until `remove`."""

    def __init__(self) -> None:
        self._path: Path | None = None

    def path(self) -> Path:
        """Where it is. Raises OSError when it cannot be made."""
        if self._path is None:
            self._path = Path(tempfile.mkdtemp(prefix="coldframe-"))
        return self._path

    def remove(self) -> None:
        """Removes it with all that was written."""
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            self._path = None
