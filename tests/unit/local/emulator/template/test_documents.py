"""A SAM template as it is written."""

from pathlib import Path
from typing import Any

import pytest

from coldframe_local.emulator.template.syntax.documents import read_document
from coldframe_local.emulator.template.syntax.errors import TemplateError


def read(tmp_path: Path, content: bytes) -> dict[str, Any]:
    path = tmp_path / "template.yaml"
    path.write_bytes(content)
    return read_document(path)


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("!Ref X", {"Ref": "X"}),
        ("!Condition X", {"Condition": "X"}),
        ("!Sub 'a-${X}'", {"Fn::Sub": "a-${X}"}),
        ("!GetAtt X.Arn", {"Fn::GetAtt": ["X", "Arn"]}),
        ("!GetAtt X.Outputs.Y", {"Fn::GetAtt": ["X", "Outputs.Y"]}),
        ("!GetAtt [X, Arn]", {"Fn::GetAtt": ["X", "Arn"]}),
        ("!If [C, !Ref X, {a: !Ref Y}]", {"Fn::If": ["C", {"Ref": "X"}, {"a": {"Ref": "Y"}}]}),
        ("!Sub [a, {X: !GetAtt Y.Z}]", {"Fn::Sub": ["a", {"X": {"Fn::GetAtt": ["Y", "Z"]}}]}),
        ("!Transform {Name: N}", {"Fn::Transform": {"Name": "N"}}),
        ("{Ref: X}", {"Ref": "X"}),
    ],
)
def test_short_tags_are_read_as_the_long_form(short: str, long: Any, tmp_path: Path) -> None:
    """A tag is the function that it stands for, however deep."""
    assert read(tmp_path, f"Resources: {{R: {short}}}".encode()) == {"Resources": {"R": long}}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a: [", r"template\.yaml, line \d: .*Expected a SAM template in YAML or JSON"),
        (b"\xff\xfe\x00", r"template\.yaml: not YAML\. Expected a SAM template"),
        (b"Resources: !!python/object:os.system {}", "could not determine a constructor"),
        (b"[]", "has no Resources"),
        (b"Resources: none", "has no Resources"),
        (b"Resources: !Sub " + b"[" * 5000 + b"]" * 5000, "nested too deeply"),
    ],
)
def test_what_is_no_template(content: bytes, said: str, tmp_path: Path) -> None:
    """The error names the file, and the line where there is one; nothing is constructed but data."""
    with pytest.raises(TemplateError, match=said):
        read(tmp_path, content)


@pytest.mark.parametrize("text", ["2012-10-17", "2020-13-45"])
def test_days_are_text(text: str, tmp_path: Path) -> None:
    """CloudFormation knows no dates: what looks like one is text, whether such a day exists or not."""
    assert read(tmp_path, f"Resources: {{R: {text}}}".encode()) == {"Resources": {"R": text}}
