"""`coldframe check`: each rule refuses what breaks it, and nothing else does."""

import copy
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from coldframe.capacity import limits as quotas
from coldframe.model.bundle import EncoderFacts, EncoderManifest, FileEntry, Manifest
from coldframe.model.files import DEFAULT
from coldframe_local.deploy.check.check import RULES, check
from coldframe_local.deploy.check.deployment import Deployment, InitFailed, load_deployment, measure_init_s
from coldframe_local.emulator.template.syntax.cloudformation import Stack, load_stack, stack_of
from tests.conftest import EXAMPLE, ROOT, tiny_encoder_manifest, tiny_manifest
from tests.support import stacks
from tests.support.stacks import (
    FORGETFUL,
    JWT,
    OPEN,
    PROVISIONED,
    SNAPSTART,
    TEMPLATE,
    TRACED,
    WARMED,
    WATCHED,
    WITH_JOBS,
)

pytestmark = stacks.needs_translator

Resources = dict[str, dict[str, Any]]


def deployment_of(
    stack: Stack,
    *models: tuple[Manifest, EncoderManifest],
    account_concurrency: int = 1000,
    init_s: float = 1.0,
) -> Deployment:
    built = {model.name: (model, encoder) for model, encoder in models or [tiny_pair()]}
    return Deployment(
        stack, Path("models"), built, account_concurrency, lambda models, initialization_type: init_s
    )


def tiny_pair() -> tuple[Manifest, EncoderManifest]:
    """A model and its encoder."""
    return tiny_manifest(), tiny_encoder_manifest()


def broken(break_it: Callable[[Resources], None], **parameters: str) -> Stack:
    """The stack of the template after `break_it` changed its resources."""
    changed = copy.deepcopy(stacks.documents())
    break_it(changed["translated"]["Resources"])
    return stack_of(TEMPLATE, changed["written"], changed["translated"], parameters)


def nothing(resources: Resources) -> None:
    """The template as it is."""


def set_property(name: str, path: str, value: Any) -> Callable[[Resources], None]:
    """Changes one property; the last part of `path` may be new."""

    def change(resources: Resources) -> None:
        at: Any = resources[name]
        *parents, last = path.split(".")
        for part in parents:
            at = at.setdefault(part, {})
        at[last] = value

    return change


def integration(resources: Resources) -> dict[str, Any]:
    body = resources["HttpApi"]["Properties"]["Body"]
    route: dict[str, Any] = body["paths"]["/$default"]["x-amazon-apigateway-any-method"]
    found: dict[str, Any] = route["x-amazon-apigateway-integration"]
    return found


def patient_api(resources: Resources) -> None:
    integration(resources)["timeoutInMillis"] = 30_001


def impatient_api(resources: Resources) -> None:
    integration(resources)["timeoutInMillis"] = 29_000


def api_of_latest(resources: Resources) -> None:
    integration(resources)["uri"] = {
        "Fn::Sub": "…:path/2015-03-31/functions/${PredictFunction.Arn}/invocations"
    }
    resources["AnyPermission"] = {
        "Type": "AWS::Lambda::Permission",
        "Properties": {
            "Principal": "apigateway.amazonaws.com",
            "FunctionName": {"Fn::GetAtt": ["PredictFunction", "Arn"]},
        },
    }


def without_permission(resources: Resources) -> None:
    del resources["PredictFunctionAnyRoutePermission"]


def permission_of_the_function(resources: Resources) -> None:
    permission = resources["PredictFunctionAnyRoutePermission"]["Properties"]
    permission["FunctionName"] = {"Ref": "PredictFunction"}


def weighted(resources: Resources) -> None:
    resources["PredictFunctionAliaslive"]["Properties"]["RoutingConfig"] = {"AdditionalVersionWeights": []}


def without_table(resources: Resources) -> None:
    variables = resources["PredictFunction"]["Properties"]["Environment"]["Variables"]
    del variables["COLDFRAME_CACHE_BUCKET"]


def without_sending(role: str) -> Callable[[Resources], None]:
    """Takes away from a role what its function's destination needs."""

    def change(resources: Resources) -> None:
        properties = resources[role]["Properties"]
        properties["Policies"] = [p for p in properties["Policies"] if "KeepFailedEvents" not in str(p)]

    return change


