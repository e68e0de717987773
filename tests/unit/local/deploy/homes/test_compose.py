"""Compose, by the published schema of its files."""

from dataclasses import replace

import pytest
from check_jsonschema.builtin_schemas import get_builtin_schema
from hypothesis import given
from jsonschema import Draft202012Validator, ValidationError

from local.deploy.homes.compose import compose
from local.deploy.homes.facts import Choices
from tests.unit.local.deploy.homes.choosing import ANYONE, FEW, USUAL, WITH_GPU, choices, read

# https://github.com/compose-spec/compose-spec/blob/main/schema/compose-spec.json, as check-jsonschema 0.39
# (2026-10-26) brings it.
SCHEMA = Draft202012Validator(get_builtin_schema("vendor.compose-spec"))


@FEW
@given(choices)
def test_every_file_is_valid(chosen: Choices) -> None:
    """The schema of Compose files knows every field, and takes every value."""
    [found] = read(compose(chosen))
    SCHEMA.validate(found)


def test_schema_refuses_what_compose_does_not_know() -> None:
    """A misspelt field is not a valid file: the test above can fail."""
    [found] = read(compose(USUAL))
    found["services"]["coldframe"]["read_olny"] = True
    with pytest.raises(ValidationError):
        SCHEMA.validate(found)


def test_settings_stay_texts() -> None:
    """A value that YAML would read as something else is written as a text."""
    chosen = Choices(
        "coldframe", "b", USUAL.size, USUAL.replicas, {"COLDFRAME_LOG_LEVEL": "off", "COLDFRAME_THREADS": "2"}
    )
    [found] = read(compose(chosen))
    assert found["services"]["coldframe"]["environment"] == {
        "COLDFRAME_LOG_LEVEL": "off",
        "COLDFRAME_THREADS": "2",
        "COLDFRAME_TOKENS_FILE": "/run/secrets/tokens",
    }


def test_tokens_are_a_secret() -> None:
    """The service mounts the file of tokens beside the Compose file; where anyone may call it has none."""
    [found] = read(compose(USUAL))
    assert found["secrets"] == {"tokens": {"file": "./coldframe-tokens"}}
    assert found["services"]["coldframe"]["secrets"] == ["tokens"]
    [found] = read(compose(replace(USUAL, environment=ANYONE)))
    assert "secrets" not in found
    assert found["services"]["coldframe"]["environment"] == ANYONE


def test_port_is_for_this_machine() -> None:
    """Docker publishes past a firewall, so the port is bound to the loopback address."""
    [found] = read(compose(USUAL))
    assert found["services"]["coldframe"]["ports"] == ["127.0.0.1:8080:8080"]


def test_gpu_is_reserved() -> None:
    """The service reserves NVIDIA's device."""
    [found] = read(compose(WITH_GPU))
    [device] = found["services"]["on-gpu"]["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}
