"""Installs the CPU build of torch: `install_torch.py torch==X.Y.Z`.

The default index serves Linux a build with CUDA, ten times the size. The CPU
build is tried first, from PyTorch's own index; where that is out of reach, pip
takes whatever build its configured indexes have.
"""

import subprocess
import sys
import urllib.error
import urllib.request

CPU_INDEX = "https://download.pytorch.org/whl/cpu"


def main(requirement: str) -> int:
    """Exit status of pip."""
    flags = ["--extra-index-url", CPU_INDEX] if _reachable(CPU_INDEX) else []
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", *flags, requirement]
    return subprocess.run(command).returncode


def _reachable(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310 (a constant)
            return True
    except (urllib.error.URLError, TimeoutError):
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