def sending_elsewhere(resources: Resources) -> None:
    [statement] = resources["WarmerRole"]["Properties"]["Policies"][-1]["PolicyDocument"]["Statement"]
    statement["Resource"] = {"Fn::GetAtt": ["CacheBucket", "Arn"]}


def without(name: str, key: str) -> Callable[[Resources], None]:
    """Takes a property away."""

    def change(resources: Resources) -> None:
        del resources[name]["Properties"][key]

    return change


def without_resource(name: str) -> Callable[[Resources], None]:
    """Takes a resource away."""

    def change(resources: Resources) -> None:
        del resources[name]

    return change


def subscribed_three_times(resources: Resources) -> None:
    for name in ("Second", "Third"):
        resources[name] = resources["TracesPredictSubscription"]


def visible_after(seconds: int) -> Callable[[Resources], None]:
    """Hides messages of jobs for so long."""
    return set_property("JobsWorkerQueue", "Properties.VisibilityTimeout", seconds)


def fifo(resources: Resources) -> None:
    resources["FailedEvents"]["Properties"]["FifoQueue"] = True


def managed(function: str, timeout_s: int) -> Callable[[Resources], None]:
    """The function runs on managed instances, with this timeout."""

    def change(resources: Resources) -> None:
        of = {"LambdaManagedInstancesCapacityProviderConfig": {"CapacityProviderArn": "arn:aws:lambda:…"}}
        resources[function]["Properties"] |= {"CapacityProviderConfig": of, "Timeout": timeout_s}

    return change


def pollers(*, limited: bool = False, **config: int) -> Callable[[Resources], None]:
    """The queue of jobs has provisioned pollers. limited: and keeps its limit of concurrency."""

    def change(resources: Resources) -> None:
        properties = resources[JOBS_MAPPING]["Properties"]
        properties["ProvisionedPollerConfig"] = config
        if not limited:
            del properties["ScalingConfig"]

    return change


TARGET = "ProvisionedConcurrencyTarget"
JOBS_MAPPING = "JobsWorkerFunctionMessages"
PREDICT_VARIABLES = "Properties.Environment.Variables"
CANARY = "CodeDeployDefault.LambdaCanary10Percent5Minutes"

# rule, what breaks it, parameters
BREAKS: list[tuple[str, Callable[[Resources], None], dict[str, str]]] = [
    ("ParameterRefused", nothing, {"MemorySize": "511"}),
    ("ParameterRefused", nothing, {"MemorySize": "much"}),
    ("ParameterRefused", nothing, {"ColdStartMode": "Warm"}),
    ("ParameterRefused", nothing, {"AuthMode": "JWT"}),
    ("SettingRefused", set_property("PredictFunction", f"{PREDICT_VARIABLES}.COLDFRAME_THREADS", 0), {}),
    ("SettingRefused", set_property("PredictFunction", f"{PREDICT_VARIABLES}.COLDFRAME_COLOUR", "red"), {}),
    ("TimeoutOverQuota", set_property("DeploymentPreTrafficFunction", "Properties.Timeout", 901), {}),
    ("TimeoutOverQuota", managed("DeploymentPreTrafficFunction", 5401), {}),
    ("TimeoutOverIntegration", set_property("PredictFunction", "Properties.Timeout", 30), {}),
    ("TimeoutOverIntegration", patient_api, {}),
    ("TimeoutOverIntegration", impatient_api, {}),
    ("MemoryOverQuota", set_property("PredictFunction", "Properties.MemorySize", 10_241), {}),
    ("StorageOverQuota", set_property("PredictFunction", "Properties.EphemeralStorage.Size", 10_241), {}),
    (
        "StorageOverQuota",
        set_property("PredictFunction", "Properties.EphemeralStorage.Size", 513),
        SNAPSTART,
    ),
    ("EnvironmentOverQuota", set_property("PredictFunction", f"{PREDICT_VARIABLES}.MORE", "x" * 4096), {}),
    ("LayersOverQuota", set_property("PredictFunction", "Properties.Layers", ["arn:aws:lambda:…"] * 6), {}),
    (
        "PayloadOverQuota",
        set_property("PredictFunction", f"{PREDICT_VARIABLES}.COLDFRAME_MAX_BODY_BYTES", 6_291_457),
        {},
    ),
    (
        "PayloadOverQuota",
        set_property("PredictFunction", f"{PREDICT_VARIABLES}.COLDFRAME_MAX_ANSWER_BYTES", "6291457"),
        {},
    ),
    ("ConcurrencyOverQuota", nothing, {"ReservedConcurrency": "901"}),
    ("ConcurrencyOverQuota", nothing, {**PROVISIONED, "ProvisionedConcurrencyMax": "901"}),
    (
        "ProvisionedOverReserved",
        nothing,
        {**PROVISIONED, "ReservedConcurrency": "3", "ProvisionedConcurrencyMax": "4"},
    ),
    ("ProvisionedOverReserved", nothing, {"ReservedConcurrency": "3", "WarmEnvironments": "4"}),
    ("WarmingOutOfOrder", nothing, {"WarmPrediction": "on", "WarmMinimum": "11"}),
    ("WarmingOutOfOrder", nothing, {"WarmPrediction": "on", "WarmGuaranteed": "11"}),
    ("WarmingOutOfOrder", nothing, {"WarmPrediction": "on", "ReservedConcurrency": "9"}),
    ("ProvisionedOutOfOrder", nothing, {**PROVISIONED, "ProvisionedConcurrencyMin": "5"}),
    (
        "ProvisionedOnLatest",
        set_property(TARGET, "Properties.ResourceId", {"Fn::Sub": "function:${PredictFunction}"}),
        PROVISIONED,
    ),
    (
        "ProvisionedOnLatest",
        set_property(TARGET, "Properties.ResourceId", "function:predict:$LATEST"),
        PROVISIONED,
    ),
    ("ApiBypassesAlias", api_of_latest, {}),
    (
        "ProvisionedWithSnapStart",
        set_property("PredictFunction", "Properties.SnapStart.ApplyOn", "PublishedVersions"),
        PROVISIONED,
    ),
    ("ProvisionedWithWeights", weighted, PROVISIONED),
    (
        "ProvisionedWithWeights",
        set_property("PredictFunctionDeploymentGroup", "Properties.DeploymentConfigName", CANARY),
        PROVISIONED,
    ),
    ("MissingPermission", without_permission, {}),
    ("MissingPermission", permission_of_the_function, {}),
    ("DestinationRefused", fifo, {}),
    (
        "DestinationRefused",
        set_property(
            "DeploymentPostTrafficFunctionEventInvokeConfig",
            "Properties.DestinationConfig.OnFailure.Destination",
            {"Ref": "FailedEvents"},
        ),
        {},
    ),
    ("MissingDestinationPermission", without_sending("PredictRole"), {}),
    ("VisibilityUnderTimeout", visible_after(120), WITH_JOBS),
    ("VisibilityUnderTimeout", without("JobsWorkerQueue", "VisibilityTimeout"), WITH_JOBS),
    ("VisibilityUnderTimeout", set_property("JobsWorkerFunction", "Properties.Timeout", 720), WITH_JOBS),
    ("MissingPartialFailures", without(JOBS_MAPPING, "FunctionResponseTypes"), WITH_JOBS),
    ("MissingDeadLetterQueue", without("JobsWorkerQueue", "RedrivePolicy"), WITH_JOBS),
    ("PollersOutOfOrder", pollers(limited=True, MinimumPollers=2), WITH_JOBS),
    ("PollersOutOfOrder", pollers(MinimumPollers=1), WITH_JOBS),
    ("PollersOutOfOrder", pollers(MinimumPollers=201, MaximumPollers=300), WITH_JOBS),
    ("PollersOutOfOrder", pollers(MinimumPollers=5, MaximumPollers=4), WITH_JOBS),
    ("PollersOutOfOrder", pollers(MaximumPollers=10_001), WITH_JOBS),
    ("MissingLogsPermission", without_resource("TracesPredictPermission"), TRACED),
    (
        "LogsInvokeThemselves",
        set_property("TracesPredictSubscription", "Properties.LogGroupName", {"Ref": "TracesLogGroup"}),
        TRACED,
    ),
    ("SubscriptionsOverQuota", subscribed_three_times, TRACED),
    ("MissingDestinationPermission", without_sending("WarmerRole"), WARMED),
    ("MissingDestinationPermission", sending_elsewhere, WARMED),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "break_it", "parameters"), BREAKS)
def test_rule_refuses_what_breaks_it(
    rule: str, break_it: Callable[[Resources], None], parameters: dict[str, str]
) -> None:
    """A template that breaks one rule is refused by that rule alone, with a name and a fix."""
    findings = check(deployment_of(broken(break_it, **parameters)))
    assert findings
    assert {finding.rule for finding in findings} == {rule}
    assert all(finding.where and finding.problem and finding.fix for finding in findings)


