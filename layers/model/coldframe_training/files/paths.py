"""Where the parts of the model are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TRAINED = (
    ROOT / "layers" / "model" / "coldframe_training" / "heads"
)  # committed: what training on the newsgroups made
CALIBRATION = (
    ROOT / "layers" / "model" / "coldframe_training" / "encoder" / "calibration.json"
)  # committed: ranges of the encoder
GOLDEN_VECTORS = (
    ROOT / "layers" / "model" / "coldframe_training" / "encoder" / "golden.json"
)  # committed: the encoder's own check
OWN_TEXTS = (
    ROOT / "layers" / "model" / "coldframe_training" / "encoder" / "texts.txt"
)  # committed: for other encoders
MODELS = ROOT / "models"  # encoders and models that are built or trained here, ignored by git
DEFAULT_ENCODER = "minilm-l6-v2"
EXAMPLE = "topics"  # the model of the newsgroups
CACHE = ROOT / ".cache"  # downloads and embeddings, ignored by git
METRICS = "metrics.json"  # in a folder of trained heads
FACTS = "estimator.json"  # beside it
