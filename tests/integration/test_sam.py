"""The template as AWS's own tools read it; needs the SAM CLI, neither network nor account."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.stacks import APPLICATIONS

ROOT = Path(__file__).parents[2]
OWN_SAM = ROOT / ".venv-sam" / "bin" / "sam"
SAM = str(OWN_SAM) if OWN_SAM.exists() else shutil.which("sam")

pytestmark = [
    pytest.mark.containers,
    pytest.mark.sam,
    pytest.mark.skipif(SAM is None, reason="no SAM CLI: neither .venv-sam/bin/sam nor `sam` on the PATH"),
]

TEMPLATES = ["template.yaml", *(f"functions/{name}.yaml" for name in APPLICATIONS)]

ROUTES = """
from samcli.lib.providers.api_provider import ApiProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider
stacks, _ = SamLocalStackProvider.get_stacks("template.yaml")
for route in ApiProvider(stacks).api.routes:
    print(route.path, route.function_name, route.payload_format_version)
"""

FUNCTIONS = """
from samcli.lib.providers.sam_function_provider import SamFunctionProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider
stacks, _ = SamLocalStackProvider.get_stacks("template.yaml")
for function in SamFunctionProvider(stacks).get_all():
    print(function.full_path, function.codeuri, *(layer.codeuri for layer in function.layers))
"""

UPLOAD = """
import hashlib, zipfile
from samcli.lib.package.utils import make_zip_with_lambda_permissions, zip_folder
with zip_folder("layers/golden", zip_method=make_zip_with_lambda_permissions) as (path, _):
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            digest = hashlib.sha256(archive.read(entry)).hexdigest()
            print(entry.filename, oct(entry.external_attr >> 16), digest)
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


@pytest.mark.parametrize("template", TEMPLATES)
def test_template_is_valid(template: str, tmp_path: Path) -> None:
    """`sam validate --lint` finds neither an error nor a warning."""
    assert SAM is not None
    done = run([SAM, "validate", "--lint", "--template", str(ROOT / template)], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is a valid SAM Template" in done.stdout


def test_cloudformation_lint(tmp_path: Path) -> None:
    """cfn-lint finds nothing, hints included, for any of three regions."""
    lint = OWN_SAM.with_name("cfn-lint")
    if not lint.exists():
        pytest.skip("cfn-lint is installed with .venv-sam only")
    regions = ["us-east-1", "eu-central-1", "ap-northeast-1"]
    done = run([str(lint), "--include-checks", "I", "--regions", *regions, "--", *TEMPLATES], tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_sam_local_finds_the_route(tmp_path: Path) -> None:
    """What `sam local start-api` would serve is every path of the one function."""
    python = OWN_SAM.with_name("python")
    if not python.exists():
        pytest.skip("SAM's own modules are read from .venv-sam only")
    done = run([str(python), "-c", ROUTES], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["$default PredictFunction 2.0"]


def test_sam_finds_the_functions_of_applications(tmp_path: Path) -> None:
    """`sam build` and `sam local` see each function of a nested stack, its folder and its layers' folders."""
    python = OWN_SAM.with_name("python")
    if not python.exists():
        pytest.skip("SAM's own modules are read from .venv-sam only")
    done = run([str(python), "-c", FUNCTIONS], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "PredictFunction .",
        "JobsWorker/Function functions",
        "JobsWorker/ControlFunction functions",
        "Warmer/Function functions/coldframe_functions/warmer layers/shared",
        "Deployment/PreTrafficFunction functions/coldframe_functions/pre_traffic layers/shared layers/golden",
        "Deployment/PostTrafficFunction functions/coldframe_functions/post_traffic layers/shared",
        "Traces/Function functions/coldframe_functions/traces layers/shared",
        "Monitoring/Function functions",
    ]


def test_sam_uploads_the_golden_file(tmp_path: Path) -> None:
    """SAM follows the link in the layer of golden vectors, and everybody may read what it uploads."""
    python = OWN_SAM.with_name("python")
    if not python.exists():
        pytest.skip("SAM's own modules are read from .venv-sam only")
    done = run([str(python), "-c", UPLOAD], tmp_path)
    assert done.returncode == 0, done.stderr
    golden = ROOT / "layers" / "model" / "coldframe_training" / "encoder" / "golden.json"
    digest = hashlib.sha256(golden.read_bytes()).hexdigest()
    assert done.stdout.split() == ["golden.json", "0o100644", digest]
