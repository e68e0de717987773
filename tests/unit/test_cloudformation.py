"""Intrinsic functions, as far as parameters decide them; templates that cannot be read."""

from pathlib import Path
from typing import Any

import pytest

from local.cloudformation import Resolver, TemplateError, load_stack, stack_of
from tests import stacks

CONDITIONS = {
    "Yes": {"Fn::Equals": [{"Ref": "Mode"}, "on"]},
    "No": {"Fn::Not": [{"Condition": "Yes"}]},
    "Both": {"Fn::And": [{"Condition": "Yes"}, {"Condition": "No"}]},
    "Either": {"Fn::Or": [{"Condition": "Yes"}, {"Condition": "No"}]},
}
RESOLVER = Resolver({"Mode": "on", "Size": 7}, CONDITIONS)
NOTHING = {"Ref": "AWS::NoValue"}


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ({"Ref": "Size"}, 7),
        ({"Ref": "AWS::Region"}, "us-east-1"),
        ({"Ref": "Table"}, {"Ref": "Table"}),
        ({"Fn::GetAtt": ["Table", "Arn"]}, {"Fn::GetAtt": ["Table", "Arn"]}),
        ({"Fn::Sub": "${Size} MB in ${AWS::Region}"}, "7 MB in us-east-1"),
        ({"Fn::Sub": "${Table.Arn}/${Size}"}, {"Fn::Sub": "${Table.Arn}/7"}),
        ({"Fn::Sub": ["${A} ${Size}", {"A": {"Ref": "Mode"}}]}, "on 7"),
        ({"Fn::Sub": ["${A}", {"A": {"Ref": "Table"}}]}, {"Fn::Sub": ["${A}", {"A": {"Ref": "Table"}}]}),
        ({"Fn::Sub": "${!Size}"}, "${!Size}"),
        ({"Fn::If": ["Yes", "a", "b"]}, "a"),
        ({"Fn::If": ["No", "a", {"Fn::If": ["Yes", {"Ref": "Size"}, "c"]}]}, 7),
        ({"x": {"Fn::If": ["No", 1, NOTHING]}, "y": 2}, {"y": 2}),
        ([1, {"Fn::If": ["Yes", NOTHING, 3]}, {"Ref": "Size"}], [1, 7]),
        ({"x": {"Fn::If": ["Yes", {"Fn::If": ["Yes", NOTHING, 1]}, 2]}}, {}),
    ],
)
def test_resolve(value: Any, resolved: Any) -> None:
    """What parameters decide is decided; what only exists once deployed stays a reference."""
    assert RESOLVER.resolve(value) == resolved


@pytest.mark.parametrize(("name", "holds"), [("Yes", True), ("No", False), ("Both", False), ("Either", True)])
def test_condition(name: str, holds: bool) -> None:
    """Conditions by name, and what they are made of."""
    assert RESOLVER.condition(name) is holds


def test_numbers_and_texts_are_compared_as_text() -> None:
    """CloudFormation compares a number with what is written like it."""
    assert RESOLVER.condition({"Fn::Equals": [{"Ref": "Size"}, "7"]})
    assert RESOLVER.condition({"Fn::Equals": [True, "true"]})


def test_a_condition_about_a_resource_cannot_be_decided() -> None:
    """What is not made of parameters is refused by name, not guessed."""
    with pytest.raises(TemplateError, match=r"Fn::Contains"):
        RESOLVER.condition({"Fn::Contains": [["a"], "a"]})


WRITTEN: dict[str, Any] = {"Parameters": {"Given": {"Type": "String"}}, "Resources": {}}


def test_unknown_parameter() -> None:
    """A parameter that the template does not have is refused, with those that it has."""
    with pytest.raises(TemplateError, match=r"^Colour is no parameter of t\.yaml\. Known: Given\.$"):
        stack_of(Path("t.yaml"), WRITTEN, {"Resources": {}}, {"Given": "1", "Colour": "red"})


def test_parameter_without_default() -> None:
    """A parameter without default must be given."""
    with pytest.raises(TemplateError, match="--parameter Given=VALUE"):
        stack_of(Path("t.yaml"), WRITTEN, {"Resources": {}}, {})


class TestTemplatesThatCannotBeRead:
    pytestmark = stacks.needs_translator

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            ("a: [", "is not YAML"),
            ("just text", "is no SAM template"),
            ("Resources: {F: {Type: AWS::Serverless::Function, Properties: {CodeUri: .}}}", "refused by SAM"),
        ],
    )
    def test_content(self, content: str, why: str, tmp_path: Path) -> None:
        """The error names the file and says on one line why it cannot be read."""
        file = tmp_path / "template.yaml"
        file.write_text(content)
        with pytest.raises(TemplateError, match=why) as error:
            load_stack(file)
        assert str(error.value).startswith(str(file))
        assert "\n" not in str(error.value)
