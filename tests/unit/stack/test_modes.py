"""What the cold start modes make of the stack, and what excludes each other."""

import re

import pytest

from coldframe.capacity.prices import PRICES
from coldframe.feedback.texts import new_keys
from coldframe.warming.decision import Guards
from coldframe.warming.settings import predicting
from coldframe_local.emulator.template.syntax.cloudformation import load_stack
from tests.support import stacks
from tests.support.stacks import (
    ALL,
    FORGETFUL,
    GUARANTEED,
    JWT,
    MODES,
    MONITORED,
    OFFLINE,
    PREDICT_ALIAS,
    PREDICTED,
    PROVISIONED,
    SNAPSTART,
    TEMPLATE,
    TRACED,
    WARMED,
    WATCHED,
    WITH_EXPERIMENTS,
    WITH_FEEDBACK,
    WITH_JOBS,
    properties,
    stack,
)

pytestmark = stacks.needs_translator


@pytest.mark.parametrize("parameters", [PROVISIONED, SNAPSTART, {**WARMED, **JWT, **WATCHED}, FORGETFUL])
def test_translation_does_not_depend_on_parameters(parameters: dict[str, str]) -> None:
    """SAM makes the same stack whether it knows the parameters or CloudFormation fills them in afterwards."""
    assert load_stack(TEMPLATE, parameters).resources == stack(**parameters).resources


# What each mode adds: it is there when the condition holds, and costs nothing otherwise.

ONLY_IN = {
    "Provisioned": [PROVISIONED],  # ProvisionedConcurrencyTarget and -Policy
    "WatchingSpilloverAlarm": [PROVISIONED],
    "Warmer": [WARMED, PREDICTED, GUARANTEED],
    "WarmerTarget": [GUARANTEED],
    "WatchingAlarmTopic": [WATCHED],
    "Offline": [OFFLINE],
    "WatchingRunsAlarm": [OFFLINE],
    "JobsWorker": [WITH_JOBS],
    "Traces": [TRACED],
    "Experiment": [WITH_EXPERIMENTS],
    "Feedback": [WITH_FEEDBACK, MONITORED],
    "Monitoring": [MONITORED],
}


@pytest.mark.parametrize("parameters", ALL)
def test_what_is_not_asked_for_is_not_there(parameters: dict[str, str]) -> None:
    """Scaling, warmer and topic exist with the parameter that asks for them; all else exists always."""
    found = set(stack(**parameters).resources)
    optional = {prefix: {name for name in found if name.startswith(prefix)} for prefix in ONLY_IN}
    assert {prefix for prefix, names in optional.items() if names} == {
        prefix for prefix, asking in ONLY_IN.items() if parameters in asking
    }
    assert found - set().union(*optional.values()) == set(stack().resources)


@pytest.mark.parametrize("mode", MODES)
def test_what_excludes_each_other_never_meets(mode: str) -> None:
    """Environments come from one source in each mode, and provisioned concurrency never meets a weight."""
    made = stack(**MODES[mode])
    snapshots = properties(made, "PredictFunction")["SnapStart"]["ApplyOn"] == "PublishedVersions"
    provisioned = "ProvisionedConcurrencyConfig" in properties(made, PREDICT_ALIAS)
    assert (snapshots, provisioned) == (mode == "SnapStart", mode == "Provisioned")
    shift = properties(made, "PredictFunctionDeploymentGroup")["DeploymentConfigName"]
    assert (shift == "CodeDeployDefault.LambdaAllAtOnce") == provisioned


def test_traffic_shift_is_a_choice() -> None:
    """The chosen kind of traffic shift is the one that CodeDeploy is told, by the name that it knows."""
    made = load_stack(TEMPLATE, {"TrafficShift": "Linear10PercentEvery3Minutes"})
    group = properties(made, "PredictFunctionDeploymentGroup")
    assert group["DeploymentConfigName"] == "CodeDeployDefault.LambdaLinear10PercentEvery3Minutes"


