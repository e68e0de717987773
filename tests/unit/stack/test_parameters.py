"""The table of parameters in docs/deploy.md is made of template.yaml."""

import re
from typing import Any

import pytest

from coldframe_local.emulator.template.syntax.documents import read_document
from tests.conftest import ROOT

TEMPLATE: dict[str, Any] = read_document(ROOT / "template.yaml")
HEAD = "| parameter | default | allowed | what |\n|---|---|---|---|\n"
GROUPS = TEMPLATE["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
SECTION = (ROOT / "docs" / "deploy.md").read_text().partition("## Parameters\n")[2].partition("\n## ")[0]


def row(name: str) -> str:
    """A parameter as the table has it."""
    of = TEMPLATE["Parameters"][name]
    default = f"`{of['Default']}`" if of["Default"] != "" else "empty"
    allowed = ", ".join(f"`{value}`" for value in of.get("AllowedValues", ())) or bounds(of)
    told = " ".join(of["Description"].split()).replace("|", "\\|")
    return f"| `{name}` | {default} | {allowed} | {told} |"


def bounds(of: dict[str, Any]) -> str:
    """The range of a number; what a text must be is said by its description."""
    least, most = of.get("MinValue"), of.get("MaxValue")
    if least is None:
        return "text"
    return f"{least:,} to {most:,}" if most is not None else f"{least:g} or more"


def table() -> str:
    """The whole reference: a table for each group of parameters."""
    parts = []
    for group in GROUPS:
        head = f"**{group['Label']['default']}**\n\n{HEAD}"
        parts.append(head + "\n".join(map(row, group["Parameters"])))
    return "\n\n".join(parts) + "\n"


def test_every_parameter_is_in_a_group() -> None:
    """CloudFormation's console shows what is in no group last, without a heading."""
    grouped = [name for group in GROUPS for name in group["Parameters"]]
    assert sorted(grouped) == sorted(TEMPLATE["Parameters"])


@pytest.mark.parametrize("name", TEMPLATE["Parameters"])
def test_parameter_is_documented(name: str) -> None:
    """Its default, its values and its description are those of the template."""
    assert row(name) in SECTION


def test_table_has_nothing_else() -> None:
    """No row is of a parameter that is gone. Write the printed tables below the heading."""
    print(table())
    assert table().strip() in SECTION
    assert len(re.findall(r"^\| `", SECTION, re.MULTILINE)) == len(TEMPLATE["Parameters"])
