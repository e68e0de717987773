"""The table of folders in CONTRIBUTING.md, made of the packages' own sentences.

`python -m coldframe_local.tools.folders` writes the table anew.
"""

import ast
from pathlib import Path

from coldframe_local.paths import ROOT

PAGE = ROOT / "CONTRIBUTING.md"
HEAD = "| folder | what it holds |\n|---|---|\n"
PRODUCT = (
    "layers/shared/python/coldframe",
    "functions/coldframe_functions",
    "layers/model/coldframe_training",
    "local/coldframe_local",
    "bench/coldframe_bench",
)


def sentence_of(package: Path) -> str:
    """The first sentence of a package's docstring, on one line; empty without a docstring."""
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    return docstring.partition("\n\n")[0].replace("\n", " ")


def packages() -> list[Path]:
    """The packages of the product, each above its parts."""
    files = [file for top in PRODUCT for file in sorted((ROOT / top).rglob("__init__.py"))]
    return [file.parent for file in files]


def table() -> str:
    """The packages and their sentences, as a table of Markdown."""
    rows = [f"| `{name_of(path)}/` | {sentence_of(path)} |\n" for path in packages()]
    return HEAD + "".join(rows)


def name_of(package: Path) -> str:
    """The path of a package below its source root: a folder of the product's, such as `local`."""
    path = package.relative_to(ROOT).as_posix()
    product = next(top for top in PRODUCT if f"{path}/".startswith(f"{top}/"))
    return path.removeprefix(product.rpartition("/")[0] + "/")


def page_with(new_table: str, page: str) -> str:
    """The page with its table replaced: the lines from the table's head to the next empty line."""
    before, _, rest = page.partition(HEAD)
    return f"{before}{new_table}\n{rest.partition(chr(10) * 2)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page_with(table(), PAGE.read_text()))
