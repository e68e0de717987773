"""What of a template is not as on AWS is named: left out, ignored, without a value, missing."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from coldframe_local.emulator.template.syntax.errors import TemplateError
from coldframe_local.emulator.template.syntax.template_warnings import Effect, Note, lines
from coldframe_local.emulator.template.template import Template, load_template
from tests.unit.local.emulator.template.test_template import ROOT, ZIP, one_function

Load = Callable[[str], Template]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads a template that is written here, beside a folder `code`."""
    (tmp_path / "code").mkdir()

    def loaded(text: str) -> Template:
        path = tmp_path / "template.yaml"
        path.write_text(text)
        return load_template(path)

    return loaded


def said(template: Template) -> list[str]:
    """The lines, without those that differ by machine."""
    return [
        line
        for line in lines(template.notes)
        if ".Runtime: python3.13 on" not in line and ".Architectures: " not in line
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("FunctionUrlConfig: {AuthType: NONE}", "F.FunctionUrlConfig: the function has no URL here"),
        ("DeadLetterQueue: {Type: SQS, TargetArn: x}", "F.DeadLetterQueue: a failed event goes to"),
        ("TenancyConfig: {TenantIsolationMode: PER_TENANT}", "F.TenancyConfig: tenants share"),
        ("DurableConfig: {ExecutionTimeout: 9}", "F.DurableConfig: an execution that ends"),
        ("VpcConfig: {SubnetIds: [a], SecurityGroupIds: [b]}", "F.VpcConfig: the function is in this"),
        ("FileSystemConfigs: [{Arn: a, LocalMountPath: b}]", "F.FileSystemConfigs: no file system"),
        ("EphemeralStorage: {Size: 1024}", "F.EphemeralStorage: the folder for temporary files"),
        ("Tracing: Active", "F.Tracing: no trace is sent"),
        ("OfTomorrow: {A: 1}", "F.OfTomorrow: it is not read on this machine"),
        ("Environment: {Variables: {A: '1'}, OfTomorrow: 2}", "F.Environment.OfTomorrow: it is not read"),
    ],
)
def test_ignored_property_of_a_function(load: Load, written: str, expected: str) -> None:
    """Each is named with its logical id and what is otherwise here."""
    [line] = said(load(one_function(f"{ZIP}, {written}}}")))
    assert line.startswith(f"Ignored: {expected}")


def test_harmless_properties_are_not_named(load: Load) -> None:
    """What no function can notice, and what is switched off, is not a news."""
    harmless = (
        "Tags: {a: b}, Description: d, Role: r, SnapStart: {ApplyOn: None}, EphemeralStorage: {Size: 512},"
        " LoggingConfig: {LogFormat: Text, LogGroup: g}, Policies: [p], Tracing: !Ref AWS::NoValue"
    )
    more = "  A: {Type: AWS::CloudWatch::Alarm}\n  R: {Type: AWS::IAM::Role}"
    assert said(load(one_function(f"{ZIP}, {harmless}}}", more))) == []


def test_another_runtime_and_processor_are_named(load: Load) -> None:
    """An interpreter of another version, and a machine of another kind, are named with both."""
    other = "x86_64" if platform.machine() in ("aarch64", "arm64") else "arm64"
    function = f"{{CodeUri: code, Handler: a.b, Runtime: python3.9, Architectures: [{other}]}}"
    first, second = lines(load(one_function(function)).notes)
    assert first.startswith(f"Ignored: F.Architectures: it has the price of {other} and runs on ")
    assert second.startswith("Ignored: F.Runtime: python3.9 on AWS, python3.")


def test_what_aws_would_refuse(load: Load) -> None:
    """A timeout above Lambda's, and one of a REST API that AWS has to allow first."""
    event = "Events: {A: {Type: Api, Properties: {Path: /a, Method: get, TimeoutInMillis: 60000}}}"
    template = load(one_function(f"{ZIP}, Timeout: 1000, {event}}}"))
    timeout, integration = said(template)
    assert timeout.startswith("AWS would refuse: F.Timeout: 1000 s, expected at most 900 s")
    assert integration.startswith("AWS would refuse: ServerlessRestApi, GET /a, 60 s: AWS has to raise")
    assert template.apis[0].routes[0].timeout_s == 60.0
    with pytest.raises(TemplateError, match="waits 400000 ms, expected 50 to 300000"):
        load(one_function(f"{ZIP}, {event.replace('60000', '400000')}}}"))


