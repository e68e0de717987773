"""Where the parts of the model are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HEADS = ROOT / "layers" / "model" / "heads"  # committed: what training made
BUNDLE = ROOT / "layers" / "model" / "bundle"  # built, ignored by git
CACHE = ROOT / ".cache"  # downloads and embeddings, ignored by git
CALIBRATION = HEADS / "calibration.json"
METRICS = HEADS / "metrics.json"
