"""template.yaml as the emulator runs it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from coldframe_local.emulator.gateway.definitions import ApiKind, Cors, PayloadFormat, Throttling
from coldframe_local.emulator.lambda_service.event_sources.destinations import EventInvokeConfig
from coldframe_local.emulator.template.syntax.errors import TemplateError
from coldframe_local.emulator.template.syntax.template_warnings import Effect
from coldframe_local.emulator.template.template import Template, load_template

ROOT = Path(__file__).parents[5]
Load = Callable[..., Template]

ZIP = "{CodeUri: code, Handler: app.handler, Runtime: python3.13"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads a template that is written here."""

    def loaded(text: str, **parameters: str) -> Template:
        path = tmp_path / "template.yaml"
        path.write_text(text)
        return load_template(path, parameters)

    return loaded


def one_function(properties: str, more: str = "") -> str:
    return f"Resources:\n  F: {{Type: AWS::Serverless::Function, Properties: {properties}}}\n{more}"


RULED = (
    "Parameters: {P: {Type: String, Default: a}, Q: {Type: String, Default: ''}}\n"
    "Rules: {NeedsQ: {RuleCondition: !Equals [!Ref P, b], Assertions: "
    "[{Assert: !Not [!Equals [!Ref Q, '']], AssertDescription: b needs Q}]}}\n"
)


def test_own_template() -> None:
    """The project's template is read as it will be deployed."""
    template = load_template(ROOT / "template.yaml", {"MemorySize": "3008"})
    function = next(each for each in template.functions if each.logical_id == "PredictFunction")
    assert function.settings.handler == "coldframe_functions.predict.app.handler"
    assert function.settings.task_root == ROOT
    assert (function.settings.memory_mb, function.settings.timeout_s) == (3008, 29.0)
    assert function.alias == "live"
    environ = function.settings.environ
    assert environ["COLDFRAME_CACHE_TABLE"] in [table.name for table in template.tables]
    assert environ["COLDFRAME_CACHE_BUCKET"] in [bucket.name for bucket in template.buckets]
    assert "COLDFRAME_L1_CACHE_BYTES" not in environ  # the default needs no variable
    assert environ["ORT_DISABLE_TELEMETRY"] == "1"  # of the image
    # Folders of the image are those that it is made of.
    assert environ["COLDFRAME_MODEL_DIR"] == str(ROOT / "models")
    searched = [str(ROOT / "functions"), str(ROOT / "layers" / "shared" / "python")]
    assert environ["PYTHONPATH"] == os.pathsep.join(searched)
    api = next(each for each in template.apis if each.name == "HttpApi")
    assert (api.kind, api.stage, api.cors, api.authorizer) == (ApiKind.HTTP, "$default", None, True)
    [route] = api.routes
    assert (route.key, route.function, route.qualifier) == ("$default", "PredictFunction", "live")
    assert (route.payload, route.timeout_s) == (PayloadFormat.V2, 30.0)


def test_own_template_s_cors() -> None:
    """A page may cancel a job, and name requests and jobs, through the emulator as on AWS."""
    [first, *_] = load_template(ROOT / "template.yaml", {"CorsAllowOrigin": "https://a.example"}).apis
    assert first.cors is not None
    assert first.cors.allow_methods == ("DELETE", "GET", "POST")
    assert {"idempotency-key", "x-request-id"} <= set(first.cors.allow_headers)


def test_table_of_the_own_template() -> None:
    """The cache's table has its key and its expiry."""
    [table] = load_template(ROOT / "template.yaml").tables
    assert table.parameters["KeySchema"] == [{"AttributeName": "cache_key", "KeyType": "HASH"}]
    assert table.ttl_attribute == "expires_at_s"


def test_failed_events_of_the_own_template() -> None:
    """Events that come by the alias have the queue for a destination, and so have those of the hooks."""
    template = load_template(ROOT / "template.yaml")
    [queue] = template.queues
    assert queue.attributes == {"MaximumMessageSize": "1048576", "MessageRetentionPeriod": "1209600"}
    found = {function.logical_id: function.event_invoke_configs for function in template.functions}
    hook = {"$LATEST": EventInvokeConfig(0, 3600.0, on_failure=queue.arn)}
    assert found == {
        "PredictFunction": {"live": EventInvokeConfig(2, 3600.0, on_failure=queue.arn)},
        "DeploymentPreTrafficFunction": hook,
        "DeploymentPostTrafficFunction": hook,
    }


