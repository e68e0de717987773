"""Where the parts of the model are."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_CHECKOUT = _PACKAGE.parents[2]
ROOT = _CHECKOUT if (_CHECKOUT / "layers" / "shared").is_dir() else Path.cwd()
"""The project: the repository of Coldframe, or, with an installed wheel, the current folder."""
TRAINED = _PACKAGE / "heads"  # committed: what training on the newsgroups made
CALIBRATION = _PACKAGE / "encoder" / "calibration.json"  # committed: ranges of the encoder
GOLDEN_VECTORS = _PACKAGE / "encoder" / "golden.json"  # committed: the encoder's own check
OWN_TEXTS = _PACKAGE / "encoder" / "texts.txt"  # committed: for other encoders
MODELS = ROOT / "models"  # encoders and models that are built or trained here, ignored by git
DEFAULT_ENCODER = "minilm-l6-v2"
EXAMPLE = "topics"  # the model of the newsgroups
CACHE = ROOT / ".cache"  # downloads and embeddings, ignored by git
METRICS = "metrics.json"  # in a folder of trained heads
FACTS = "estimator.json"  # beside it