def test_zip_over_quota(tmp_path: Path) -> None:
    """Code and layers of a zip function count together, unpacked."""
    stack = broken(nothing)
    for name, size in {"DeploymentPreTrafficFunction": 1, "DeploymentSharedLayer": quotas.ZIP.value}.items():
        folder = tmp_path / name
        folder.mkdir()
        with (folder / "sparse").open("wb") as file:
            file.truncate(size)
    folders = {**stack.folders, **{folder.name: folder for folder in tmp_path.iterdir()}}
    golden = folders["DeploymentGoldenLayer"] = tmp_path / "empty"
    golden.mkdir()
    too_large = replace(stack, folders=folders)
    found = [
        finding
        for finding in check(deployment_of(too_large))
        if finding.where == "DeploymentPreTrafficFunction"
    ]
    assert [finding.rule for finding in found] == ["ZipOverQuota"]
    (tmp_path / "DeploymentPreTrafficFunction" / "sparse").unlink()
    assert [f for f in check(deployment_of(too_large)) if f.where == "DeploymentPreTrafficFunction"] == []


def test_image_over_quota() -> None:
    """Models of more than 10 GB fit into no image; the encoder that two of them share counts once."""
    stack, half = broken(nothing), quotas.IMAGE.value // 2
    encoder = structs.replace(tiny_encoder_manifest(), files={"encoder.ort": FileEntry("0" * 64, half)})
    for extra, rules in ((0, []), (1, ["ImageOverQuota"])):
        files = {"estimator.bin": FileEntry("0" * 64, quotas.IMAGE.value - half - 7 + extra)}
        large = structs.replace(tiny_manifest(), files=files)
        small = structs.replace(tiny_manifest("second"), files={"estimator.bin": FileEntry("0" * 64, 7)})
        found = check(deployment_of(stack, (large, encoder), (small, encoder)))
        assert [finding.rule for finding in found] == rules


def test_model_not_built() -> None:
    """A model that the function is to serve, and that its image will not have, is named."""
    both = set_property("PredictFunction", f"{PREDICT_VARIABLES}.COLDFRAME_MODELS", "topics,second")
    second = tiny_manifest("second"), tiny_encoder_manifest()
    assert check(deployment_of(broken(both), tiny_pair(), second)) == []
    [finding] = check(deployment_of(broken(both)))
    assert (finding.rule, finding.where) == ("ModelNotBuilt", "PredictFunction")
    assert "'second'" in finding.problem
    assert finding.fix == "Train it, or name some of: topics"


def test_function_without_its_model_is_not_loaded(bundle: Path) -> None:
    """The rule names the model that is missing, and no second error of the init phase hides it."""
    [finding] = check(load_deployment(broken(nothing, Models="nope"), bundle, 1000))
    assert (finding.rule, finding.fix) == ("ModelNotBuilt", "Train it, or name some of: topics")


def test_no_default_model(two_models: Path, tmp_path: Path) -> None:
    """An image of several models needs the parameter or the record: else its function would not start."""
    for part in two_models.iterdir():
        (tmp_path / part.name).symlink_to(part)
    several = tiny_pair(), (tiny_manifest("queues"), tiny_encoder_manifest())
    rules: dict[str, list[str]] = {}
    for models in ("", "topics"):
        deployment = replace(deployment_of(broken(nothing, Models=models), *several), model_dir=tmp_path)
        assert check(deployment) == []
        (tmp_path / DEFAULT).unlink(missing_ok=True)
        rules[models] = [finding.rule for finding in check(deployment)]
    assert rules == {"": ["NoDefaultModel"], "topics": []}


def test_item_over_quota() -> None:
    """Embeddings too large for an item need the bucket."""
    facts = EncoderFacts(dimension=102_400, max_tokens=256, max_windows=1)
    large = tiny_manifest("second"), structs.replace(tiny_encoder_manifest(), facts=facts)
    assert check(deployment_of(broken(nothing), tiny_pair(), large)) == []
    [finding] = check(deployment_of(broken(without_table), tiny_pair(), large))
    assert finding.rule == "ItemOverQuota"


