"""The emulator's reading of a template beside SAM's own translator; needs neither network nor account."""

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from coldframe_local.emulator.gateway.cors import rest_preflight
from coldframe_local.emulator.gateway.definitions import Throttling
from coldframe_local.emulator.template.syntax.cloudformation import translated as translated_by_sam
from coldframe_local.emulator.template.syntax.ref_names import IDENTITIES
from coldframe_local.emulator.template.template import load_template
from coldframe_local.paths import SAM_PYTHON
from tests.conftest import ROOT

HTTP_API, REST_API = "AWS::ApiGatewayV2::Api", "AWS::ApiGateway::RestApi"
MANY_APIS = ROOT / "tests" / "fixtures" / "many_apis.yaml"

pytestmark = [
    pytest.mark.containers,
    pytest.mark.sam,
    pytest.mark.skipif(not SAM_PYTHON.exists(), reason="no .venv-sam: run `make .venv-sam/stamp`"),
]


@cache
def translated(path: Path) -> dict[str, Any]:
    """The resources that SAM makes of a template."""
    resources: dict[str, Any] = translated_by_sam(path, {})["translated"]["Resources"]
    return resources


def routes_of_sam(
    resources: dict[str, Any], api: str
) -> dict[tuple[str, str], tuple[str, str, float | None]]:
    """By path and method: the target, the payload's version, and the timeout."""
    found = {}
    for path, methods in resources[api]["Properties"]["Body"]["paths"].items():
        for method, operation in methods.items():
            integration = operation.get("x-amazon-apigateway-integration")
            if integration is None or integration["type"] == "mock":
                continue
            target = re.search(r"functions/\$\{(\w+?)(?:\.Arn)?\}", json.dumps(integration["uri"]))
            assert target is not None
            timeout_ms = integration.get("timeoutInMillis")
            found[path.removeprefix("/") if path == "/$default" else path, _method(method)] = (
                _substituted(integration["uri"], target[1]),
                integration.get("payloadFormatVersion", "1.0"),
                None if timeout_ms is None else timeout_ms / 1000,
            )
    return found


def _substituted(uri: dict[str, Any], name: str) -> str:
    """What a name in `Fn::Sub` refers to: itself, or what stands beside the text."""
    written = uri["Fn::Sub"]
    named: dict[str, dict[str, str]] = written[1] if isinstance(written, list) else {}
    return named.get(name, {"Ref": name})["Ref"]


def _function_of(resources: dict[str, Any], target: str) -> tuple[str, str | None]:
    """The function that a target is, or that the target, an alias, belongs to; and the alias's name."""
    if resources[target]["Type"] != "AWS::Lambda::Alias":
        return target, None
    alias = resources[target]["Properties"]
    return alias["FunctionName"]["Ref"], alias["Name"]


def _method(key: str) -> str:
    return "ANY" if key in ("x-amazon-apigateway-any-method", "isDefaultRoute") else key.upper()


@pytest.mark.parametrize("path", [ROOT / "template.yaml", MANY_APIS])
def test_emulator_reads_the_routes_that_sam_makes(path: Path) -> None:
    """Every route of every API: path, method, function or alias, payload, timeout."""
    resources = translated(path)
    template = load_template(path)
    apis = {name for name, each in resources.items() if each["Type"] in (HTTP_API, REST_API)}
    assert {api.name for api in template.apis} == apis
    logical = {function.settings.name: function.logical_id for function in template.functions}
    for api in template.apis:
        expected = routes_of_sam(resources, api.name)
        assert {(route.path, route.method) for route in api.routes} == set(expected)
        for route in api.routes:
            target, payload, timeout_s = expected[route.path, route.method]
            assert (logical[route.function], route.qualifier) == _function_of(resources, target)
            assert route.payload == payload
            if timeout_s is not None:
                assert route.timeout_s == timeout_s


