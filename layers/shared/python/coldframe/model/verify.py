"""`coldframe verify`: is this bundle what was built, and does it compute what it should here?"""

from dataclasses import dataclass
from pathlib import Path

from coldframe.model.bundle import check_files, load_golden, load_manifest
from coldframe.model.encoder import Encoder, check_golden
from coldframe.model.estimator import Estimator
from coldframe.model.heads import load_head
from coldframe.model.tokenizer import TextWindows


@dataclass(frozen=True)
class VerifyReport:
    """What was checked, all of it good."""

    version: str
    files: int
    golden: int
    lowest_cosine: float


def verify_bundle(folder: Path) -> VerifyReport:
    """Checks digests, heads and golden vectors. Raises a BundleError naming what is wrong."""
    manifest = load_manifest(folder)
    check_files(folder, manifest)
    for name in manifest.heads:
        load_head(folder, name)
    Estimator(folder, manifest.estimator)
    golden = load_golden(folder)
    windows = TextWindows(folder, manifest.encoder)
    windows.load()
    lowest = check_golden(Encoder(folder, manifest.encoder, threads=1), windows, golden)
    return VerifyReport(manifest.version, len(manifest.files), len(golden.vectors), lowest)