def test_scaling_is_about_the_alias_that_requests_call() -> None:
    """What is scaled is `live`, once it is there; environments of another qualifier would get no request."""
    made = stack(**PROVISIONED)
    target = made.resources["ProvisionedConcurrencyTarget"]
    function, alias = made.resources[target["DependsOn"]]["Properties"]["FunctionName"]["Ref"], "live"
    assert target["Properties"]["ResourceId"] == {"Fn::Sub": f"function:${{{function}}}:{alias}"}
    assert properties(made, target["DependsOn"])["Name"] == alias


def test_scaling_starts_from_what_a_deployment_sets() -> None:
    """A deployment provisions the minimum, so that it takes no environment away that scaling must keep."""
    made = stack(ProvisionedConcurrencyMin="2", ProvisionedConcurrencyMax="9", **PROVISIONED)
    target = properties(made, "ProvisionedConcurrencyTarget")
    set_by_deployment = properties(made, PREDICT_ALIAS)["ProvisionedConcurrencyConfig"]
    assert set_by_deployment["ProvisionedConcurrentExecutions"] == target["MinCapacity"] == "2"
    assert target["MaxCapacity"] == "9"


def test_scaling_leaves_environments_for_what_comes_meanwhile() -> None:
    """Scaling begins before all environments are busy: at 1.0 it would begin after the first cold start."""
    policy = properties(stack(**PROVISIONED), "ProvisionedConcurrencyPolicy")
    tracking = policy["TargetTrackingScalingPolicyConfiguration"]
    metric = tracking["PredefinedMetricSpecification"]["PredefinedMetricType"]
    assert metric == "LambdaProvisionedConcurrencyUtilization"
    assert 0.5 <= tracking["TargetValue"] < 1
    assert policy["ScalingTargetId"] == {"Ref": "ProvisionedConcurrencyTarget"}


@pytest.mark.parametrize("given", ["", "0", "1000"])
def test_l1_cache(given: str) -> None:
    """The size of the cache in memory is the function's business unless a number is given."""
    variables = properties(stack(L1CacheBytes=given), "PredictFunction")["Environment"]["Variables"]
    assert variables.get("COLDFRAME_L1_CACHE_BYTES", "") == given


def test_texts_of_feedback_need_their_keys_and_their_library() -> None:
    """A public key reaches the function; without FeedbackKey or ImageExtra=feedback it is refused."""
    texts = {"FeedbackTextKey": new_keys()[0]}
    complete = stack(**texts, **WITH_FEEDBACK, ImageExtra="feedback")
    variables = properties(complete, "PredictFunction")["Environment"]["Variables"]
    assert variables["COLDFRAME_FEEDBACK_TEXT_KEY"] == texts["FeedbackTextKey"]
    assert complete.refusals == ()
    variables = properties(stack(**WITH_FEEDBACK), "PredictFunction")["Environment"]["Variables"]
    assert "COLDFRAME_FEEDBACK_TEXT_KEY" not in variables
    for part in (WITH_FEEDBACK, {"ImageExtra": "feedback"}):
        assert [refusal.name for refusal in stack(**texts, **part).refusals] == ["TextsNeedFeedback"]


def test_a_secret_key_is_refused_as_a_public_one() -> None:
    """A secret key in FeedbackTextKey, by mistake, is refused before anything is created."""
    refusals = stack(FeedbackTextKey=new_keys()[1], **WITH_FEEDBACK, ImageExtra="feedback").refusals
    assert [refusal.name for refusal in refusals] == ["FeedbackTextKey"]


