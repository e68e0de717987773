"""Where the parts of the model are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TRAINED = ROOT / "layers" / "model" / "heads"  # committed: what training on the newsgroups made
CALIBRATION = ROOT / "layers" / "model" / "encoder" / "calibration.json"  # committed: ranges of the encoder
GOLDEN_VECTORS = ROOT / "layers" / "model" / "encoder" / "golden.json"  # committed: the encoder's own check
OWN_TEXTS = ROOT / "layers" / "model" / "encoder" / "texts.txt"  # committed: for other encoders
BUNDLE = ROOT / "layers" / "model" / "bundle"  # built, ignored by git
MODELS = ROOT / "models"  # trained on users' own tables, ignored by git
CACHE = ROOT / ".cache"  # downloads and embeddings, ignored by git
METRICS = "metrics.json"  # in a folder of trained heads
FACTS = "estimator.json"  # beside it
