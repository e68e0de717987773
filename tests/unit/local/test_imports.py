"""Who imports whom in `local`."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

from local.paths import ROOT


def imported(file: Path) -> set[str]:
    """What a module imports anywhere in it, for types alone as well."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def test_no_module_imports_itself_by_way_of_others() -> None:
    """The modules of the emulator have an order in which each imports earlier ones only."""
    found = (ROOT / "local").rglob("*.py")
    files = {".".join(file.relative_to(ROOT).with_suffix("").parts): file for file in found}
    graph = {name: imported(file) & files.keys() for name, file in files.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle
