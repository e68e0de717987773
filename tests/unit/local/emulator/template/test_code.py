"""Where the code of a function is: plain functions, inline code, what the CDK and SAM build, layers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coldframe_local.emulator.template.syntax.errors import TemplateError
from coldframe_local.emulator.template.syntax.template_warnings import lines
from coldframe_local.emulator.template.template import Template, load_template
from tests.unit.local.emulator.template.test_template import ZIP, one_function

Load = Callable[[str], Template]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads a template that is written here."""

    def loaded(text: str) -> Template:
        path = tmp_path / "template.yaml"
        path.write_text(text)
        return load_template(path)

    return loaded


def plain(properties: str, metadata: str = "{}") -> str:
    return (
        "Resources:\n  F:\n    Type: AWS::Lambda::Function\n"
        f"    Metadata: {metadata}\n    Properties: {properties}\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        one_function("{InlineCode: 'A = 1', Handler: index.f, Runtime: python3.13}"),
        plain("{Code: {ZipFile: 'A = 1'}, Handler: index.f, Runtime: python3.13}"),
    ],
)
def test_inline_code(load: Load, text: str) -> None:
    """Code that is written in the template is Lambda's module `index`."""
    [function] = load(text).functions
    assert (function.settings.task_root / "index.py").read_text() == "A = 1"
    assert function.settings.handler == "index.f"


def test_plain_function(load: Load, tmp_path: Path) -> None:
    """A function of CloudFormation runs as SAM's does, with `$LATEST` for its events."""
    text = plain(
        "{Code: code, Handler: app.f, Runtime: python3.13, MemorySize: 512, Timeout: 9, Role: r,"
        " FunctionName: mine, Environment: {Variables: {A: !Ref F}}}"
    )
    [function] = load(text).functions
    settings = function.settings
    assert (settings.task_root, settings.name, settings.memory_mb) == (tmp_path / "code", "mine", 512)
    assert (settings.timeout_s, settings.environ["A"], function.alias) == (9.0, "mine", None)


def test_function_of_the_cdk(load: Load, tmp_path: Path) -> None:
    """What the CDK synthesises names an asset beside the resource; the layer's as well."""
    code = "Code: {S3Bucket: b, S3Key: k}, Handler: app.f, Runtime: python3.13, Layers: [!Ref L]"
    template = load(
        plain(f"{{{code}}}", "{'aws:asset:path': asset.1, 'aws:asset:property': Code}")
        + "  L:\n    Type: AWS::Lambda::LayerVersion\n"
        "    Metadata: {'aws:asset:path': asset.2}\n    Properties: {Content: {S3Bucket: b, S3Key: l}}\n"
    )
    [function] = template.functions
    assert function.settings.task_root == tmp_path / "asset.1"
    assert function.settings.environ["PYTHONPATH"] == str(tmp_path / "asset.2" / "python")


def test_image_of_the_cdk(load: Load, tmp_path: Path) -> None:
    """An image's asset names folder, Dockerfile and stage."""
    (tmp_path / "asset.3").mkdir()
    (tmp_path / "asset.3" / "Dockerfile.mine").write_text('FROM base AS one\nCMD ["a.f"]\nFROM base\n')
    metadata = (
        "{'aws:asset:path': asset.3, 'aws:asset:dockerfile-path': Dockerfile.mine,"
        " 'aws:asset:docker-build-target': one}"
    )
    [function] = load(plain("{Code: {ImageUri: x}, PackageType: Image}", metadata)).functions
    assert (function.settings.handler, function.settings.task_root) == ("a.f", tmp_path / "asset.3")


def test_layer_that_sam_would_build(load: Load, tmp_path: Path) -> None:
    """With `BuildMethod: python…` the folder itself is what SAM would put under `python/`."""
    (tmp_path / "code").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "module.py").touch()
    layer = "{Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: mine}METADATA}"
    text = one_function(f"{ZIP}, Layers: [!Ref L]}}", f"  L: {layer}\n")
    built = load(text.replace("METADATA", ", Metadata: {BuildMethod: python3.13}"))
    assert built.functions[0].settings.environ["PYTHONPATH"] == str(tmp_path / "mine")
    unbuilt = load(text.replace("METADATA", ""))
    assert f"what is in /opt on AWS is in {tmp_path / 'mine'} here" in "\n".join(lines(unbuilt.notes))


def test_layers_may_depend_on_a_condition(load: Load, tmp_path: Path) -> None:
    """A layer under `!If` is one like any other."""
    more = (
        "  L: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: mine}}\n"
        "Conditions: {Yes: !Equals [1, 1]}\n"
    )
    template = load(one_function(f"{ZIP}, Layers: [!If [Yes, !Ref L, !Ref AWS::NoValue]]}}", more))
    assert template.functions[0].settings.environ["PYTHONPATH"] == str(tmp_path / "mine" / "python")


@pytest.mark.parametrize("missing", ["{CodeUri: c, Runtime: python3.13}", "{CodeUri: c, Handler: a.b}"])
def test_half_a_function_is_an_error(load: Load, missing: str) -> None:
    """A function without handler or runtime is refused by AWS as well."""
    with pytest.raises(TemplateError, match="expected both"):
        load(one_function(missing))
