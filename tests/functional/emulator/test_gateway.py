"""API Gateway's two products, as a template describes them, over real environments."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from coldframe.api.gateway_event import principal_of
from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe.capacity.switches import Switches
from coldframe_local.cli import main
from coldframe_local.emulator.front.emulator import Emulator
from coldframe_local.emulator.lambda_service.lambda_types import InvalidParameterValueException
from coldframe_local.emulator.options import EmulatorOptions
from coldframe_local.emulator.template.template import load_template
from tests.support.emulation import HERE, FakeClock

pytestmark = [pytest.mark.waits, pytest.mark.anyio]

PATIENCE_S = 60.0

TEMPLATE = f"""
Transform: AWS::Serverless-2016-10-31
Globals:
  Function: {{Runtime: python3.13, CodeUri: {HERE}, MemorySize: 256, Timeout: 10}}
Resources:
  Web:
    Type: AWS::Serverless::HttpApi
    Properties:
      CorsConfiguration:
        {{AllowOrigins: ["https://a.example"], AllowMethods: [GET, POST], AllowHeaders: [x-a], MaxAge: 60}}
  Staged:
    Type: AWS::Serverless::HttpApi
    Properties:
      StageName: blue
      DefaultRouteSettings: {{ThrottlingRateLimit: 1, ThrottlingBurstLimit: 2}}
      Auth: {{EnableIamAuthorizer: true, DefaultAuthorizer: AWS_IAM}}
  Rest:
    Type: AWS::Serverless::Api
    Properties:
      StageName: v1
      Cors: "'*'"
      BinaryMediaTypes: [image~1png]
  Echo:
    Type: AWS::Serverless::Function
    Properties:
      Handler: handlers.echo_as_body
      Events:
        Item: {{Type: HttpApi, Properties: {{ApiId: !Ref Web, Path: "/items/{{id}}", Method: GET}}}}
        Old:
          Type: HttpApi
          Properties: {{ApiId: !Ref Web, Path: "/old/{{proxy+}}", Method: ANY, PayloadFormatVersion: "1.0"}}
        Blue: {{Type: HttpApi, Properties: {{ApiId: !Ref Staged, Path: /here, Method: GET}}}}
        Rest: {{Type: Api, Properties: {{RestApiId: !Ref Rest, Path: "/things/{{thing}}", Method: POST}}}}
  Say:
    Type: AWS::Serverless::Function
    Properties:
      Handler: handlers.say
      Events:
        Web: {{Type: HttpApi, Properties: {{ApiId: !Ref Web, Path: /say, Method: POST}}}}
        Rest: {{Type: Api, Properties: {{RestApiId: !Ref Rest, Path: /say, Method: POST}}}}
  Slow:
    Type: AWS::Serverless::Function
    Properties:
      Handler: handlers.gate
      Events:
        Web:
          Type: HttpApi
          Properties: {{ApiId: !Ref Web, Path: /slow, Method: GET, TimeoutInMillis: 50}}
        Rest:
          Type: Api
          Properties: {{RestApiId: !Ref Rest, Path: /slow, Method: GET, TimeoutInMillis: 50}}
"""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def emulator(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Emulator]:
    path = tmp_path / "template.yaml"
    path.write_text(TEMPLATE)
    options = EmulatorOptions(
        port=0, template=load_template(path), log=lambda line: None, environ={"GATE": str(tmp_path)}
    )
    async with Emulator(options, clock) as running:
        yield running


@asynccontextmanager
async def client_of(emulator: Emulator, api: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"host": f"{api.lower()}.localhost"}
    async with httpx.AsyncClient(
        base_url=emulator.url, headers=headers, timeout=PATIENCE_S, trust_env=False
    ) as client:
        yield client


@pytest.fixture
async def web(emulator: Emulator) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the HTTP API."""
    async with client_of(emulator, "Web") as client:
        yield client


