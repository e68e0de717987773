"""The function with a GPU in docs/gpu.md has the names, kinds and ranges that AWS's own client knows."""

from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest
import yaml
from botocore.model import Shape
from botocore.validate import ParamValidator

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "gpu.md").read_text()
LAMBDA = botocore.session.get_session().get_service_model("lambda")
LISTS = {"SubnetIds", "SecurityGroupIds"}


class Template(yaml.SafeLoader):
    """A template whose references stand for a value of the right kind."""


Template.add_constructor("!Ref", lambda _, node: ["a-value"] if node.value in LISTS else str(node.value))
Template.add_constructor("!GetAtt", lambda _, node: str(node.value))


def properties() -> tuple[dict[str, Any], dict[str, Any]]:
    """Properties of the capacity provider and of the function."""
    (fence,) = (text.partition("```")[0] for text in PAGE.split("```yaml\n")[1:])
    resources = yaml.load(fence, Template)["Resources"]  # noqa: S506
    return resources["Provider"]["Properties"], resources["Function"]["Properties"]


def errors(values: dict[str, Any], shape: Shape) -> str:
    """Faults of a request: botocore's, and numbers over their maximum, which botocore passes."""
    report = str(ParamValidator().validate(values, shape).generate_report())
    return "\n".join(filter(None, [report, *over(values, shape)]))


def over(value: Any, shape: Any) -> Iterator[str]:
    """Numbers over the maximum of their shape."""
    if isinstance(value, dict) and shape.type_name == "structure":
        for name in value.keys() & shape.members.keys():
            yield from over(value[name], shape.members[name])
    elif isinstance(value, int | float) and value > shape.metadata.get("max", value):
        yield f"{shape.name} is {value}"


def shape_of(operation: str) -> Shape:
    shape = LAMBDA.operation_model(operation).input_shape
    assert shape is not None
    return shape


def test_provider_is_valid() -> None:
    """AWS's client would send it."""
    assert errors(properties()[0], shape_of("CreateCapacityProvider")) == ""


def test_function_is_valid() -> None:
    """AWS's client would send it, except for the name, which CloudFormation makes, and for its scaling."""
    function = properties()[1]
    scaling = function.pop("FunctionScalingConfig")
    assert errors({"FunctionName": "made", **function}, shape_of("CreateFunction")) == ""
    request = {"FunctionName": "made", "Qualifier": "$LATEST.PUBLISHED", "FunctionScalingConfig": scaling}
    assert errors(request, shape_of("PutFunctionScalingConfig")) == ""


@pytest.mark.parametrize(
    "change", [{"AcceleratorConfig": {"MemorySize": 3}}, {"Timeout": 5401}, {"Accelerator": {}}]
)
def test_a_wrong_function_is_not_valid(change: dict[str, Any]) -> None:
    """A misspelt name or a number out of range is seen: the tests above can fail."""
    function = properties()[1]
    del function["FunctionScalingConfig"]
    assert errors({"FunctionName": "made", **function, **change}, shape_of("CreateFunction")) != ""
