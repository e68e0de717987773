"""What the contract and the message types both know is the same in both."""

from typing import get_args

import msgspec

from coldframe import contract
from coldframe import setting_facts as facts
from coldframe.api.api import Api
from coldframe.api.operations import FEEDBACK_OPERATIONS, JOB_OPERATIONS, OPERATIONS
from coldframe.config import ENVIRONMENT_NAMES, Settings
from coldframe.schemas import CacheUsage, PredictRequest, Usage
from coldframe.timing import StartMark
from tests.conftest import served, tiny_predictor


def test_fields_of_a_request() -> None:
    """The message type has the contract's fields and defaults."""
    assert PredictRequest.__struct_fields__ == contract.REQUEST_FIELDS
    assert PredictRequest().top_k == contract.DEFAULT_TOP_K


def test_fields_of_usage() -> None:
    """The message types count what the contract counts, and more of the cache where something happened."""
    assert Usage.__struct_fields__ == (*contract.USAGE_COUNTS, "cache")
    always = {field.name for field in msgspec.structs.fields(CacheUsage) if field.required}
    assert always == {*contract.CACHE_COUNTS}


def test_settings() -> None:
    """Each setting has its facts, and those have its type, range and default."""
    known = [*facts.RANGES, *facts.CHOICES, *facts.TEXTS, *facts.FLAGS]
    assert sorted(facts.PREFIX + name.upper() for name in known) == sorted(ENVIRONMENT_NAMES)
    fields = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    for name, choices in facts.CHOICES.items():
        literal, _ = get_args(fields[name])
        assert get_args(literal) == choices
    settings = Settings()
    assert (settings.cache_policy, settings.log_level) == (facts.CACHE_POLICY, facts.LOG_LEVEL)


def test_each_route_has_an_operation() -> None:
    """The tables of routes and of operations, from which OpenAPI is made, have the same keys."""
    api = Api(served(tiny_predictor()), Settings(), StartMark())
    assert api.routes.keys() == {*OPERATIONS, *JOB_OPERATIONS, *FEEDBACK_OPERATIONS}