@pytest.fixture
async def rest(emulator: Emulator) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the REST API."""
    async with client_of(emulator, "Rest") as client:
        yield client


async def test_signed_requests(emulator: Emulator, web: httpx.AsyncClient) -> None:
    """The event names who signed a request, where the API asks for a signature, and nobody else."""
    signed = {
        "authorization": "AWS4-HMAC-SHA256 Credential=alice/20261122/eu-west-1/execute-api/aws4_request"
    }
    async with client_of(emulator, "Staged") as staged:
        by_alice = (await staged.get("/blue/here", headers=signed)).json()["event"]
        by_nobody = (await staged.get("/blue/here")).json()["event"]
    elsewhere = (await web.get("/items/a", headers=signed)).json()["event"]
    names = [principal_of(event) for event in (by_alice, by_nobody, elsewhere)]
    assert names == ["iam 123456789012 alice", "", ""]


async def test_http_api_event(web: httpx.AsyncClient) -> None:
    """Route, path parameters and the decoded path are in the payload 2.0 event."""
    response = await web.get("/items/a%20b?x=1&x=2", headers={"cookie": "c=1; d=2"})
    event = response.json()["event"]
    assert (event["version"], event["routeKey"], event["rawPath"]) == (
        "2.0",
        "GET /items/{id}",
        "/items/a b",
    )
    assert event["pathParameters"] == {"id": "a b"}
    assert event["queryStringParameters"] == {"x": "1,2"}
    assert event["cookies"] == ["c=1", "d=2"]
    assert event["requestContext"]["requestId"] == response.headers["apigw-requestid"]
    assert event["requestContext"]["routeKey"] == "GET /items/{id}"


async def test_http_api_with_payload_1_0(web: httpx.AsyncClient) -> None:
    """A route may ask for payload 1.0 of an HTTP API: lists beside the single values."""
    response = await web.put("/old/a%20b/c?x=1&x=2", headers=[("x-m", "1"), ("x-m", "2")], content=b"\xff")
    event = response.json()["event"]
    assert (event["version"], event["resource"], event["path"]) == ("1.0", "/old/{proxy+}", "/old/a b/c")
    assert (event["headers"]["x-m"], event["multiValueHeaders"]["x-m"]) == ("2", ["1", "2"])
    assert event["queryStringParameters"] == {"x": "2"}
    assert event["multiValueQueryStringParameters"] == {"x": ["1", "2"]}
    assert event["pathParameters"] == {"proxy": "a b/c"}
    assert (event["isBase64Encoded"], base64.b64decode(event["body"])) == (True, b"\xff")
    assert event["requestContext"]["resourcePath"] == "/old/{proxy+}"


async def test_rest_api_event(rest: httpx.AsyncClient) -> None:
    """A REST API has no version, the path as it came and without its stage, and null where nothing is."""
    response = await rest.post("/v1/things/a%20b", content='{"a": "é"}')
    event = response.json()["event"]
    assert "version" not in event
    assert (event["resource"], event["path"]) == ("/things/{thing}", "/things/a%20b")
    assert event["pathParameters"] == {"thing": "a b"}
    assert (event["queryStringParameters"], event["stageVariables"]) == (None, None)
    assert (event["body"], event["isBase64Encoded"]) == ('{"a": "é"}', False)
    context = event["requestContext"]
    assert (context["stage"], context["path"]) == ("v1", "/v1/things/a%20b")
    assert (context["resourcePath"], context["httpMethod"]) == ("/things/{thing}", "POST")
    assert context["identity"]["sourceIp"] == "127.0.0.1"
    assert context["requestId"] == response.headers["x-amzn-requestid"]


async def test_binary_bodies_of_a_rest_api(rest: httpx.AsyncClient) -> None:
    """Bytes survive a REST API in its BinaryMediaTypes only, both ways."""
    png = {"content-type": "image/png"}
    event = (await rest.post("/v1/things/1", content=b"\xff", headers=png)).json()["event"]
    assert (event["body"], event["isBase64Encoded"]) == ("/w==", True)
    event = (await rest.post("/v1/things/1", content=b"\xff")).json()["event"]
    assert (event["body"], event["isBase64Encoded"]) == ("\ufffd", False)
    said = {"statusCode": 200, "body": "/w==", "isBase64Encoded": True}
    decoded = await rest.post("/v1/say", json=said, headers={"accept": "image/png"})
    left = await rest.post("/v1/say", json=said, headers={"accept": "*/*"})
    assert (decoded.content, left.content) == (b"\xff", b"/w==")


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "/nowhere", 404, "Not Found"),
        ("POST", "/items/1", 404, "Not Found"),
        ("GET", "/items/1/", 404, "Not Found"),
    ],
)
async def test_no_route_of_an_http_api(
    web: httpx.AsyncClient, method: str, path: str, status: int, message: str
) -> None:
    """Where no route matches, an HTTP API answers 404 with its one sentence."""
    response = await web.request(method, path)
    assert (response.status_code, response.json()) == (status, {"message": message})
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("path", "message", "error_type"),
    [
        ("/v1/nowhere", "Missing Authentication Token", "MissingAuthenticationTokenException"),
        ("/things/1", "Forbidden", "ForbiddenException"),
    ],
)
async def test_no_route_of_a_rest_api(
    rest: httpx.AsyncClient, path: str, message: str, error_type: str
) -> None:
    """A REST API answers 403 for an unknown path, and for another stage."""
    response = await rest.post(path)
    assert (response.status_code, response.json()) == (403, {"message": message})
    assert response.headers["x-amzn-errortype"] == error_type


async def test_stage_of_an_http_api(emulator: Emulator) -> None:
    """A named stage is part of the address, and of the event's path."""
    async with client_of(emulator, "Staged") as client:
        event = (await client.get("/blue/here")).json()["event"]
        missing = await client.get("/here")
    assert (event["rawPath"], event["requestContext"]["stage"]) == ("/blue/here", "blue")
    assert (missing.status_code, missing.json()) == (404, {"message": "Not Found"})


