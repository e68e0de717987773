"""Where the parts of the repository are, for the commands that use them."""

import os
from collections.abc import Iterable
from pathlib import Path

from coldframe.errors import BundleMissing
from coldframe.model.files import built_models, no_such_model, served_models

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
    """The setting of the models to serve, COLDFRAME_MODELS; empty: all in the folder."""
    return os.environ.get("COLDFRAME_MODELS", "")


def default_model() -> str:
    """The name of the model that answers requests that name none. Raises BundleMissing."""
    return served_models(model_dir(), models())[0]


def check_served(setting: str) -> None:
    """Raises BundleMissing unless every model to serve is built, and one of them is the default.

    setting: the models to serve, as COLDFRAME_MODELS has them.
    """
    check_built(served_models(model_dir(), setting))


def check_built(names: Iterable[str]) -> None:
    """Raises BundleMissing for the first name without a model, and lists the built models."""
    built = built_models(model_dir())
    for name in names:
        if name not in built:
            raise BundleMissing(no_such_model(model_dir(), name))


def python_path(root: Path = ROOT) -> str:
    """PYTHONPATH for the modules of the tree at `root`, the package among them."""
    return f"{root}{os.pathsep}{root / 'layers' / 'shared' / 'python'}"


def build_environ() -> dict[str, str]:
    """For BUILD_PYTHON, where the package is not installed: this process's variables, and where it is.

    Threads of OpenMP that wait leave the processor to others: on a busy machine, spinning made boosting ten
    times slower.
    """
    return {"OMP_WAIT_POLICY": "PASSIVE"} | os.environ | {"PYTHONPATH": python_path()}