def test_event_invoke_configs(load: Load) -> None:
    """SAM's property is the alias's or `$LATEST`'s; a resource names its own; each has Lambda's defaults."""
    destination = "DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Q.Arn}}"
    more = (
        "  OfAVersion: {Type: AWS::Lambda::EventInvokeConfig, Properties: {FunctionName: !Ref F,"
        " Qualifier: 1, MaximumRetryAttempts: !Ref Tries}}\n"
        "  OfAnother: {Type: AWS::Lambda::EventInvokeConfig, Properties: {FunctionName: other,"
        " Qualifier: 1}}\n"
        "  Q: {Type: AWS::SQS::Queue, Properties: {FifoQueue: true}}\n"
        "Parameters: {Tries: {Type: Number, Default: 1}}\n"
    )
    arn = "arn:aws:sqs:us-east-1:123456789012:coldframe-Q.fifo"
    for alias, qualifier in (("", "$LATEST"), (", AutoPublishAlias: live", "live")):
        config = f"{alias}, EventInvokeConfig: {{{destination}}}}}"
        template = load(one_function(ZIP + config, more))
        assert template.functions[0].event_invoke_configs == {
            qualifier: EventInvokeConfig(2, 21_600.0, on_failure=arn),
            "1": EventInvokeConfig(1),
        }
    assert [queue.attributes for queue in template.queues] == [{"FifoQueue": "true"}]


@pytest.mark.parametrize(
    ("destination", "arn"),
    [
        ("{Type: SQS, Destination: !ImportValue failed}", "a destination of another stack"),
        ("{Type: SQS}", "SAM's own SQS"),
    ],
)
def test_destination_that_is_not_in_the_template(load: Load, destination: str, arn: str) -> None:
    """What only an account, or SAM, makes is not a reason not to run a function."""
    config = f"EventInvokeConfig: {{DestinationConfig: {{OnFailure: {destination}}}}}"
    template = load(one_function(f"{ZIP}, {config}}}"))
    assert template.functions[0].event_invoke_configs["$LATEST"].on_failure == arn


def test_zip_function(load: Load, tmp_path: Path) -> None:
    """A zip function runs in its own folder, with its layers before everything else, under SAM's defaults."""
    template = load(
        one_function(
            f"{ZIP}, Layers: [!Ref Shared, 'arn:aws:lambda:us-east-1:1:layer:other:1']}}",
            "  Shared: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: layers/shared}}",
        )
    )
    [function] = template.functions
    assert function.settings.task_root == tmp_path / "code"
    assert function.settings.environ["PYTHONPATH"] == str(tmp_path / "layers" / "shared" / "python")
    assert (function.settings.memory_mb, function.settings.timeout_s) == (128, 3.0)
    assert (function.alias, function.reserved_concurrency, function.provisioned_concurrency) == (
        None,
        None,
        0,
    )
    assert function.settings.name == "F"


def test_concurrency(load: Load) -> None:
    """Reserved and provisioned concurrency, alias and name are the template's."""
    [function] = load(
        one_function(
            f"{ZIP}, FunctionName: my-name, AutoPublishAlias: blue, ReservedConcurrentExecutions: 7,"
            " ProvisionedConcurrencyConfig: {ProvisionedConcurrentExecutions: 3}}"
        )
    ).functions
    assert function.settings.name == "my-name"
    assert (function.alias, function.reserved_concurrency, function.provisioned_concurrency) == ("blue", 7, 3)


def test_provisioned_concurrency_without_alias(load: Load) -> None:
    """It belongs to an alias, and the error says so."""
    with pytest.raises(TemplateError, match="add `AutoPublishAlias: live`"):
        load(one_function(f"{ZIP}, ProvisionedConcurrencyConfig: {{ProvisionedConcurrentExecutions: 3}}}}"))


def test_globals(load: Load) -> None:
    """Globals are under a function's own properties: maps are merged, single values replaced."""
    [function] = load(
        "Globals: {Function: {Timeout: 9, MemorySize: 256, Environment: {Variables: {A: '1', B: '2'}}}}\n"
        + one_function(f"{ZIP}, MemorySize: 512, Environment: {{Variables: {{B: '3', C: true, D: 4}}}}}}")
    ).functions
    assert (function.settings.timeout_s, function.settings.memory_mb) == (9.0, 512)
    assert {name: function.settings.environ[name] for name in "ABCD"} == {
        "A": "1",
        "B": "3",
        "C": "true",
        "D": "4",
    }


