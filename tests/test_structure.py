"""Folders stay small, say what they hold, and the table in CONTRIBUTING.md repeats it."""

import ast
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from coldframe_local.paths import ROOT
from coldframe_local.tools import folders

MOST_MODULES = 20
SCRIPTS = (
    "bench/peers",
    "bench/coldframe_bench/targets/trivial_function",
    "layers/model/examples",
    "local/coldframe_local/new_project/files",
)
"""Folders of programs that run by their path or in environments of their own: no package."""

SOURCE_ROOTS = tuple(f"{top.rpartition('/')[0]}/" for top in folders.PRODUCT)
MODULES = [
    path.relative_to(ROOT)
    for top in ("layers", "functions", "local", "bench", "tests")
    for path in sorted((ROOT / top).rglob("*.py"))
]


def name_of(path: Path) -> str:
    """The dotted name under which a module is imported."""
    name = path.with_suffix("").as_posix().removesuffix("/__init__")
    root = next((root for root in SOURCE_ROOTS if name.startswith(root)), "")
    return name.removeprefix(root).replace("/", ".")


def imports_of(path: Path) -> set[str]:
    """Names that a module imports anywhere in it, for types alone as well."""
    names: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def test_no_circle_of_modules() -> None:
    """The modules of the product have an order in which each imports earlier ones only."""
    files = {name_of(path): path for path in MODULES if path.parts[0] != "tests"}
    faces = {name for name, path in files.items() if path.name == "__init__.py" and not imports_of(path)}
    graph = {name: (imports_of(path) & files.keys()) - faces for name, path in files.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_no_folder_is_crowded() -> None:
    """No folder has more than 20 modules, tests included."""
    counts = Counter(path.parent.as_posix() for path in MODULES)
    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_every_folder_is_a_package() -> None:
    """Each folder of modules has an `__init__`, which says what it holds."""
    product = {path.parent for path in MODULES if path.parts[0] != "tests"}
    without = [folder for folder in product if not (ROOT / folder / "__init__.py").exists()]
    scripts = [folder for folder in without if folder.as_posix().startswith(SCRIPTS)]
    assert {*without} - {*scripts} == {Path("functions")}  # slim.py, which builds images


@pytest.mark.parametrize("package", folders.packages(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_package_says_what_it_holds(package: Path) -> None:
    """A package's docstring begins with a short sentence."""
    sentence = folders.sentence_of(package)
    assert sentence.endswith(".")
    assert len(sentence.split()) <= 25


def test_table_of_contributing_is_current() -> None:
    """CONTRIBUTING.md has what `python -m coldframe_local.tools.folders` writes: the packages' sentences."""
    page = folders.PAGE.read_text()
    assert page == folders.page_with(folders.table(), page)
