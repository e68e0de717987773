"""Without numba the simulator runs all the same."""

from __future__ import annotations

import subprocess
import sys

_HIDDEN = """
import sys
from importlib.abc import MetaPathFinder

class Hides(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hides())
import importlib.util
importlib.util.find_spec = lambda name, package=None, found=importlib.util.find_spec: (
    None if name == "numba" else found(name, package)
)
from coldframe_local.cli import main
main(sys.argv[1:])
"""


def test_simulator_needs_no_numba() -> None:
    """The engine is Python then, and numba is never imported."""
    command = ["simulate", "--rps", "1", "--hours", "1"]
    done = subprocess.run([sys.executable, "-c", _HIDDEN, *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "USD a month" in done.stdout


def test_cli_imports_the_simulator_when_it_is_called() -> None:
    """`coldframe --help` loads neither numpy nor numba."""
    code = "import sys, coldframe_local.cli; print([n for n in ('numpy', 'numba') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