def test_references(load: Load) -> None:
    """Variables may refer to whatever exists here, by the name that it has here."""
    variables = (
        "{T: !Ref T, TA: !GetAtt T.Arn, B: !Ref B, S: !Sub '${AWS::StackName}/${B}', A: !Ref F.Alias,"
        " Q: !Ref Q}"
    )
    template = load(
        one_function(
            f"{ZIP}, AutoPublishAlias: live, Environment: {{Variables: {variables}}}}}",
            "  T: {Type: AWS::Serverless::SimpleTable}\n"
            "  B: {Type: AWS::S3::Bucket, Properties: {BucketName: mine}}\n"
            "  Q: {Type: AWS::SQS::Queue}",
        )
    )
    environ = template.functions[0].settings.environ
    assert environ["T"] == template.tables[0].name == "coldframe-T"
    assert environ["TA"] == "arn:aws:dynamodb:us-east-1:123456789012:table/coldframe-T"
    assert (environ["B"], environ["S"]) == ("mine", "coldframe/mine")
    assert environ["A"] == "arn:aws:lambda:us-east-1:123456789012:function:F:live"
    assert environ["Q"] == "https://sqs.us-east-1.amazonaws.com/123456789012/coldframe-Q"


def test_image_command(load: Load, tmp_path: Path) -> None:
    """The handler of an image is its last CMD; ImageConfig.Command goes before."""
    (tmp_path / "Dockerfile").write_text(
        'FROM base AS build\nCMD ["wrong"]\nFROM base\nENV A=1\nCMD ["a.handler"]\n'
    )
    [function] = load(one_function("{PackageType: Image}")).functions
    assert (function.settings.handler, function.settings.environ["A"]) == ("a.handler", "1")
    [function] = load(one_function("{PackageType: Image, ImageConfig: {Command: [b.handler]}}")).functions
    assert function.settings.handler == "b.handler"


def test_build_target(load: Load, tmp_path: Path) -> None:
    """A stage inherits from the one that it is built from; `DockerBuildTarget` names one."""
    (tmp_path / "Dockerfile").write_text(
        'ARG BASE=x\nFROM ${BASE} AS lambda\nENV A=1\nCMD ["a.handler"]\n'
        'FROM lambda as Tested\nENV B=2\nCMD ["b.handler"]\nFROM lambda\nUSER 993\n'
    )
    image = "Resources:\n  F: {Type: AWS::Serverless::Function, Properties: {PackageType: Image}"
    [last] = load(f"{image}}}").functions
    [tested] = load(f"{image}, Metadata: {{DockerBuildTarget: tested}}}}").functions
    assert (last.settings.handler, last.settings.environ.get("B")) == ("a.handler", None)
    assert (tested.settings.handler, tested.settings.environ["A"], tested.settings.environ["B"]) == (
        "b.handler",
        "1",
        "2",
    )
    with pytest.raises(TemplateError, match="no stage nowhere; its stages: lambda, tested, 2"):
        load(f"{image}, Metadata: {{DockerBuildTarget: nowhere}}}}")


DEFINED = """
Conditions: {IsOpen: !Equals [1, 1]}
Resources:
  F:
    Type: AWS::Serverless::Function
    Properties:
      {CodeUri: code, Handler: app.handler, Runtime: python3.13, AutoPublishAlias: live}
  H:
    Type: AWS::Serverless::HttpApi
    Properties:
      DefinitionBody:
        paths:
          $default:
            x-amazon-apigateway-any-method:
              security: !If [IsOpen, !Ref AWS::NoValue, [{Callers: []}]]
              x-amazon-apigateway-integration:
                type: TYPE
                payloadFormatVersion: "2.0"
                uri: !Sub
                  - arn:aws:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/${Live}/invocations
                  - {Live: !Ref F.Alias}
                timeoutInMillis: 9000
          /pets/{id}:
            get:
              security: [{Callers: []}]
              x-amazon-apigateway-integration:
                type: TYPE
                uri: !Sub arn:aws:apigateway:x:lambda:path/2015-03-31/functions/${F.Arn}/invocations
        x-amazon-apigateway-cors: {allowOrigins: ["*"], maxAge: 5}
"""


def test_definition_body(load: Load) -> None:
    """Routes that an API's own definition writes out are routes like any other."""
    [api] = load(DEFINED.replace("TYPE", "aws_proxy")).apis
    assert [
        (route.key, route.function, route.qualifier, route.payload, route.timeout_s) for route in api.routes
    ] == [
        ("$default", "F", "live", PayloadFormat.V2, 9.0),
        ("GET /pets/{id}", "F", None, PayloadFormat.V1, 30.0),
    ]
    assert api.cors == Cors(("*",), max_age_s=5)
    assert api.authorizer


