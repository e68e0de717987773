"""The stack of a template: what parameters it takes; templates that cannot be read."""

from pathlib import Path
from typing import Any

import pytest

from local.cloudformation import load_stack, stack_of
from local.intrinsics import TemplateError
from tests import stacks

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
