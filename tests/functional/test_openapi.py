"""The OpenAPI document against the application that it describes, by schemathesis."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from coldframe.api.api import Api
from coldframe.config import Settings
from coldframe.timing import StartMark
from functions.predict.routes import create_app
from tests.conftest import tiny_predictor

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis, which `make test` installs")

APP = create_app(Api(tiny_predictor(), Settings(log_level="off", max_texts=100), StartMark()))
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", APP)
# What fits the schema may still be refused: an unknown head, a shape that is not the data's.
EXCLUDED = [schemathesis.checks.CHECKS.get_one("positive_data_acceptance")]


@SCHEMA.parametrize()  # type: ignore[untyped-decorator]
@settings(
    max_examples=30,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_documented(case: Any) -> None:
    """Status, media type and shape of each answer are those that the document promises."""
    case.call_and_validate(excluded_checks=EXCLUDED)