def test_ignored_properties_of_apis_and_stores(load: Load) -> None:
    """Authorization, domains, streams and notifications are named, too."""
    event = "Events: {A: {Type: HttpApi, Properties: {ApiId: !Ref H}}}"
    more = """
  H:
    Type: AWS::Serverless::HttpApi
    Properties: {Auth: {DefaultAuthorizer: AWS_IAM}, Domain: {DomainName: a.example}, Tags: {a: b}}
  T:
    Type: AWS::DynamoDB::Table
    Properties:
      BillingMode: PROVISIONED
      ProvisionedThroughput: {ReadCapacityUnits: 1, WriteCapacityUnits: 1}
      KeySchema: [{AttributeName: k, KeyType: HASH}]
      AttributeDefinitions: [{AttributeName: k, AttributeType: S}]
  B: {Type: AWS::S3::Bucket, Properties: {NotificationConfiguration: {LambdaConfigurations: [1]}}}
  Q:
    Type: AWS::SQS::Queue
    Properties: {RedrivePolicy: {maxReceiveCount: 3, deadLetterTargetArn: !ImportValue theirs}}
"""
    assert said(load(one_function(f"{ZIP}, {event}}}", more))) == [
        "Ignored: H.Auth: anybody is served: authorization is not enforced on this machine.",
        "Ignored: Q.RedrivePolicy: the queue for failed messages is not in this template.",
        "Ignored: H.Domain: the API answers at this machine's address.",
        "Ignored: T.ProvisionedThroughput: the table is never throttled.",
        "Ignored: B.NotificationConfiguration: no notification about objects is sent.",
    ]


def test_what_does_not_exist_here(load: Load) -> None:
    """Resources that nothing on this machine stands for are named by what that means."""
    more = """
  M: {Type: AWS::StepFunctions::StateMachine}
  S: {Type: AWS::Lambda::EventSourceMapping, Properties: {FunctionName: x}}
  W: {Type: AWS::ApiGatewayV2::Api}
  V: {Type: AWS::ApiGatewayV2::Route}
  "Fn::ForEach::Each": [Name, [a, b], {}]
"""
    assert said(load(one_function(f"{ZIP}}}", more))) == [
        "Left out: Fn::ForEach::Each: Fn::ForEach is not expanded here. Write its resources out.",
        "Ignored: S.FunctionName: it is not a function that runs here.",
        "Not on this machine: M: AWS::StepFunctions::StateMachine.",
        "Not on this machine: W, V: only routes of AWS::Serverless::HttpApi and AWS::Serverless::Api"
        " are served.",
    ]


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (
            "{CodeUri: code, Handler: a.b, Runtime: nodejs22.x}",
            "found nodejs22.x, expected a Python function",
        ),
        ("{CodeUri: s3://bucket/key, Handler: a.b, Runtime: python3.13}", "its CodeUri is in S3"),
        ("{CodeUri: {Bucket: b, Key: k}, Handler: a.b, Runtime: python3.13}", "its CodeUri is in S3"),
        ("{PackageType: Image, ImageUri: 1.dkr.ecr/a:b}", "its image is in a registry"),
        (f"{ZIP}, FunctionName: !ImportValue name}}", "Fn::ImportValue cannot be evaluated"),
    ],
)
def test_function_that_cannot_be_run_is_left_out(load: Load, function: str, why: str) -> None:
    """The others run, and the line says why this one does not."""
    more = f"  G: {{Type: AWS::Serverless::Function, Properties: {function}}}"
    template = load(one_function(f"{ZIP}}}", more))
    assert [each.logical_id for each in template.functions] == ["F"]
    [line] = said(template)
    assert line.startswith("Left out: G: ")
    assert why in line


