"""The image for a GPU: what it weighs, and what of it is whose."""

import json
from dataclasses import dataclass

from bench.records.tables import table
from bench.targets.container import docker

_LARGEST = 8

# Bytes of files by what they belong to, and the largest files.
_WEIGH = """
import json, os, pathlib
owners, files = {}, {}
for root in ("/opt/python", "/opt/model"):
    for path in pathlib.Path(root).rglob("*"):
        if path.is_file() and not path.is_symlink():
            parts = path.relative_to(root).parts
            owner = f"{root}/{parts[0]}"
            size = path.stat().st_size
            owners[owner] = owners.get(owner, 0) + size
            files[str(path)] = size
print(json.dumps({"owners": owners, "files": files}))
"""


@dataclass(frozen=True)
class Weights:
    """Bytes of an image, of what we put into it by owner, and of every file of ours."""

    image_bytes: int
    owners: dict[str, int]
    files: dict[str, int]

    @property
    def ours_bytes(self) -> int:
        return sum(self.owners.values())


def weigh(image: str) -> Weights:
    """Content of an image, as its own interpreter finds it."""
    [facts] = json.loads(docker("image", "inspect", image))
    report = json.loads(docker("run", "--rm", "--network=none", "--entrypoint=python3", image, "-c", _WEIGH))
    return Weights(facts["Size"], report["owners"], report["files"])


def run(image: str) -> None:
    """Prints the table."""
    print(weights_table(weigh(image)), end="")


def weights_table(weights: Weights) -> str:
    """Megabytes of the image, of its largest parts and its largest files."""
    rows = [["image", _mb(weights.image_bytes)], ["above its base", _mb(weights.ours_bytes)]]
    for group in (weights.owners, weights.files):
        largest = sorted(group, key=group.__getitem__, reverse=True)[:_LARGEST]
        rows += [[f"`{name}`", _mb(group[name])] for name in largest]
    return table(["what", "MB"], rows)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.1f}"
