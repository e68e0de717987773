"""Digests without OpenSSL: `hashlib` loads it, which takes milliseconds of a cold start."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # `typing` is imported later
if TYPE_CHECKING:
    from hashlib import blake2b, sha256
elif sys.version_info >= (3, 12):
    from _blake2 import blake2b

    from _sha2 import sha256
else:
    from _blake2 import blake2b
    from _sha256 import sha256

__all__ = ["blake2b", "sha256"]
