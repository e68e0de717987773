"""Files that an environment has used so far; `bench check image` runs this inside its container.

Prints a JSON object: bytes by file that is mapped into memory, and the bytes of all files that were
read. Mapped are the pages that were touched, in the kernel's steps of 64 KB: neither how much a disk
reads ahead nor what was in memory before makes a difference.
"""

import json
import re
from pathlib import Path

RUNTIME = "/var/runtime/bootstrap"
"""In the command line of the process that AWS's base images run functions in."""


def main() -> None:
    """Prints what the runtime's process has touched and read."""
    [process] = [folder for folder in Path("/proc").glob("[0-9]*") if _is_runtime(folder)]
    counters = dict(line.split(": ") for line in (process / "io").read_text().splitlines())
    print(json.dumps({"mapped": _mapped(process / "smaps"), "read": int(counters["rchar"])}))


def _is_runtime(folder: Path) -> bool:
    words = (folder / "cmdline").read_bytes().split(b"\0")
    return b"python" in words[0] and any(word.startswith(RUNTIME.encode()) for word in words[1:])


def _mapped(smaps: Path) -> dict[str, int]:
    """Bytes in memory by mapped file. Each mapping is one line with its path, then lines of `Name: value`."""
    sizes: dict[str, int] = {}
    path = ""
    for line in smaps.read_text().splitlines():
        if mapping := re.match(r"\S+-\S+ \S+ \S+ \S+ \d+\s*(.*)", line):
            path = mapping[1]
        elif line.startswith("Rss:") and path.startswith("/"):
            sizes[path] = sizes.get(path, 0) + int(line.split()[1]) * 1024
    return sizes


if __name__ == "__main__":
    main()
