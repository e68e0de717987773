"""The stack of a template: what parameters it takes; templates that cannot be read."""

from pathlib import Path
from typing import Any

import pytest

from coldframe_local.emulator.template.syntax.cloudformation import load_stack, stack_of
from coldframe_local.emulator.template.syntax.errors import TemplateError
from tests.support import stacks

WRITTEN: dict[str, Any] = {"Parameters": {"Given": {"Type": "String"}}, "Resources": {}}


def test_unknown_parameter() -> None:
    """A parameter that the template does not have is refused, with those that it has."""
    with pytest.raises(TemplateError, match=r"^The template has no parameter Colour; .*: Given\.$"):
        stack_of(Path("t.yaml"), WRITTEN, {"Resources": {}}, {"Given": "1", "Colour": "red"})


def test_parameter_without_default() -> None:
    """A parameter without default must be given."""
    with pytest.raises(TemplateError, match="--parameter Given=VALUE"):
        stack_of(Path("t.yaml"), WRITTEN, {"Resources": {}}, {})


FROM_SSM: dict[str, Any] = {
    "Parameters": {"Size": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/size"}},
    "Conditions": {"IsBig": {"Fn::Equals": [{"Ref": "Size"}, "big"]}},
    "Resources": {
        "Topic": {"Type": "AWS::SNS::Topic", "Condition": "IsBig"},
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Ref": "Size"}}},
    },
}


def test_what_only_ssm_knows_is_not_guessed() -> None:
    """A reference to it stays; a condition about it is an error that asks for the value."""
    without = {**FROM_SSM, "Resources": {"Queue": FROM_SSM["Resources"]["Queue"]}}
    made = stack_of(Path("t.yaml"), without, without, {})
    assert made.resources["Queue"]["Properties"] == {"QueueName": {"Ref": "Size"}}
    with pytest.raises(TemplateError, match=r"Conditions\.IsBig: .* of SSM with --parameter"):
        stack_of(Path("t.yaml"), FROM_SSM, FROM_SSM, {})


@pytest.mark.parametrize(("given", "names"), [("big", {"Topic", "Queue"}), ("small", {"Queue"})])
def test_what_ssm_knows_can_be_given(given: str, names: set[str]) -> None:
    """A value that is given decides conditions and takes the place of references."""
    made = stack_of(Path("t.yaml"), FROM_SSM, FROM_SSM, {"Size": given})
    assert set(made.resources) == names
    assert made.resources["Queue"]["Properties"] == {"QueueName": given}


def test_condition_that_does_not_exist() -> None:
    """It is named, with those that exist and with who asks for it."""
    wrong = {**FROM_SSM, "Conditions": {"IsSmall": True}}
    with pytest.raises(TemplateError, match=r"Topic\.Condition uses the condition IsBig, .* \['IsSmall'\]"):
        stack_of(Path("t.yaml"), wrong, wrong, {"Size": "big"})


class TestTemplatesThatCannotBeRead:
    pytestmark = stacks.needs_translator

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            ("a: [", "is not YAML"),
            ("just text", "is not a SAM template"),
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