async def test_throttling(emulator: Emulator, clock: FakeClock) -> None:
    """A route lets its burst through, then its rate; what is over gets the gateway's own 429."""
    async with client_of(emulator, "Staged") as client:
        statuses = [(await client.get("/blue/here")).status_code for _ in range(3)]
        clock.now_s += 1.0
        refilled = [await client.get("/blue/here") for _ in range(2)]
    assert statuses == [200, 200, 429]
    assert [response.status_code for response in refilled] == [200, 429]
    body = refilled[1].json()
    assert body["message"] == "Too Many Requests"
    assert "ThrottleRate" in body["detail"]


async def test_preflight_of_an_http_api(web: httpx.AsyncClient) -> None:
    """The gateway answers a preflight request that no route takes; an unknown origin learns nothing."""
    asked = {"origin": "https://a.example", "access-control-request-method": "POST"}
    allowed = await web.options("/say", headers=asked)
    refused = await web.options("/say", headers=asked | {"origin": "https://b.example"})
    assert (allowed.status_code, refused.status_code) == (204, 204)
    assert allowed.headers["access-control-allow-origin"] == "https://a.example"
    assert allowed.headers["access-control-allow-methods"] == "GET,POST"
    assert allowed.headers["access-control-allow-headers"] == "x-a"
    assert allowed.headers["access-control-max-age"] == "60"
    assert not [name for name in refused.headers if name.startswith("access-control-")]


async def test_cors_headers_of_an_http_api_are_its_own(web: httpx.AsyncClient) -> None:
    """With CORS configured, the function's CORS headers are replaced by the gateway's."""
    said = {"statusCode": 200, "headers": {"Access-Control-Allow-Origin": "*"}, "body": ""}
    response = await web.post("/say", json=said, headers={"origin": "https://a.example"})
    assert response.headers.get_list("access-control-allow-origin") == ["https://a.example"]
    without_origin = await web.post("/say", json=said)
    assert "access-control-allow-origin" not in without_origin.headers


async def test_cors_of_a_rest_api(rest: httpx.AsyncClient) -> None:
    """SAM adds the preflight answer; other answers have the headers that the function gives."""
    preflight = await rest.options("/v1/say")
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == "*"
    assert preflight.headers["access-control-allow-methods"] == "OPTIONS,POST"
    said = {"statusCode": 200, "headers": {"Access-Control-Allow-Origin": "https://c.example"}}
    response = await rest.post("/v1/say", json=said)
    assert response.headers["access-control-allow-origin"] == "https://c.example"