def test_emulator_reads_what_sam_makes_of_functions_and_stages() -> None:
    """Memory, timeout, alias, both kinds of concurrency; stages, throttling, binary types."""
    path = MANY_APIS
    resources = translated(path)
    template = load_template(path)
    for function in template.functions:
        properties = resources[function.logical_id]["Properties"]
        assert (function.settings.memory_mb, function.settings.timeout_s) == (
            properties["MemorySize"],
            properties["Timeout"],
        )
        assert function.reserved_concurrency == properties.get("ReservedConcurrentExecutions")
        alias = resources.get(f"{function.logical_id}Alias{function.alias}", {}).get("Properties", {})
        assert (function.alias is None) == (not alias)
        provisioned = alias.get("ProvisionedConcurrencyConfig", {}).get("ProvisionedConcurrentExecutions", 0)
        assert function.provisioned_concurrency == provisioned
    stages = {
        name: each["Properties"] for name, each in resources.items() if each["Type"].endswith("::Stage")
    }
    web, rest = (next(api for api in template.apis if api.name == name) for name in ("Web", "Rest"))
    [stage] = [each for name, each in stages.items() if each.get("ApiId") == {"Ref": "Web"}]
    assert stage["DefaultRouteSettings"] == {"ThrottlingRateLimit": 5, "ThrottlingBurstLimit": 10}
    assert web.default_throttling == Throttling(5.0, 10)
    assert web.throttling == {
        key: Throttling(float(each["ThrottlingRateLimit"]), each["ThrottlingBurstLimit"])
        for key, each in stage["RouteSettings"].items()
    }
    [rest_stage] = [each for name, each in stages.items() if each.get("RestApiId") == {"Ref": "Rest"}]
    assert rest.stage == rest_stage["StageName"]
    [settings] = rest_stage["MethodSettings"]
    assert rest.throttling == {
        "POST /c": Throttling(float(settings["ThrottlingRateLimit"]), settings["ThrottlingBurstLimit"])
    }
    media_types = resources["Rest"]["Properties"]["BinaryMediaTypes"]
    assert list(rest.binary_media_types) == [each.replace("~1", "/") for each in media_types]
    cors = resources["Web"]["Properties"]["Body"]["x-amazon-apigateway-cors"]
    assert web.cors is not None
    assert (list(web.cors.allow_origins), list(web.cors.allow_methods), web.cors.max_age_s) == (
        cors["allowOrigins"],
        cors["allowMethods"],
        cors["maxAge"],
    )


def test_emulator_s_preflight_is_the_mock_that_sam_makes() -> None:
    """The headers of a REST API's preflight answer are those of SAM's mock integration."""
    path = MANY_APIS
    body = translated(path)["Rest"]["Properties"]["Body"]
    mock = body["paths"]["/c"]["options"]["x-amazon-apigateway-integration"]["responses"]["default"]
    [api] = [api for api in load_template(path).apis if api.name == "Rest"]
    assert api.cors is not None
    answer = rest_preflight(api.cors, ("POST",))
    said = {name.decode(): f"'{value.decode()}'" for name, value in answer.headers}
    for name, value in mock["responseParameters"].items():
        assert said[name.removeprefix("method.response.header.").lower()] == value
    assert str(answer.status) == mock["statusCode"]


# AWS publishes a schema for each type; cfn-lint, which the SAM CLI brings, has them.
SCHEMAS = """
import json, sys
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER as manager
schemas = {kind: manager.get_resource_schema("us-east-1", kind).schema for kind in sys.argv[1:]}
keys = ("primaryIdentifier", "readOnlyProperties")
json.dump({kind: {key: schema.get(key, []) for key in keys} for kind, schema in schemas.items()}, sys.stdout)
"""


# `Ref` of a rule is its name, although the schema identifies it by its ARN: read 2026-11-22 in
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-events-rule.html
# The schema identifies a subscription by its group, too; `Ref` is the name alone: read 2026-11-25 in
# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-logs-subscriptionfilter.html
REFERRED_TO_BY_NAME = {"AWS::Events::Rule", "AWS::Logs::SubscriptionFilter"}


def test_references_are_of_the_form_that_aws_says() -> None:
    """`Ref` gives an ARN, an address or a name as the schema's identifier is one; attributes exist."""
    kinds = [kind for kind in IDENTITIES if not kind.startswith("AWS::Serverless::")]
    done = subprocess.run([SAM_PYTHON, "-c", SCHEMAS, *kinds], capture_output=True, text=True, check=True)
    for kind, schema in json.loads(done.stdout).items():
        identity = IDENTITIES[kind]
        *first, identifier = [path.removeprefix("/properties/") for path in schema["primaryIdentifier"]]
        attributes = {path.removeprefix("/properties/") for path in schema["readOnlyProperties"]}
        form = identity.reference.partition(":")[0] if ":" in identity.reference else "name"
        expected = {"Arn": "arn", "Url": "https"}
        if kind in REFERRED_TO_BY_NAME:
            first, identifier = [], identity.name
        assert first == [], kind
        assert form == next((of for end, of in expected.items() if identifier.endswith(end)), "name"), kind
        assert set(identity.attributes) <= attributes | {identity.name}, kind
        assert form != "name" or identity.name == identifier, kind