def test_route_of_a_function_that_is_left_out(load: Load) -> None:
    """It is not served, and the function's line is enough."""
    other = "{CodeUri: c, Handler: a.b, Runtime: nodejs22.x, Events: {A: {Type: HttpApi}}}"
    template = load(
        one_function(f"{ZIP}}}", f"  G: {{Type: AWS::Serverless::Function, Properties: {other}}}")
    )
    assert template.apis == ()
    assert len(said(template)) == 1


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("!GetAtt T.StreamArn", "StreamArn of T (AWS::DynamoDB::Table) has no value on this machine"),
        ("!Ref S", "Ref of S (AWS::SecretsManager::Secret) has no value on this machine"),
        ("!Sub 'a-${S}'", "Ref of S (AWS::SecretsManager::Secret) has no value on this machine"),
        ("!ImportValue other", "Fn::ImportValue cannot be evaluated on this machine"),
        ("'{{resolve:ssm:/a:1}}'", "'{{resolve:ssm:/a:1}}' is read by AWS during a deployment"),
    ],
)
def test_variable_that_only_aws_knows(load: Load, value: str, why: str) -> None:
    """It is not set, rather than set to a guess, and it is named."""
    more = """
  T:
    Type: AWS::DynamoDB::Table
    Properties: {StreamSpecification: {StreamViewType: NEW_IMAGE}}
  S: {Type: AWS::SecretsManager::Secret}
"""
    template = load(one_function(f"{ZIP}, Environment: {{Variables: {{A: {value}, B: '1'}}}}}}", more))
    environ = template.functions[0].settings.environ
    assert ("A" in environ, environ["B"]) == (False, "1")
    [line] = [line for line in said(template) if line.startswith("Not set: ")]
    assert line.startswith(f"Not set: F.Environment.Variables.A: {why}. Put a parameter in its place")


def test_code_that_is_not_there(load: Load, tmp_path: Path) -> None:
    """A folder that does not exist is named: every init phase would fail."""
    (tmp_path / "code").rmdir()
    assert said(load(one_function(f"{ZIP}}}"))) == [
        f"Missing: F: {tmp_path / 'code'} is not a folder: every init phase will fail."
    ]


def test_requirements_that_are_not_installed(load: Load, tmp_path: Path) -> None:
    """What a requirements.txt names and nobody installed is named, with what to do."""
    file = tmp_path / "code" / "requirements.txt"
    file.write_text("msgspec>=0.1  # here\nNot_There==1\nno-windows; sys_platform == 'win32'\n-r other.txt\n")
    [line] = said(load(one_function(f"{ZIP}}}")))
    assert line.startswith(f"Missing: F: Not_There of {file} cannot be imported. Run `pip install -r")
    vendored = tmp_path / "code" / "not_there-1.dist-info"
    vendored.mkdir()
    (vendored / "METADATA").write_text("Metadata-Version: 2.1\nName: not-there\nVersion: 1\n")
    assert said(load(one_function(f"{ZIP}}}"))) == []


def test_layers_of_another_account(load: Load) -> None:
    """A layer that is only an ARN is named: what it brings cannot be imported."""
    arn = "arn:aws:lambda:us-east-1:1:layer:other:1"
    assert said(load(one_function(f"{ZIP}, Layers: ['{arn}']}}"))) == [
        f"Missing: {arn} of F: the layer is not on this machine, and what it brings cannot be imported."
    ]


def test_lines_of_one_reason_are_one() -> None:
    """Notes that say the same of several places become one line; what is left out comes first."""
    notes = [Note(Effect.IGNORED, "A", "x"), Note(Effect.LEFT_OUT, "B", "y"), Note(Effect.IGNORED, "C", "x")]
    assert list(lines(notes)) == ["Left out: B: y.", "Ignored: A, C: x."]


def test_own_template_is_quiet() -> None:
    """The project's template has a handful of lines, whatever the mode."""
    for parameters in ({}, {"ColdStartMode": "SnapStart"}, {"ColdStartMode": "Provisioned"}):
        assert len(list(lines(load_template(ROOT / "template.yaml", parameters).notes))) <= 5


def test_snapstart_is_read(load: Load) -> None:
    """For published versions or not at all; another word is refused."""
    for written, expected in (("PublishedVersions", True), ("None", False)):
        loaded = load(one_function(f"{ZIP}, SnapStart: {{ApplyOn: {written}}}}}"))
        assert loaded.functions[0].settings.snapstart is expected
        assert not said(loaded)
    with pytest.raises(TemplateError, match="PublishedVersions or None"):
        load(one_function(f"{ZIP}, SnapStart: {{ApplyOn: Always}}}}"))
