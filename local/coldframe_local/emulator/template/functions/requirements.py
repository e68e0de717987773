"""Requirements of a function that are not installed where it would look for them."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path

# The name that a requirement begins with: https://packaging.python.org/en/latest/specifications/dependency-specifiers/
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_UNREAD = re.compile(r"://|;")


def not_importable(file: Path, folders: Sequence[Path]) -> list[str]:
    """Distributions that a requirements.txt names, and that neither `folders` nor this interpreter have.

    Empty for a file that is not there. Options of pip, addresses and lines with a condition are left out.
    """
    try:
        text = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    lines = (line.partition("#")[0].strip() for line in text)
    names = [match[0] for line in lines if (match := _NAME.match(line)) and not _UNREAD.search(line)]
    if not names:
        return []
    path = [*map(str, folders), *sys.path]
    installed = {_normal(each.metadata["Name"]) for each in distributions(path=path) if each.metadata["Name"]}
    return [name for name in names if _normal(name) not in installed]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