def test_the_longest_description_of_a_version_fits() -> None:
    """Lambda takes a description with 256 characters."""
    longest = {
        "Models": "m" * 120, "MemorySize": "10240", "L1CacheBytes": "9" * 11, "CachePolicy": "adaptive",
        "JobsKeepDays": "14", "FeedbackKeyNumber": "9999", "FeedbackSample": "0.001", "FeedbackDays": "3650",
        "FeedbackTextKey": new_keys()[0], "ImageExtra": "feedback",
    }  # fmt: skip
    versions = dict(stack(**longest, **WITH_FEEDBACK).of_type("AWS::Lambda::Version"))
    [description] = [version["Description"] for name, version in versions.items() if "Predict" in name]
    assert "m" * 120 in description
    assert len(description) <= 256


@pytest.mark.parametrize("given", ["", "7"])
def test_reserved_concurrency(given: str) -> None:
    """Nothing is reserved unless a number is given."""
    function = properties(stack(ReservedConcurrency=given), "PredictFunction")
    assert function.get("ReservedConcurrentExecutions") == (given or None)


def test_warmer_is_called_before_environments_are_gone() -> None:
    """The schedule comes twice in the ten minutes that an idle environment was seen to live, and may call."""
    made = stack(**WARMED)
    rule = properties(made, "WarmerFunctionEveryFiveMinutes")
    [minutes] = re.findall(r"^rate\((\d+) minutes\)$", rule["ScheduleExpression"])
    assert int(minutes) * 2 <= 10
    assert [target["Arn"] for target in rule["Targets"]] == [{"Fn::GetAtt": ["WarmerFunction", "Arn"]}]
    permission = properties(made, "WarmerFunctionEveryFiveMinutesPermission")
    assert permission["SourceArn"] == {"Fn::GetAtt": ["WarmerFunctionEveryFiveMinutes", "Arn"]}
    # A round that waited longer than this meets the next one.
    late_s = properties(made, "WarmerFunctionEventInvokeConfig")["MaximumEventAgeInSeconds"]
    assert late_s <= int(minutes) * 60


def test_warmer_pings_the_alias_that_requests_call() -> None:
    """The warmer is told the function, the alias and the number."""
    made = stack(**WARMED)
    variables = properties(made, "WarmerFunction")["Environment"]["Variables"]
    assert variables["FUNCTION_NAME"] == {"Ref": "PredictFunction"}
    assert variables["ALIAS"] == properties(made, PREDICT_ALIAS)["Name"]
    assert (variables["WARM_ENVIRONMENTS"], variables["PREDICTION"]) == ("5", "off")
    assert predicting(variables, PRICES) is None


def test_warmer_predicts_by_the_template_s_parameters() -> None:
    """Guards and prices are those of the stack, by the names that the function reads."""
    asked = {
        **PREDICTED,
        "WarmMinimum": "1",
        "WarmMaximum": "7",
        "WarmUsdPerDay": "0.5",
        "MemorySize": "1024",
    }
    variables = properties(stack(**asked), "WarmerFunction")["Environment"]["Variables"]
    told = {name: "a-name" if isinstance(value, dict) else str(value) for name, value in variables.items()}
    settings = predicting(told, PRICES)
    assert settings is not None
    assert settings.guards == Guards(least=1, most=7, day_usd=0.5, guaranteed=0, fixed=0)
    assert settings.ping.cold_usd == 0.001
    assert settings.ping.idle_usd == pytest.approx(0.2e-6 + 0.3 * 0.0000133334)
    assert variables["TABLE"] == {"Ref": "CacheTable"}


def test_a_guarantee_scales_the_alias_down_to_zero() -> None:
    """Application Auto Scaling may provision none; a new version gets its traffic at once."""
    made = stack(**GUARANTEED)
    target = properties(made, "WarmerTarget")
    assert (int(target["MinCapacity"]), target["MaxCapacity"]) == (0, "3")
    assert target["ScalableDimension"] == "lambda:function:ProvisionedConcurrency"
    shift = properties(made, "PredictFunctionDeploymentGroup")["DeploymentConfigName"]
    assert shift == "CodeDeployDefault.LambdaAllAtOnce"