async def test_multiple_values_in_a_rest_response(rest: httpx.AsyncClient) -> None:
    """multiValueHeaders become several headers, and win over the single one of their name."""
    said = {
        "statusCode": "201",
        "headers": {"X-A": "0", "X-B": "3"},
        "multiValueHeaders": {"x-a": ["1", "2"]},
        "body": "ok",
    }
    response = await rest.post("/v1/say", json=said)
    assert (response.status_code, response.text) == (201, "ok")
    assert response.headers.get_list("x-a") == ["1", "2"]
    assert response.headers["x-b"] == "3"
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "said",
    [
        "text",
        [1],
        {"statusCode": 200, "surplus": 1},
        {"statusCode": 99},
        {"body": "without a status"},
        {"statusCode": 200, "body": {"a": 1}},
        {"statusCode": 200, "multiValueHeaders": {"x-a": "1"}},
    ],
)
async def test_malformed_result_of_a_rest_api(rest: httpx.AsyncClient, said: Any) -> None:
    """A REST API is strict about results; whatever else comes is a 502."""
    response = await rest.post("/v1/say", json=said)
    assert response.status_code == 502


async def test_inferred_response_of_an_http_api(web: httpx.AsyncClient) -> None:
    """An HTTP API takes a result without a status for the body of a 200."""
    response = await web.post("/say", json={"surplus": 1})
    assert (response.status_code, response.json()) == (200, {"surplus": 1})


async def test_integration_timeout(web: httpx.AsyncClient, rest: httpx.AsyncClient, tmp_path: Path) -> None:
    """The gateway waits for its own time only; the function works on until it is done."""
    late_web, late_rest = await web.get("/slow"), await rest.get("/v1/slow")
    assert (late_web.status_code, late_web.json()) == (503, {"message": "Service Unavailable"})
    assert (late_rest.status_code, late_rest.json()) == (504, {"message": "Endpoint request timed out"})
    async with asyncio.timeout(PATIENCE_S):
        while len(list(tmp_path.glob("running-*"))) < 2:
            await asyncio.sleep(0.005)


async def test_body_over_the_gateway_s_limit(web: httpx.AsyncClient, rest: httpx.AsyncClient) -> None:
    """10 MB are too much for both, each in its own words."""
    large = b"x" * (10 * 1024 * 1024 + 1)
    http_answer, rest_answer = (
        await web.post("/say", content=large),
        await rest.post("/v1/say", content=large),
    )
    assert (http_answer.status_code, http_answer.json()) == (413, {"message": "Request Entity Too Large"})
    assert (rest_answer.status_code, rest_answer.json()) == (413, {"message": "Request Too Long"})


async def test_headers_over_the_quota_of_an_http_api(web: httpx.AsyncClient) -> None:
    """Request line and header values together may have 10,240 bytes."""
    large = [await web.get("/items/1", headers={"x-a": "x" * size}) for size in (9_900, 10_240)]
    many = await web.get("/items/1", headers=[(f"x-{number}", "xxxx") for number in range(2_600)])
    long = await web.get("/items/1?" + "x" * 10_200)
    assert [response.status_code for response in [*large, many, long]] == [200, 431, 431, 431]
    assert many.json() == {"message": "Request Header Fields Too Large"}


async def test_headers_over_the_quota_of_a_rest_api(rest: httpx.AsyncClient) -> None:
    """Header values together may have 10,240 bytes; the request line does not count."""
    large = await rest.post("/v1/things/1", headers={"x-a": "x" * 10_241})
    long = await rest.post("/v1/things/1?" + "x" * 10_200)
    assert (large.status_code, long.status_code) == (431, 200)


@pytest.mark.parametrize("value", [["a", "b"], {"a": 1}, None])
async def test_header_that_is_no_string(web: httpx.AsyncClient, rest: httpx.AsyncClient, value: Any) -> None:
    """A list, an object or null in place of a header's value is malformed; REST has lists of their own."""
    said = {"statusCode": 200, "headers": {"x-a": value}}
    nested = {"statusCode": 200, "multiValueHeaders": {"x-a": [value]}}
    answers = [
        await web.post("/say", json=said),
        await rest.post("/v1/say", json=said),
        await rest.post("/v1/say", json=nested),
    ]
    assert [answer.status_code for answer in answers] == [502, 502, 502]