@pytest.mark.parametrize(
    ("mode", "init_s", "refused"),
    [
        ("OnDemand", 9.9, False),
        ("OnDemand", 10.1, True),
        ("Provisioned", 129.9, False),
        ("Provisioned", 130.1, True),
        ("SnapStart", 129.9, False),
        ("SnapStart", 130.1, True),
    ],
)
def test_init_over_quota(mode: str, init_s: float, refused: bool) -> None:
    """Init may take 10 s on demand; ahead of traffic it may take longer."""
    findings = check(deployment_of(broken(nothing, ColdStartMode=mode), init_s=init_s))
    assert [finding.rule for finding in findings] == ["InitOverQuota"] * refused


def test_init_is_measured_as_the_mode_makes_it(bundle: Path) -> None:
    """The function is loaded for real, in a fresh process, on demand or ahead of traffic."""
    deployment = load_deployment(broken(nothing), bundle, 1000)
    for kind in ("on-demand", "provisioned-concurrency", "snap-start"):
        assert deployment.measure_init_s(EXAMPLE, kind) > 0
    assert {mode: deployment_of(broken(nothing, ColdStartMode=mode)).initialization_type("PredictFunction")
            for mode in ("OnDemand", "Provisioned", "SnapStart")} == {
        "OnDemand": "on-demand", "Provisioned": "provisioned-concurrency", "SnapStart": "snap-start",
    }  # fmt: skip


def test_init_that_fails_is_named(tmp_path: Path) -> None:
    """A function that does not load is an error that says why, not a duration."""
    with pytest.raises(InitFailed, match="has no model"):
        measure_init_s(tmp_path, EXAMPLE, "on-demand")
    with pytest.raises(InitFailed, match="has no model"):
        measure_init_s(tmp_path, "", "on-demand")


def test_account_limit_counts() -> None:
    """What may be set aside depends on the account's own limit."""
    stack = broken(nothing, ReservedConcurrency="901")
    assert check(deployment_of(stack, account_concurrency=1001)) == []
    [finding] = check(deployment_of(stack, account_concurrency=1000))
    assert "901 environments" in finding.problem


TESTED_APART = {
    "ZipOverQuota",
    "ImageOverQuota",
    "ModelNotBuilt",
    "NoDefaultModel",
    "ItemOverQuota",
    "InitOverQuota",
}


def test_every_rule_is_tested() -> None:
    """Each rule is in the table above or has a test of its own."""
    names = {"".join(word.title() for word in rule.__name__.split("_")) for rule in RULES}
    names = {name.replace("Snapstart", "SnapStart") for name in names}
    assert names == {rule for rule, _, _ in BREAKS} | TESTED_APART


MODES: list[dict[str, str]] = [{}, PROVISIONED, SNAPSTART, WARMED, JWT, OPEN, WATCHED, FORGETFUL]


@pytest.mark.parametrize("parameters", MODES)
def test_template_passes(parameters: dict[str, str]) -> None:
    """The project's template passes every rule in every mode."""
    assert check(deployment_of(broken(nothing, **parameters))) == []


def test_quotas_say_where_they_are_from() -> None:
    """Every quota names a page of AWS and the day when it was read."""
    found = [value for value in vars(quotas).values() if isinstance(value, quotas.Quota)]
    assert len(found) > 10
    for quota in found:
        assert quota.source.startswith(("https://docs.aws.amazon.com/", "https://repost.aws/"))
        assert re.fullmatch(r"202\d-\d\d-\d\d", quota.read)


@pytest.mark.parametrize(
    ("change", "parameters"),
    [
        (managed("DeploymentPreTrafficFunction", 5400), {}),
        (pollers(MinimumPollers=2, MaximumPollers=10_000), WITH_JOBS),
        (pollers(MinimumPollers=200), WITH_JOBS),
    ],
)
def test_what_aws_takes_is_not_refused(
    change: Callable[[Resources], None], parameters: dict[str, str]
) -> None:
    """Managed instances run for 90 minutes, and pollers within their range replace the limit."""
    assert check(deployment_of(broken(change, **parameters))) == []


def test_findings_are_one_line_each() -> None:
    """A finding is printed on one line: rule, place, problem, fix."""
    [finding] = check(deployment_of(broken(without_permission)))
    assert str(finding) == (
        "MissingPermission: HttpApi: no AWS::Lambda::Permission lets it invoke PredictFunctionAliaslive. "
        "Give the function an HttpApi event with this ApiId, or a permission on the alias."
    )


