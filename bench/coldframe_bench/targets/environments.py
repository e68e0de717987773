"""Virtual environments of peers: one for each, installed once, and their sizes."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from coldframe.errors import ColdframeError
from coldframe_local.paths import BUILD_PYTHON, ROOT, build_environ

PEERS = ROOT / "bench" / "peers"
ENVIRONMENTS = ROOT / ".venv-peers"
PEERS_MODEL = ROOT / ".cache" / "peers"
_TORCH = "torch==2.13.0"
_LIMIT_S = 600


class PeersMissing(ColdframeError):
    """The environment of a peer cannot be made."""


def prepare_model() -> None:
    """Exports the model that all peers serve, once. Raises PeersMissing without the build environment."""
    if (PEERS_MODEL / "head.joblib").exists():
        return
    if not BUILD_PYTHON.exists():
        raise PeersMissing(
            f"{BUILD_PYTHON} is missing: peers' model is exported there. Run `make build` first."
        )
    PEERS_MODEL.mkdir(parents=True, exist_ok=True)
    command = [str(BUILD_PYTHON), str(PEERS / "prepare.py"), str(PEERS_MODEL)]
    done = subprocess.run(command, cwd=ROOT, env=build_environ(), capture_output=True, text=True)
    if done.returncode:
        raise PeersMissing(f"The model for peers cannot be made: {done.stderr.strip()[-800:]}")


def install(environments: Path, name: str, needs_torch: bool = False) -> Path:
    """The Python of a peer's environment, which is installed unless it exists. Raises PeersMissing."""
    environment = environments / name
    python = environment / "bin" / "python"
    if python.exists():
        return python
    print(f"==> {environment}: what `bench/peers/{name}` needs", file=sys.stderr, flush=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    steps = [[sys.executable, "-m", "venv", str(environment)]]
    if needs_torch:  # the CPU build first, or pip takes the one with CUDA
        steps.append(
            [str(python), str(ROOT / "layers" / "model" / "coldframe_training" / "install_torch.py"), _TORCH]
        )
    steps.append([*pip, "--requirement", str(PEERS / name / "requirements.txt")])
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            python.unlink(missing_ok=True)  # so that the next run tries again
            errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            raise PeersMissing(" ".join(errors or done.stderr.splitlines()[-1:]))
    return python


def measure_peer(python: Path, name: str, *arguments: object) -> list[str]:
    """Lines that a peer's `measure.py` prints. Raises PeersMissing where it fails."""
    command = [str(part) for part in (python, PEERS / name / "measure.py", *arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S)
    if done.returncode:
        raise PeersMissing(f"bench/peers/{name} ended with status {done.returncode}: {done.stderr[-500:]}")
    return done.stdout.splitlines()


def folder_mb(environment: Path) -> float:
    """Size of all that is installed, without pip."""
    (packages,) = environment.glob("lib/python3*/site-packages")
    files = (file for file in packages.rglob("*") if file.is_file() and not file.is_symlink())
    installer = ("pip", "setuptools")
    own = (file for file in files if not file.relative_to(packages).parts[0].startswith(installer))
    return sum(file.stat().st_size for file in own) / 1e6


def installed_mb_of(requirements: Path) -> float:
    """Size of the packages that a lock file names, as they are installed here."""
    names = [line.partition("==")[0] for line in requirements.read_text().splitlines() if "==" in line]
    return sum(_distribution_mb(name) for name in names if not name.startswith((" ", "#")))


def _distribution_mb(name: str) -> float:
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:  # of another platform
        return 0.0
    paths = (Path(str(file.locate())) for file in files)
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6
