"""How a new version is published, verified, watched and left to go back to."""

import pytest

from tests.support import stacks
from tests.support.stacks import FORGETFUL, JWT, PREDICT_ALIAS, SNAPSTART, WARMED, WATCHED, properties, stack

pytestmark = stacks.needs_translator


def test_deployments_are_verified_and_can_roll_back() -> None:
    """Before traffic shifts one function verifies, afterwards another prunes; alarms and failures go back."""
    made = stack()
    update = made.resources[PREDICT_ALIAS]["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]
    hooks = [update[f"{when}AllowTrafficHook"]["Ref"] for when in ("Before", "After")]
    assert [made.folders[hook].name for hook in hooks] == ["pre_traffic", "post_traffic"]
    group = properties(made, update["DeploymentGroupName"]["Ref"])
    watched = [alarm["Name"]["Ref"] for alarm in group["AlarmConfiguration"]["Alarms"]]
    assert group["AlarmConfiguration"]["Enabled"]
    assert {properties(made, alarm)["MetricName"] for alarm in watched} == {"Errors", "Duration"}
    assert group["AutoRollbackConfiguration"]["Enabled"]
    assert {"DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_ALARM"} <= set(
        group["AutoRollbackConfiguration"]["Events"]
    )


def description(**parameters: str) -> str:
    """Of the version that these parameters publish."""
    [version] = stack(**parameters).of_type("AWS::Lambda::Version").values()
    found: str = version["Description"]
    return found


@pytest.mark.parametrize(
    "changed",
    [
        {"MemorySize": "3008"},
        {"L1CacheBytes": "0"},
        {"CachePolicy": "off"},
        {"LogLevel": "off"},
        SNAPSTART,
    ],
)
def test_a_version_is_published_when_the_function_changes(changed: dict[str, str]) -> None:
    """What shapes the function is in the version's description, which makes it another version."""
    assert description(**changed) != description()


@pytest.mark.parametrize(
    "changed",
    [{"ProvisionedConcurrencyMax": "9"}, WARMED, JWT, WATCHED, FORGETFUL, {"ReservedConcurrency": "7"}],
)
def test_no_version_is_published_when_it_does_not(changed: dict[str, str]) -> None:
    """Lambda refuses to publish what has not changed, so the description must not change either."""
    assert description(**changed) == description()
    function = properties(stack(**changed), "PredictFunction")
    # Reserved concurrency belongs to the function and to no version.
    function.pop("ReservedConcurrentExecutions", None)
    assert function == properties(stack(), "PredictFunction")


def test_versions_stay_to_go_back_to() -> None:
    """Neither new code nor a changed parameter makes CloudFormation delete the version before."""
    [version] = [r for r in stack().resources.values() if r["Type"] == "AWS::Lambda::Version"]
    assert (version["DeletionPolicy"], version["UpdateReplacePolicy"]) == ("Retain", "Retain")
    # The function itself goes when the stack goes.
    assert "DeletionPolicy" not in stack().resources["PredictFunction"]


def test_the_hook_knows_the_new_version() -> None:
    """The hook that verifies is told the version of this deployment, not the alias and not $LATEST."""
    made = stack()
    [version] = made.of_type("AWS::Lambda::Version")
    hook = properties(made, "DeploymentPreTrafficFunction")["Environment"]["Variables"]
    assert hook == {"NEW_VERSION": {"Ref": version}, "WARM_ENVIRONMENTS": 2}
    warmed = properties(stack(**WARMED), "DeploymentPreTrafficFunction")["Environment"]["Variables"]
    assert warmed["WARM_ENVIRONMENTS"] == "5"


def test_deployment_alarms_watch_the_new_version_only() -> None:
    """Errors of the version before must not stop the deployment that repairs it."""
    made = stack()
    [version] = made.of_type("AWS::Lambda::Version")
    for name in ("DeploymentNewVersionErrorsAlarm", "DeploymentNewVersionLatencyAlarm"):
        dimensions = {d["Name"]: d["Value"] for d in properties(made, name)["Dimensions"]}
        assert dimensions == {
            "FunctionName": {"Ref": "PredictFunction"},
            "Resource": {"Fn::Sub": "${PredictFunction}:live"},
            "ExecutedVersion": {"Fn::GetAtt": [version, "Version"]},
        }


def test_a_new_version_goes_back_at_the_first_error_or_when_it_is_slow() -> None:
    """One error is enough, and the latency is the one that wakes somebody; no traffic is no reason."""
    made = stack(LatencyAlarmMs="111")
    for name, most in (("Errors", 0), ("Latency", "111")):
        alarm = properties(made, f"DeploymentNewVersion{name}Alarm")
        assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", most)
        assert alarm["TreatMissingData"] == "notBreaching"