OTHER = """
Transform: AWS::Serverless-2016-10-31
Parameters:
  Memory: {Type: AWS::SSM::Parameter::Value<String>, Default: /memory}
Globals:
  Function: {Runtime: python3.13, Handler: app.handler, Timeout: 901}
Resources:
  Plain:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: .
      MemorySize: !Ref Memory
      Events:
        Http: {Type: HttpApi, Properties: {Path: /x, Method: get}}
        Rest: {Type: Api, Properties: {Path: /x, Method: get}}
  Both:
    Type: AWS::Serverless::Function
    Properties:
      InlineCode: "def handler(event, context): pass"
      Timeout: !ImportValue timeout
      AutoPublishAlias: live
      ProvisionedConcurrencyConfig: {ProvisionedConcurrentExecutions: 3}
      SnapStart: {ApplyOn: PublishedVersions}
      Layers: ["arn:aws:lambda:us-east-1:123456789012:layer:other:1"]
      DeploymentPreference: {Type: Canary10Percent5Minutes}
"""

EVENTS = """
Transform: AWS::Serverless-2016-10-31
Globals:
  Function: {Runtime: python3.13, Handler: app.handler, CodeUri: .}
Resources:
  RoleOfSam:
    Type: AWS::Serverless::Function
    Properties:
      EventInvokeConfig:
        DestinationConfig:
          OnSuccess: {Type: SNS}
          OnFailure: {Type: SQS, Destination: !GetAtt Failed.Arn}
  RoleOfAnAccount:
    Type: AWS::Serverless::Function
    Properties:
      Role: arn:aws:iam::123456789012:role/any
      EventInvokeConfig: {DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Failed.Arn}}}
  QueueOfAnAccount:
    Type: AWS::Serverless::Function
    Properties:
      Role: !GetAtt Silent.Arn
      EventInvokeConfig: {DestinationConfig: {OnFailure: {Type: SQS, Destination: !ImportValue failed}}}
  PolicyOfItsOwn:
    Type: AWS::Serverless::Function
    Properties:
      Role: !GetAtt Attached.Arn
      EventInvokeConfig: {DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Failed.Arn}}}
  Missing:
    Type: AWS::Serverless::Function
    Properties:
      Role: !GetAtt Silent.Arn
      EventInvokeConfig: {DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Failed.Arn}}}
  Failed: {Type: AWS::SQS::Queue}
  Silent: {Type: AWS::IAM::Role, Properties: {AssumeRolePolicyDocument: {}}}
  Attached: {Type: AWS::IAM::Role, Properties: {AssumeRolePolicyDocument: {}}}
  Attaches:
    Type: AWS::IAM::Policy
    Properties:
      PolicyName: send
      Roles: [!Ref Attached]
      PolicyDocument: {Statement: {Effect: Allow, Action: "sqs:*", Resource: "*"}}
"""


def test_destinations_of_other_templates(tmp_path: Path) -> None:
    """A permission is found wherever the stack gives it; what only an account knows is not judged."""
    file = tmp_path / "template.yaml"
    file.write_text(EVENTS)
    found = [(finding.rule, finding.where) for finding in check(deployment_of(load_stack(file)))]
    assert found == [("MissingDestinationPermission", "MissingEventInvokeConfig")]


def test_other_templates(tmp_path: Path) -> None:
    """Any SAM template is checked; what is known only once it is deployed is not judged."""
    file = tmp_path / "template.yaml"
    file.write_text(OTHER)
    found = [(finding.rule, finding.where) for finding in check(deployment_of(load_stack(file)))]
    assert found == [
        ("TimeoutOverQuota", "Plain"),
        ("TimeoutOverIntegration", "Plain"),
        ("ApiBypassesAlias", "ServerlessHttpApi"),
        ("ProvisionedWithSnapStart", "BothAliaslive"),
        ("ProvisionedWithWeights", "BothAliaslive"),
    ]


@pytest.mark.parametrize(
    ("parameters", "expected"), [({}, []), ({"Visibility": "10"}, [("VisibilityUnderTimeout", "Pictures")])]
)
def test_queues_of_other_templates(parameters: dict[str, str], expected: list[tuple[str, str]]) -> None:
    """A stranger's queue is judged by its window and by the timeout behind its function's alias."""
    stack = load_stack(ROOT / "tests" / "fixtures" / "stranger_queue.yaml", parameters)
    assert [(finding.rule, finding.where) for finding in check(deployment_of(stack))] == expected