def test_definition_body_with_another_integration(load: Load) -> None:
    """Only functions exist on this machine: other routes are left out, and named."""
    template = load(DEFINED.replace("TYPE", "http_proxy"))
    assert template.apis == ()
    left_out = [note for note in template.notes if note.effect is Effect.LEFT_OUT]
    assert [note.where for note in left_out] == [
        "H.DefinitionBody.paths.$default.x-amazon-apigateway-any-method",
        "H.DefinitionBody.paths./pets/{id}.get",
    ]
    assert all("found an integration 'http_proxy'" in note.why for note in left_out)


def test_variable_without_value(load: Load) -> None:
    """AWS::NoValue takes a variable away."""
    [function] = load(
        one_function(f"{ZIP}, Environment: {{Variables: {{A: !Ref AWS::NoValue, B: '1'}}}}}}")
    ).functions
    assert (function.settings.environ.get("A"), function.settings.environ["B"]) == (None, "1")


def test_events_of_both_apis(load: Load) -> None:
    """Events without an API share an implicit one; a REST API has payload 1.0, 29 s and the stage Prod."""
    template = load(
        one_function(
            f"{ZIP}, Events: {{"
            "A: {Type: HttpApi, Properties:"
            " {Path: /a, Method: get, TimeoutInMillis: 5000, PayloadFormatVersion: '1.0'}},"
            "B: {Type: Api, Properties: {Path: '/{proxy+}', Method: any}},"
            "C: {Type: SNS, Properties: {}}}}"
        )
    )
    http, rest = template.apis
    assert (http.name, http.kind, http.stage) == ("ServerlessHttpApi", ApiKind.HTTP, "$default")
    assert (rest.name, rest.kind, rest.stage) == ("ServerlessRestApi", ApiKind.REST, "Prod")
    assert [(each.key, each.payload, each.timeout_s) for each in http.routes] == [
        ("GET /a", PayloadFormat.V1, 5.0)
    ]
    assert [(each.key, each.payload, each.timeout_s) for each in rest.routes] == [
        ("ANY /{proxy+}", PayloadFormat.V1, 29.0)
    ]
    assert template.functions[0].other_events == ("SNS",)


def test_cors_and_throttling(load: Load) -> None:
    """CORS and throttling of both kinds, as SAM writes them."""
    events = (
        "{A: {Type: HttpApi, Properties: {ApiId: !Ref H, Path: /a, Method: GET}},"
        " B: {Type: HttpApi, Properties: {ApiId: !Ref H, Path: /b, Method: any,"
        " RouteSettings: {ThrottlingBurstLimit: 9}}},"
        " C: {Type: Api, Properties: {RestApiId: !Ref R, Path: /c, Method: POST}}}"
    )
    http, rest = load(
        one_function(
            f"{ZIP}, Events: {events}}}",
            "  H:\n    Type: AWS::Serverless::HttpApi\n    Properties:\n"
            "      CorsConfiguration:\n"
            "        {AllowOrigins: ['https://a.example'], AllowHeaders: [x-a], MaxAge: 60}\n"
            "      DefaultRouteSettings: {ThrottlingRateLimit: 2, ThrottlingBurstLimit: 4}\n"
            "  R:\n    Type: AWS::Serverless::Api\n    Properties:\n"
            "      StageName: v1\n      Cors: {AllowOrigin: \"'*'\", AllowMethods: \"'GET,POST'\"}\n"
            "      BinaryMediaTypes: [image~1png]\n"
            "      MethodSettings: [{ResourcePath: /c, HttpMethod: POST, ThrottlingRateLimit: 1}]\n",
        )
    ).apis
    assert http.cors == Cors(("https://a.example",), allow_headers=("x-a",), max_age_s=60)
    assert http.default_throttling == Throttling(2.0, 4)
    assert http.throttling == {"ANY /b": Throttling(10_000.0, 9)}
    assert rest.cors == Cors(("*",), allow_methods=("GET", "POST"))
    assert (rest.stage, rest.binary_media_types) == ("v1", ("image/png",))
    assert (rest.default_throttling, rest.throttling) == (None, {"POST /c": Throttling(1.0, 5_000)})


def test_condition(load: Load) -> None:
    """A resource whose condition does not hold does not exist."""
    text = (
        "Parameters: {Keep: {Type: String, Default: 'no'}}\nConditions: {Kept: !Equals [!Ref Keep, 'yes']}\n"
        + one_function(f"{ZIP}}}", "  B: {Type: AWS::S3::Bucket, Condition: Kept}")
    )
    assert load(text).buckets == ()
    assert len(load(text, Keep="yes").buckets) == 1


