"""Where the parts of the repository are, for the commands that use them."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUNDLE = ROOT / "layers" / "model" / "bundle"
# Environments beside the one that serves: `make build` and `make .venv-sam/stamp` set them up.
BUILD_PYTHON = ROOT / ".venv-build" / "bin" / "python"
SAM_PYTHON = ROOT / ".venv-sam" / "bin" / "python"


def model_dir() -> Path:
    """The folder of the model bundle: COLDFRAME_MODEL_DIR, else where `coldframe build` writes it."""
    return Path(os.environ.get("COLDFRAME_MODEL_DIR") or BUNDLE)


def python_path(root: Path = ROOT) -> str:
    """PYTHONPATH for the modules of the tree at `root`, the package among them."""
    return f"{root}{os.pathsep}{root / 'layers' / 'shared' / 'python'}"


def build_environ() -> dict[str, str]:
    """For BUILD_PYTHON, where the package is not installed: this process's variables, and where it is."""
    return os.environ | {"PYTHONPATH": python_path()}
