"""Where the parts of the repository are, for the commands that use them."""

import os
from collections.abc import Iterable
from pathlib import Path

from coldframe.errors import BundleMissing
from coldframe.model.files import built_models

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "models"  # what `coldframe build` and `coldframe train` make
EXAMPLE = "topics"  # the model that comes with the project
# Environments beside the one that serves: `make build`, `make .venv-sam/stamp` and so on set them up.
BUILD_PYTHON = ROOT / ".venv-build" / "bin" / "python"
SAM_PYTHON = ROOT / ".venv-sam" / "bin" / "python"
SPARK_PYTHON = ROOT / ".venv-spark" / "bin" / "python"


def model_dir() -> Path:
    """The folder of encoders and models: COLDFRAME_MODEL_DIR, else where `coldframe build` writes them."""
    return Path(os.environ.get("COLDFRAME_MODEL_DIR") or MODELS)


def models() -> str:
    """The setting of the models to serve: COLDFRAME_MODELS, else the example."""
    return os.environ.get("COLDFRAME_MODELS") or EXAMPLE


def default_model() -> str:
    """The name of the model that answers requests that name none."""
    return models().partition(",")[0].strip()


def check_built(names: Iterable[str]) -> None:
    """Raises BundleMissing for the first name of no model, and lists those that are built."""
    built = built_models(model_dir())
    for name in names:
        if name not in built:
            known = f"Models: {', '.join(built)}" if built else "There are none yet"
            raise BundleMissing(
                f"{model_dir()} has no model {name!r}. {known}. `coldframe train --name` makes one,"
                " `coldframe build` makes the example."
            )


def python_path(root: Path = ROOT) -> str:
    """PYTHONPATH for the modules of the tree at `root`, the package among them."""
    return f"{root}{os.pathsep}{root / 'layers' / 'shared' / 'python'}"


def build_environ() -> dict[str, str]:
    """For BUILD_PYTHON, where the package is not installed: this process's variables, and where it is.

    Threads of OpenMP that wait leave the processor to others: on a busy machine, spinning made boosting ten
    times slower.
    """
    return {"OMP_WAIT_POLICY": "PASSIVE"} | os.environ | {"PYTHONPATH": python_path()}
