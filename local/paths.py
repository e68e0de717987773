"""Where the parts of the repository are, for the commands that use them."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUNDLE = ROOT / "layers" / "model" / "bundle"


def model_dir() -> Path:
    """The folder of the model bundle: COLDFRAME_MODEL_DIR, else where `coldframe build` writes it."""
    return Path(os.environ.get("COLDFRAME_MODEL_DIR") or BUNDLE)
