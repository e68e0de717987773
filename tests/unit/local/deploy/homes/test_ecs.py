"""ECS, by botocore's model of the request that registers a task definition."""

from dataclasses import replace
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st

from local.deploy.homes.ecs import NoSuchSize, OnEcs, ecs, fargate_size
from local.deploy.homes.facts import Choices, Size
from local.deploy.homes.notes import plain
from tests.unit.local.deploy.homes.choosing import ANYONE, FEW, USUAL, WITH_CACHE, WITH_GPU, choices, sizes

ON = OnEcs(
    "arn:aws:iam::123456789012:role/pull", "arm64", "eu-west-1", "arn:aws:iam::123456789012:role/cache"
)


@pytest.fixture(scope="module")
def request_shape() -> Any:
    """What RegisterTaskDefinition takes."""
    model = botocore.session.get_session().get_service_model("ecs")
    return model.operation_model("RegisterTaskDefinition").input_shape


@FEW
@given(chosen=choices, on=st.sampled_from([ON, replace(ON, task_role=None)]))
def test_every_definition_is_valid(request_shape: Any, chosen: Choices, on: OnEcs) -> None:
    """AWS's own model of the request knows every field, and takes every value."""
    definition = plain(ecs(chosen, on))
    report = ParamValidator().validate(definition, request_shape)
    assert not report.has_errors(), report.generate_report()


def test_model_refuses_what_ecs_does_not_know(request_shape: Any) -> None:
    """A misspelt field is not a valid request: the test above can fail."""
    definition = plain(ecs(USUAL, ON)) | {"famly": "a"}
    assert ParamValidator().validate(definition, request_shape).has_errors()


@FEW
@given(sizes)
def test_fargate_sells_the_smallest_that_is_enough(size: Size) -> None:
    """A task has at least what was asked for, and no size that Fargate sells with less of either would do."""
    units, memory_mb = fargate_size(size)
    assert units >= size.cpus * 1024
    assert memory_mb >= size.memory_mb
    assert fargate_size(Size(units / 1024, memory_mb)) == (units, memory_mb)


@pytest.mark.parametrize("size", [Size(32, 1024), Size(1, 130_000)])
def test_fargate_has_a_largest_size(size: Size) -> None:
    """The error names the largest task and what to do instead."""
    with pytest.raises(NoSuchSize, match=r"16 vCPU with 120 GB.*more tasks"):
        fargate_size(size)


def test_every_task_has_a_log() -> None:
    """A role writes the log, whoever may call: a task without one would end without a word."""
    definition = ecs(replace(USUAL, environment=ANYONE), ON)
    [container] = definition["containerDefinitions"]
    assert definition["executionRoleArn"] == ON.execution_role
    assert container["logConfiguration"]["options"]["awslogs-region"] == "eu-west-1"


def test_tokens_are_a_secret() -> None:
    """The task reads the tokens from an SSM parameter, unless anyone may call."""
    [container] = ecs(USUAL, ON)["containerDefinitions"]
    assert container["secrets"] == [{"name": "COLDFRAME_TOKENS", "valueFrom": "/coldframe/tokens"}]
    [container] = ecs(replace(USUAL, environment=ANYONE), ON)["containerDefinitions"]
    assert "secrets" not in container


def test_gpus_run_on_ec2() -> None:
    """Fargate has no GPU: the task is for EC2, and of the size that was asked for."""
    definition = ecs(WITH_GPU, ON)
    [container] = definition["containerDefinitions"]
    assert definition["requiresCompatibilities"] == ["EC2"]
    assert (definition["cpu"], definition["memory"]) == ("4096", "16384")
    assert container["resourceRequirements"] == [{"type": "GPU", "value": "1"}]


def test_fargate_stops_after_two_minutes() -> None:
    """A longer drain is cut at the longest that Fargate waits."""
    long = replace(WITH_CACHE, environment={"COLDFRAME_DRAIN_GRACE_S": "600"})
    [container] = ecs(long, ON)["containerDefinitions"]
    assert container["stopTimeout"] == 120