async def test_callers_address_and_trace_in_a_payload_1_0_event(rest: httpx.AsyncClient) -> None:
    """The address is added to what proxies said; every event has a trace."""
    response = await rest.post("/v1/things/1", headers={"x-forwarded-for": "192.0.2.7"})
    headers = response.json()["event"]["headers"]
    assert headers["x-forwarded-for"] == "192.0.2.7, 127.0.0.1"
    assert re.fullmatch(r"Root=1-[0-9a-f]{8}-[0-9a-f]{24}", headers["x-amzn-trace-id"])


FAILURES = f"""
Transform: AWS::Serverless-2016-10-31
Globals:
  Function: {{Runtime: python3.13, CodeUri: {HERE}, MemorySize: 256, Timeout: 1}}
Resources:
  Told:
    Type: AWS::Serverless::Function
    Properties:
      Handler: handlers.said
      Events:
        Web: {{Type: HttpApi, Properties: {{Path: /, Method: POST}}}}
        Rest: {{Type: Api, Properties: {{Path: /, Method: POST}}}}
  Refused:
    Type: AWS::Serverless::Function
    Properties:
      Handler: handlers.said
      ReservedConcurrentExecutions: 0
      Events:
        Web: {{Type: HttpApi, Properties: {{Path: /refused, Method: POST}}}}
        Rest: {{Type: Api, Properties: {{Path: /refused, Method: POST}}}}
"""
CAUSES = ["raise", "leave", "overrun", "malformed", "throttle", "event over 6 MB"]


async def failures(emulator: Emulator, api: str, stage: str = "") -> list[httpx.Response]:
    """An answer for each of the causes."""
    async with client_of(emulator, api) as client:
        told = [await client.post(f"{stage}/", json={"do": do}) for do in CAUSES[:4]]
        throttled = await client.post(f"{stage}/refused")
        large = await client.post(f"{stage}/", content=b"x" * 6_500_000)
        return [*told, throttled, large]


@asynccontextmanager
async def failing_emulator(tmp_path: Path, *, as_aws: bool) -> AsyncIterator[Emulator]:
    path = tmp_path / "template.yaml"
    path.write_text(FAILURES)
    template = load_template(path)
    async with Emulator(EmulatorOptions(template, port=0, as_aws=as_aws, log=lambda line: None)) as emulator:
        yield emulator


async def test_failures_as_aws_tells_them(tmp_path: Path) -> None:
    """With `--as-aws` each kind of API has AWS's statuses and bodies for a function that failed."""
    async with failing_emulator(tmp_path, as_aws=True) as emulator:
        web = await failures(emulator, "ServerlessHttpApi")
        rest = await failures(emulator, "ServerlessRestApi", "/Prod")
    failed, unavailable = (500, "Internal Server Error"), (503, "Service Unavailable")
    assert [(answer.status_code, answer.json()["message"]) for answer in web] == [
        *[failed] * 4,
        unavailable,
        (413, "Request Entity Too Large"),
    ]
    assert [(answer.status_code, answer.json()["message"]) for answer in rest] == [
        *[(502, "Internal server error")] * 4,
        (500, "Internal server error"),
        (413, "Request Too Long"),
    ]
    assert {tuple(answer.json()) for answer in [*web, *rest]} == {("message",)}
    assert {answer.headers["content-type"] for answer in [*web, *rest]} == {"application/json"}
    assert rest[0].headers["x-amzn-errortype"] == "InternalServerErrorException"