@pytest.mark.parametrize(
    ("text", "parameters", "said"),
    [
        ("a: [", {}, r"line \d: .*Expected a SAM template"),
        ("a: 1", {}, "has no Resources"),
        ("Resources: {B: {Type: AWS::S3::Bucket}}", {}, "there is nothing to run"),
        (one_function("{Handler: a.b, Runtime: nodejs22.x, CodeUri: c}"), {}, "expected a Python function"),
        (one_function("{PackageType: Image}"), {}, "Dockerfile cannot be read: No such file"),
        (one_function(f"{ZIP}, MemorySize: much}}"), {}, "F.MemorySize is 'much', expected a whole number"),
        (one_function(f"{ZIP}, Timeout: 0}}"), {}, "F.Timeout is 0, expected at least 1"),
        (one_function(f"{ZIP}, MemorySize: 0}}"), {}, "F.MemorySize is 0, expected at least 128"),
        (
            one_function(f"{ZIP}, ReservedConcurrentExecutions: -1}}"),
            {},
            "F.ReservedConcurrentExecutions is -1, expected at least 0",
        ),
        (
            one_function(f"{ZIP}, Events: {{A: {{Type: Api, Properties: {{Path: /a}}}}}}}}"),
            {},
            "expected both",
        ),
        (
            one_function(f"{ZIP}, Events: {{A: {{Type: HttpApi, Properties: {{ApiId: !Ref X}}}}}}}}"),
            {},
            "expected !Ref to an AWS::Serverless::HttpApi",
        ),
        (one_function(f"{ZIP}}}"), {"Nope": "1"}, "no parameter Nope; its parameters: none"),
        ("Parameters: {P: {Type: String}}\n" + one_function(f"{ZIP}}}"), {}, "--parameter P=VALUE"),
        (
            "Parameters: {P: {Type: Number, Default: 5, MaxValue: 9}}\n" + one_function(f"{ZIP}}}"),
            {"P": "10"},
            "P is 10, expected at most 9",
        ),
        (
            "Parameters: {P: {Type: String, Default: a, AllowedValues: [a, b]}}\n" + one_function(f"{ZIP}}}"),
            {"P": "c"},
            r"P is 'c', expected one of \['a', 'b'\]",
        ),
        (RULED + one_function(f"{ZIP}}}"), {"P": "b"}, r"rule NeedsQ refuses the parameters: b needs Q\."),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_named(load: Load, text: str, parameters: dict[str, str], said: str) -> None:
    """An error says what was found, what was expected and what to do."""
    with pytest.raises(TemplateError, match=said):
        load(text, **parameters)


API = "Web: {{Type: AWS::Serverless::HttpApi, Properties: {{{api}}}}}"
ROUTE = "Events: {{A: {{Type: HttpApi, Properties: {{ApiId: !Ref Web, Path: /a, Method: GET, {route}}}}}}}"


@pytest.mark.parametrize(
    ("api", "route", "said"),
    [
        ("", "TimeoutInMillis: soon", r"F\.Events\.A: the timeout is 'soon', expected a number"),
        (
            "",
            "RouteSettings: {ThrottlingRateLimit: fast}",
            "RateLimit is 'fast', expected a number",
        ),
        ("DefaultRouteSettings: [1]", "", r"Web\.DefaultRouteSettings is \[1\], expected a map"),
        ("BinaryMediaTypes: 3", "", r"Web\.BinaryMediaTypes is 3, expected a list"),
        (
            "CorsConfiguration: {MaxAge: long}",
            "",
            r"Web\.CorsConfiguration\.MaxAge is 'long', expected a number",
        ),
        ("CorsConfiguration: [1]", "", r"Web\.CorsConfiguration is \[1\], expected a map"),
        ("Auth: yes", "", r"Web\.Auth is True, expected a map"),
        ("DefinitionBody: {paths: [1]}", "", r"Web\.DefinitionBody\.paths is \[1\], expected a map"),
    ],
)
def test_values_of_another_kind_are_named(load: Load, api: str, route: str, said: str) -> None:
    """A property of an API that is not a number, map or list where it has to be is a clear error."""
    function = one_function(f"{ZIP}, {ROUTE.format(route=route)}}}")
    with pytest.raises(TemplateError, match=said):
        load(f"{function}\n  {API.format(api=api)}")


def test_missing_template(tmp_path: Path) -> None:
    """A file that is not there is named, with the flag that names another."""
    with pytest.raises(TemplateError, match=r"nowhere\.yaml cannot be read.*--template"):
        load_template(tmp_path / "nowhere.yaml")
