"""What the stack stores: the cache, and asynchronous events that failed."""

import json
from typing import Any

import pytest

from coldframe_local.emulator.template.syntax.cloudformation import Stack
from tests.support import stacks
from tests.support.stacks import ALL, FORGETFUL, MODES, PREDICT_ALIAS, WARMED, properties, stack

pytestmark = stacks.needs_translator


@pytest.mark.parametrize(
    ("policy", "of", "actions"),
    [("CacheBucketPolicy", "CacheBucket", "s3:*"), ("FailedEventsPolicy", "FailedEvents", "sqs:*")],
)
def test_data_is_given_over_tls_only(policy: str, of: str, actions: str) -> None:
    """Whoever asks bucket or queue without TLS is refused; the policies let nobody in."""
    found = properties(stack(), policy)
    assert {"Ref": of} in (found.get("Bucket"), *found.get("Queues", []))
    [statement] = found["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", actions)
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert {"Fn::GetAtt": [of, "Arn"]} in (statement["Resource"], *statement["Resource"])


@pytest.mark.parametrize("parameters", ALL)
def test_everything_goes_with_the_stack(parameters: dict[str, str]) -> None:
    """No data and no logs stay behind when the stack is deleted; versions go with their function."""
    made = stack(**parameters)
    stays = {name for name, found in made.resources.items() if found.get("DeletionPolicy") == "Retain"}
    assert stays == set(made.of_type("AWS::Lambda::Version"))


FAILED_EVENTS = {"Fn::GetAtt": ["FailedEvents", "Arn"]}
SENDS = [{"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": FAILED_EVENTS}]
CODEDEPLOY_WAITS_S = 3600  # docs/decisions/0028-failed-events.md


def sending(made: Stack, function: str) -> list[dict[str, Any]]:
    """What the role of a function says of SQS."""
    role = properties(made, function)["Role"]["Fn::GetAtt"][0]
    statements = [s for p in properties(made, role)["Policies"] for s in p["PolicyDocument"]["Statement"]]
    return [statement for statement in statements if "sqs:" in json.dumps(statement["Action"])]


def invoke_configs(made: Stack) -> dict[str, dict[str, Any]]:
    """How asynchronous events are handled, by function."""
    configs = made.of_type("AWS::Lambda::EventInvokeConfig").values()
    return {config["FunctionName"]["Ref"]: config for config in configs}


@pytest.mark.parametrize("mode", MODES)
def test_failed_events_are_kept(mode: str) -> None:
    """Events of each function that fail go to the one queue; its own role may send to it, and no more."""
    made = stack(**MODES[mode], **(WARMED if mode == "OnDemand" else {}))
    configs = invoke_configs(made)
    assert set(configs) == set(made.of_type("AWS::Lambda::Function"))
    for function, config in configs.items():
        assert config["DestinationConfig"] == {"OnFailure": {"Destination": FAILED_EVENTS}}
        assert sending(made, function) == SENDS
        # What calls $LATEST of the predict function, or a version of it, is a test.
        assert config["Qualifier"] == ("live" if function == "PredictFunction" else "$LATEST")
    assert made.resources["PredictEventInvokeConfig"]["DependsOn"] == PREDICT_ALIAS


def test_only_requests_are_tried_again() -> None:
    """A request is tried three times; a round of pings and a hook once, and a hook while CodeDeploy waits."""
    for function, config in invoke_configs(stack(**WARMED)).items():
        assert config["MaximumRetryAttempts"] == (2 if function == "PredictFunction" else 0)
        assert config["MaximumEventAgeInSeconds"] <= CODEDEPLOY_WAITS_S


def test_texts_need_not_be_kept() -> None:
    """Without KeepFailedEvents those of the predict function, which hold texts, go nowhere; others do."""
    made, keeping = stack(**FORGETFUL, **WARMED), stack(**WARMED)
    kept = invoke_configs(keeping)
    for function, config in invoke_configs(made).items():
        if function == "PredictFunction":
            assert config == {
                key: value for key, value in kept[function].items() if key != "DestinationConfig"
            }
            assert sending(made, function) == []
        else:
            assert config == kept[function]
            assert sending(made, function) == SENDS


def test_queue_takes_what_lambda_sends() -> None:
    """The queue takes the largest asynchronous event (1 MB), encrypted, and keeps it as long as SQS can."""
    queue = properties(stack(), "FailedEvents")
    assert queue["MaximumMessageSize"] == 1_048_576
    assert queue["MessageRetentionPeriod"] == 14 * 86_400
    assert queue["SqsManagedSseEnabled"]