def test_flag_as_aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`coldframe up` explains failures unless it is told to answer as AWS does."""
    path = tmp_path / "template.yaml"
    path.write_text(FAILURES)
    told: list[EmulatorOptions] = []
    monkeypatch.setattr("coldframe_local.emulator.front.emulator.run", told.append)
    for flags in ([], ["--as-aws"]):
        assert CliRunner().invoke(main, ["up", "--template", str(path), *flags]).exit_code == 0
    assert [options.as_aws for options in told] == [False, True]


def test_scenario_of_the_emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scenario file sets limits, lives of environments and stores; a variable of AWS names a store, too."""
    (template := tmp_path / "template.yaml").write_text(FAILURES)
    (scenario := tmp_path / "scenario.toml").write_text(
        "account_concurrency = 7\nscaling_rate = false\nmax_age_h = 0\nseed = 3\ntimeout_s = 5\n"
        "s3_endpoint = 'http://127.0.0.1:1'\nschedules = false\n"
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:2")
    told: list[EmulatorOptions] = []
    monkeypatch.setattr("coldframe_local.emulator.front.emulator.run", told.append)
    command = ["up", "--template", str(template), "--scenario", str(scenario)]
    assert CliRunner().invoke(main, command).exit_code == 0
    (options,) = told
    assert (options.account_concurrency, options.switches) == (7, Switches(scaling_rate=False))
    assert (options.max_age_s, options.seed, options.schedules) == (None, 3, False)
    assert options.idle_expiry == IdleExpiry()
    assert (options.stores.s3_endpoint, options.stores.sqs_endpoint) == (
        "http://127.0.0.1:1",
        "http://127.0.0.1:2",
    )
    assert {function.settings.timeout_s for function in options.template.functions} == {5.0}


async def test_failures_explained(tmp_path: Path) -> None:
    """By default each cause has a status of its own, and says which one AWS would have."""
    async with failing_emulator(tmp_path, as_aws=False) as emulator:
        web = await failures(emulator, "ServerlessHttpApi")
        rest = await failures(emulator, "ServerlessRestApi", "/Prod")
    statuses = [502, 502, 503, 502, 429, 413]
    assert [answer.status_code for answer in web] == [answer.status_code for answer in rest] == statuses
    assert "On AWS an HTTP API says 500 here." in web[0].json()["detail"]
    assert "On AWS an HTTP API says 503 here." in web[4].json()["detail"]
    assert "On AWS a REST API says 500 here." in rest[4].json()["detail"]


async def test_unknown_host_is_the_first_api(emulator: Emulator) -> None:
    """Whoever does not name an API gets the first one of the template."""
    async with httpx.AsyncClient(base_url=emulator.url, timeout=PATIENCE_S, trust_env=False) as client:
        response = await client.get("/items/1")
    assert response.json()["event"]["requestContext"]["apiId"] == "Web"


async def test_provisioned_concurrency_of_the_template(tmp_path: Path) -> None:
    """It is there from the start, and a machine that is to bear less makes room for it."""
    path = tmp_path / "template.yaml"
    path.write_text(
        TEMPLATE.replace(
            "Handler: handlers.say\n",
            "Handler: handlers.say\n      AutoPublishAlias: blue\n"
            "      ProvisionedConcurrencyConfig: {ProvisionedConcurrentExecutions: 2}\n",
        )
    )
    options = EmulatorOptions(port=0, template=load_template(path), log=lambda line: None, max_environments=1)
    async with Emulator(options) as emulator:
        config = emulator.service.concurrency.get_provisioned("Say", "blue")
        assert (config.requested, emulator.service.concurrency.get_reserved("Say")) == (2, None)
        async with asyncio.timeout(PATIENCE_S):
            revision = 0
            while emulator.service.concurrency.get_provisioned("Say", "blue").status != "READY":
                revision = await emulator.service.changed(revision)
        async with client_of(emulator, "Web") as web:
            assert (await web.post("/say", json={"statusCode": 200, "body": "ok"})).text == "ok"


async def test_template_that_lambda_refuses(tmp_path: Path) -> None:
    """What the Lambda service refuses ends the start, and nothing stays behind."""
    path = tmp_path / "template.yaml"
    path.write_text(
        TEMPLATE.replace(
            "Handler: handlers.say\n",
            "Handler: handlers.say\n      AutoPublishAlias: blue\n      ReservedConcurrentExecutions: 1\n"
            "      ProvisionedConcurrencyConfig: {ProvisionedConcurrentExecutions: 2}\n",
        )
    )
    emulator = Emulator(EmulatorOptions(port=0, template=load_template(path), log=lambda line: None))
    with pytest.raises(InvalidParameterValueException, match="only 1 of the reserved concurrency"):
        await emulator.__aenter__()
    async with httpx.AsyncClient(trust_env=False) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(emulator.url)


async def test_notes_say_where_apis_are(emulator: Emulator) -> None:
    """The console, and APIs with an address of their own, are named at the start, before all else."""
    port = emulator.url.rpartition(":")[2]
    assert list(emulator.notes())[:3] == [
        f"Console: {emulator.url}/_console",
        f"Staged: http://staged.localhost:{port}/blue",
        f"Rest: http://rest.localhost:{port}/v1",
    ]
