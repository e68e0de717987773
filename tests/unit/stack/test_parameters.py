"""Parameters that do not go together, or are no values of theirs."""

import pytest

from tests import stacks
from tests.stacks import ALL, JWT, PREDICTED, PROVISIONED, SNAPSTART, WARMED, stack

pytestmark = stacks.needs_translator


WRONG = [
    ("JwtHasAnIssuer", {"AuthMode": "JWT", "JwtAudience": "coldframe"}),
    ("JwtHasAnIssuer", {"AuthMode": "JWT", "JwtIssuer": "https://example.com/"}),
    ("IssuerMeansJwt", {"JwtIssuer": "https://example.com/"}),
    ("IssuerMeansJwt", {"JwtAudience": "coldframe", "AuthMode": "None"}),
    ("PingsAreForOnDemand", {**PROVISIONED, **WARMED}),
    ("PingsAreForOnDemand", {**SNAPSTART, **WARMED}),
    ("PredictionIsForOnDemand", {**PROVISIONED, **PREDICTED}),
    ("PredictionIsForOnDemand", {**SNAPSTART, **PREDICTED}),
    ("GuaranteeNeedsPrediction", {"WarmGuaranteed": "2"}),
    ("WarmMaximum", {**PREDICTED, "WarmMaximum": "0"}),
    ("ColdStartUsd", {**PREDICTED, "ColdStartUsd": "0"}),
    ("ColdStartMode", {"ColdStartMode": "Warm"}),
    ("ProvisionedConcurrencyMin", {"ProvisionedConcurrencyMin": "0"}),
    ("MemorySize", {"MemorySize": "128"}),
    ("MemorySize", {"MemorySize": "10241"}),
    ("Architecture", {"Architecture": "arm"}),
    ("L1CacheBytes", {"L1CacheBytes": "1.5"}),
    ("ReservedConcurrency", {"ReservedConcurrency": "0"}),
    ("ReservedConcurrency", {"ReservedConcurrency": "-1"}),
    ("AuthMode", {"AuthMode": "none"}),
    ("JwtIssuer", {**JWT, "JwtIssuer": "http://example.com"}),
    ("CorsAllowOrigin", {"CorsAllowOrigin": "https://example.com/page"}),
    ("AlarmEmail", {"AlarmEmail": "someone"}),
    ("LogRetentionDays", {"LogRetentionDays": "31"}),
    ("KeptVersions", {"KeptVersions": "1"}),
    ("WarmEnvironments", {"WarmEnvironments": "51"}),
    ("TrafficShift", {"TrafficShift": "Canary10Percent"}),
    ("KeepFailedEvents", {"KeepFailedEvents": "true"}),
]


@pytest.mark.parametrize(("name", "parameters"), WRONG)
def test_wrong_parameters_are_refused_before_anything_is_created(
    name: str, parameters: dict[str, str]
) -> None:
    """Constraints and rules of the template turn down what cannot work, and nothing else."""
    refusals = stack(**parameters).refusals
    assert {refusal.name for refusal in refusals} == {name}
    assert all(refusal.reason for refusal in refusals)


@pytest.mark.parametrize("parameters", ALL)
def test_right_parameters_are_not_refused(parameters: dict[str, str]) -> None:
    """Every mode is accepted."""
    assert stack(**parameters).refusals == ()


def test_every_rule_of_the_template_is_tested() -> None:
    """Each rule of the template is broken by some case above."""
    assert set(stacks.documents()["written"]["Rules"]) <= {name for name, _ in WRONG}
