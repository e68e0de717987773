"""Where the parts of a project are, for the commands that use them."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from coldframe.errors import BundleMissing
from coldframe.model.files import built_models, no_such_model, served_models

_PACKAGES = Path(__file__).resolve().parents[1]  # the folder that this package is imported from
_SOURCES = ("layers/shared/python", "layers/model", "functions", "local", "bench")
_CHECKOUT = _PACKAGES.parent
IS_CHECKOUT = (_CHECKOUT / _SOURCES[0]).is_dir()
"""Whether this is the repository of Coldframe, rather than an installed wheel."""
ROOT = _CHECKOUT if IS_CHECKOUT else Path.cwd()
"""The project: the repository of Coldframe, or, with an installed wheel, the current folder."""
MODELS = ROOT / "models"  # what `coldframe build` and `coldframe train` make
EXAMPLE = "topics"  # the model that comes with the project
# Environments beside the one that serves: `make build`, `make .venv-sam/stamp` and so on set them up.
BUILD_PYTHON = ROOT / ".venv-build" / "bin" / "python" if IS_CHECKOUT else Path(sys.executable)
SAM_PYTHON = ROOT / ".venv-sam" / "bin" / "python"
SPARK_PYTHON = ROOT / ".venv-spark" / "bin" / "python"


_SHIPPED = {
    "data/tickets.csv": "layers/model/examples/tickets/tickets.csv",
    "offline.asl.json": "functions/offline.asl.json",
}
"""Files of the repository that a wheel has in `coldframe_local/shipped`, by their names there."""


def shipped_file(name: str) -> Path:
    """A file that is part of the release, such as "offline.asl.json"."""
    return ROOT / _SHIPPED[name] if IS_CHECKOUT else Path(__file__).parent / "shipped" / name


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
    """PYTHONPATH for our packages: those of the checkout at `root`, or the installed ones."""
    folders = [root / folder for folder in _SOURCES] if IS_CHECKOUT else [_PACKAGES]
    return os.pathsep.join(map(str, folders))


def build_environ() -> dict[str, str]:
    """For BUILD_PYTHON, where the package is not installed: this process's variables, and where it is.

    Threads of OpenMP that wait leave the processor to others: on a busy machine, spinning made boosting ten
    times slower.
    """
    return {"OMP_WAIT_POLICY": "PASSIVE"} | os.environ | {"PYTHONPATH": python_path()}
