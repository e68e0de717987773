"""The Python versions that the project's files name are the same ones."""

import re
import tomllib

from tests.conftest import ROOT


def test_files_name_the_same_pythons() -> None:
    """pyproject.toml, the Makefile and the README agree on the first and the last version of Python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    first, after = map(int, re.findall(r"3\.(\d+)", project["requires-python"]))
    makefile = re.search(r"\(3, (\d+)\) <= v <= \(3, (\d+)\)", (ROOT / "Makefile").read_text())
    words = [
        re.search(r"3\.(\d+) to 3\.(\d+)", (ROOT / name).read_text()) for name in ("README.md", "Makefile")
    ]
    for versions in (makefile, *words):
        assert versions is not None
        assert tuple(map(int, versions.groups())) == (first, after - 1)
