"""The template as AWS's own tools read it; needs the SAM CLI, neither network nor account."""

import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from local.cors import rest_preflight
from local.gateway_types import Throttling
from local.template import load_template

HTTP_API, REST_API = "AWS::ApiGatewayV2::Api", "AWS::ApiGateway::RestApi"
ROOT = Path(__file__).parents[2]
OWN_SAM = ROOT / ".venv-sam" / "bin" / "sam"
SAM = str(OWN_SAM) if OWN_SAM.exists() else shutil.which("sam")

pytestmark = [
    pytest.mark.sam,
    pytest.mark.skipif(SAM is None, reason="no SAM CLI: neither .venv-sam/bin/sam nor `sam` on the PATH"),
]

# What `sam deploy` does on AWS's side, for a template whose image has been pushed already.
TRANSLATE = """
import json, sys
from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
template = yaml_parse(open(sys.argv[1]).read())
for resource in template["Resources"].values():
    if resource["Type"] == "AWS::Serverless::Function":
        if resource["Properties"].get("PackageType") == "Image":
            resource["Properties"]["ImageUri"] = "123456789012.dkr.ecr.us-east-1.amazonaws.com/image:serve"
        else:
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
    if resource["Type"] == "AWS::Serverless::LayerVersion":
        resource["Properties"]["ContentUri"] = "s3://bucket/layer"
print(json.dumps(Translator({}, Parser()).translate(template, parameter_values={})))
"""


def run(command: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    """`command` with an empty home and credentials that open nothing."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "SAM_CLI_TELEMETRY": "0",
    }
    return subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120, check=False
    )


@cache
def translated(home: Path, template: Path = ROOT / "template.yaml") -> dict[str, Any]:
    """The resources of the CloudFormation template that SAM makes of ours, or of another."""
    assert SAM is not None
    python = Path(SAM).resolve().with_name("python")
    if not python.exists():
        pytest.skip(f"{SAM} was not installed by pip: its translator cannot be called")
    done = run([str(python), "-c", TRANSLATE, str(template)], home)
    assert done.returncode == 0, done.stderr
    resources: dict[str, Any] = json.loads(done.stdout)["Resources"]
    return resources


@pytest.fixture
def resources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return translated(tmp_path_factory.getbasetemp())


def test_template_is_valid(tmp_path: Path) -> None:
    """`sam validate --lint` finds neither an error nor a warning."""
    assert SAM is not None
    done = run([SAM, "validate", "--lint", "--template", str(ROOT / "template.yaml")], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is a valid SAM Template" in done.stdout


def test_integration_calls_the_alias(resources: dict[str, Any]) -> None:
    """API Gateway's only integration addresses the alias, with payload 2.0."""
    [(route, methods)] = resources["HttpApi"]["Properties"]["Body"]["paths"].items()
    [method] = methods.values()
    integration = method["x-amazon-apigateway-integration"]
    assert route == "/$default"
    assert "${PredictFunctionAliaslive}" in integration["uri"]["Fn::Sub"]
    assert integration["payloadFormatVersion"] == "2.0"


def test_version_is_described_by_its_parameters(resources: dict[str, Any]) -> None:
    """Another memory size makes another description, and so another version for the alias."""
    [version] = [r["Properties"] for r in resources.values() if r["Type"] == "AWS::Lambda::Version"]
    assert "${MemorySize}" in version["Description"]["Fn::Sub"]


def test_permission_is_on_the_alias(resources: dict[str, Any]) -> None:
    """The one permission lets API Gateway invoke the alias and nothing else."""
    [permission] = [r["Properties"] for r in resources.values() if r["Type"] == "AWS::Lambda::Permission"]
    assert permission["FunctionName"] == {"Ref": "PredictFunctionAliaslive"}
    assert permission["Principal"] == "apigateway.amazonaws.com"


def test_every_route_asks_for_a_signature(resources: dict[str, Any]) -> None:
    """Each method of the API demands Signature Version 4."""
    body = resources["HttpApi"]["Properties"]["Body"]
    methods = [method for path in body["paths"].values() for method in path.values()]
    assert [method["security"] for method in methods] == [[{"AWS_IAM": []}]]
    assert body["components"]["securitySchemes"]["AWS_IAM"]["x-amazon-apigateway-authtype"] == "awsSigv4"


def test_role_is_the_one_written_down(resources: dict[str, Any]) -> None:
    """SAM adds no role and no managed policy of its own."""
    roles = {name: r["Properties"] for name, r in resources.items() if r["Type"] == "AWS::IAM::Role"}
    assert set(roles) == {"PredictRole"}
    assert "ManagedPolicyArns" not in roles["PredictRole"]


# The emulator's reading beside SAM's.


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
                target[1],
                integration.get("payloadFormatVersion", "1.0"),
                None if timeout_ms is None else timeout_ms / 1000,
            )
    return found


def _method(key: str) -> str:
    return "ANY" if key in ("x-amazon-apigateway-any-method", "isDefaultRoute") else key.upper()


@pytest.mark.parametrize("path", [ROOT / "template.yaml", ROOT / "tests" / "fixtures" / "many_apis.yaml"])
def test_emulator_reads_the_routes_that_sam_makes(
    tmp_path_factory: pytest.TempPathFactory, path: Path
) -> None:
    """Every route of every API: path, method, function or alias, payload, timeout."""
    resources = translated(tmp_path_factory.getbasetemp(), path)
    template = load_template(path)
    apis = {name for name, each in resources.items() if each["Type"] in (HTTP_API, REST_API)}
    assert {api.name for api in template.apis} == apis
    logical = {function.settings.name: function.logical_id for function in template.functions}
    for api in template.apis:
        expected = routes_of_sam(resources, api.name)
        assert {(route.path, route.method) for route in api.routes} == set(expected)
        for route in api.routes:
            target, payload, timeout_s = expected[route.path, route.method]
            alias = f"Alias{route.qualifier}" if route.qualifier else ""
            assert (f"{logical[route.function]}{alias}", route.payload) == (target, payload)
            if timeout_s is not None:
                assert route.timeout_s == timeout_s


def test_emulator_reads_what_sam_makes_of_functions_and_stages(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Memory, timeout, alias, both kinds of concurrency; stages, throttling, binary types."""
    path = ROOT / "tests" / "fixtures" / "many_apis.yaml"
    resources = translated(tmp_path_factory.getbasetemp(), path)
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


def test_emulator_s_preflight_is_the_mock_that_sam_makes(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The headers of a REST API's preflight answer are those of SAM's mock integration."""
    path = ROOT / "tests" / "fixtures" / "many_apis.yaml"
    body = translated(tmp_path_factory.getbasetemp(), path)["Rest"]["Properties"]["Body"]
    mock = body["paths"]["/c"]["options"]["x-amazon-apigateway-integration"]["responses"]["default"]
    [api] = [api for api in load_template(path).apis if api.name == "Rest"]
    assert api.cors is not None
    answer = rest_preflight(api.cors, ("POST",))
    said = {name.decode(): f"'{value.decode()}'" for name, value in answer.headers}
    for name, value in mock["responseParameters"].items():
        assert said[name.removeprefix("method.response.header.").lower()] == value
    assert str(answer.status) == mock["statusCode"]
