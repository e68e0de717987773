"""Where the parts of the repository are, for the commands that use them."""

import os
from pathlib import Path

from coldframe.errors import BundleMissing
from coldframe.model.files import MANIFEST

ROOT = Path(__file__).resolve().parent.parent
BUNDLE = ROOT / "layers" / "model" / "bundle"
MODELS = ROOT / "models"  # what `coldframe train` makes
# Environments beside the one that serves: `make build` and `make .venv-sam/stamp` set them up.
BUILD_PYTHON = ROOT / ".venv-build" / "bin" / "python"
SAM_PYTHON = ROOT / ".venv-sam" / "bin" / "python"


def model_dir() -> Path:
    """The folder of the model bundle: COLDFRAME_MODEL_DIR, else where `coldframe build` writes it."""
    return Path(os.environ.get("COLDFRAME_MODEL_DIR") or BUNDLE)


def named_model(name: str) -> Path:
    """The folder of a model that `coldframe train --name` made. Raises BundleMissing, which lists them."""
    folder = MODELS / name
    if (folder / MANIFEST).exists():
        return folder
    found = sorted(path.parent.name for path in MODELS.glob(f"[!.]*/{MANIFEST}"))
    known = f"Models: {', '.join(found)}" if found else "There are none yet"
    raise BundleMissing(f"{MODELS} has no model {name!r}. {known}. `coldframe train --name` makes one.")


def python_path(root: Path = ROOT) -> str:
    """PYTHONPATH for the modules of the tree at `root`, the package among them."""
    return f"{root}{os.pathsep}{root / 'layers' / 'shared' / 'python'}"


def build_environ() -> dict[str, str]:
    """For BUILD_PYTHON, where the package is not installed: this process's variables, and where it is.

    Threads of OpenMP that wait leave the processor to others: on a busy machine, spinning made boosting ten
    times slower.
    """
    return {"OMP_WAIT_POLICY": "PASSIVE"} | os.environ | {"PYTHONPATH": python_path()}
