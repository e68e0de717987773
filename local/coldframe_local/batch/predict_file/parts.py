"""Answers that are computed already, part by part, beside the file that is to be written.

A part's name is the digest of all that its answers depend on: the texts, the model's version, the heads. So a
run that was killed is continued by the same command, and what changed in between is computed again.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyarrow import ipc

from coldframe_local.batch.predict_file.errors import BadFile

_LAYOUT = "layout 1"  # of a part's columns


class Parts(NamedTuple):
    """The folder of a run's parts, and what the answers in it depend on beside the texts."""

    folder: Path
    version: str
    heads: Sequence[str]

    def path(self, texts: Sequence[str | None]) -> Path:
        """Where the answers of these texts are, or will be."""
        digest = hashlib.blake2b(digest_size=16)
        for value in (_LAYOUT, self.version, ",".join(self.heads), *texts):
            encoded = b"" if value is None else value.encode()
            # No two lists share a byte string; null is not the empty text.
            digest.update((0 if value is None else len(encoded) + 1).to_bytes(8, "big"))
            digest.update(encoded)
        return self.folder / f"{digest.hexdigest()}.arrow"


@contextmanager
def parts_folder(out: Path) -> Iterator[Path]:
    """The folder beside `out`; removed when the block ends well. Raises BadFile when another run has it."""
    folder = out.with_name(f".{out.name}.parts")
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadFile(f"Another run writes {out}. Wait for it, or name another --out.") from None
        yield folder
        shutil.rmtree(folder)


def write_part(path: Path, answers: pa.Table) -> None:
    """Writes a part as a whole, or not at all."""
    aside = path.with_suffix(f".{os.getpid()}")
    with ipc.new_file(aside, answers.schema) as writer:
        writer.write_table(answers)
    aside.replace(path)


def read_part(path: Path) -> pa.Table:
    """The answers of a part."""
    with ipc.open_file(path) as reader:
        return reader.read_all()
