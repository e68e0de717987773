"""The template as AWS's own tools read it; needs the SAM CLI, neither network nor account."""

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

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
        resource["Properties"]["ImageUri"] = "123456789012.dkr.ecr.us-east-1.amazonaws.com/coldframe:serve"
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
def translated(home: Path) -> dict[str, Any]:
    """The resources of the CloudFormation template that SAM makes of ours."""
    assert SAM is not None
    python = Path(SAM).resolve().with_name("python")
    if not python.exists():
        pytest.skip(f"{SAM} was not installed by pip: its translator cannot be called")
    done = run([str(python), "-c", TRANSLATE, str(ROOT / "template.yaml")], home)
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
