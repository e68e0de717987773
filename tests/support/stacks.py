"""The project's template as CloudFormation gets it, for tests that look at what would be created."""

from functools import cache
from typing import Any

import pytest

from coldframe_local.emulator.template.syntax import cloudformation
from coldframe_local.emulator.template.syntax.cloudformation import Stack, stack_of
from coldframe_local.paths import SAM_PYTHON
from tests.conftest import ROOT

TEMPLATE = ROOT / "template.yaml"
# The applications that it consists of besides, in which a resource has the application's name before its own.
APPLICATIONS = ("jobs", "feedback", "warmer", "offline", "deployment", "watching", "traces", "monitor")

needs_translator = [
    pytest.mark.sam,
    pytest.mark.skipif(not SAM_PYTHON.exists(), reason="no .venv-sam: run `make .venv-sam/stamp`"),
]

PROVISIONED = {"ColdStartMode": "Provisioned"}
SNAPSTART = {"ColdStartMode": "SnapStart"}
WARMED = {"WarmEnvironments": "5"}
PREDICTED = {"WarmPrediction": "on"}
GUARANTEED = {"WarmPrediction": "on", "WarmGuaranteed": "3"}
JWT = {"AuthMode": "JWT", "JwtIssuer": "https://example.com/", "JwtAudience": "coldframe"}
OPEN = {"AuthMode": "None", "CorsAllowOrigin": "https://example.com"}
OFFLINE = {"OfflineBucket": "texts"}
FORGETFUL = {"KeepFailedEvents": "off"}
WITH_JOBS = {"Jobs": "on", "JobsSources": "theirs,others", "JobsWebhookHosts": "example.com"}
TRACED = {"TracesTo": "cloudwatch"}
WITH_FEEDBACK = {"FeedbackKey": "0123456789abcdef"}
MONITORED = {"Monitor": "on", **WITH_FEEDBACK}
WITH_EXPERIMENTS = {"Experiments": "on"}
WATCHED = {"AlarmEmail": "someone@example.com"}

MODES: dict[str, dict[str, str]] = {"OnDemand": {}, "Provisioned": PROVISIONED, "SnapStart": SNAPSTART}
ALL: list[dict[str, str]] = [
    {}, PROVISIONED, SNAPSTART, WARMED, PREDICTED, GUARANTEED,
    JWT, OPEN, WATCHED, FORGETFUL, OFFLINE, WITH_JOBS, TRACED, WITH_FEEDBACK, MONITORED,
    WITH_EXPERIMENTS,
]  # fmt: skip
# What SAM calls the alias `live`.
PREDICT_ALIAS = "PredictFunctionAliaslive"


@cache
def documents() -> dict[str, Any]:
    """As it is written and as it is translated, with all defaults."""
    return cloudformation.translated(TEMPLATE, {})


def stack(**parameters: str) -> Stack:
    """What would be created with these parameters."""
    both = documents()
    return stack_of(TEMPLATE, both["written"], both["translated"], parameters)


def properties(of: Stack, name: str) -> dict[str, Any]:
    """Properties of one resource."""
    found: dict[str, Any] = of.resources[name]["Properties"]
    return found
