"""`coldframe`: the one command of the project."""

import json
import os
import subprocess
import sys
from pathlib import Path

import click
from msgspec.structs import replace

from coldframe import __version__
from coldframe.capacity import limits
from coldframe.model.files import HEAD_NAMES
from local.command_group import CommandGroup
from local.name_value import template_parameters
from local.paths import BUILD_PYTHON, ROOT, build_environ, named_model
from local.paths import model_dir as _model_dir

_AWS_ACCESS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_DYNAMODB",
    "AWS_ENDPOINT_URL_S3",
    "AWS_CA_BUNDLE",
)
_MODEL_DIR = "COLDFRAME_MODEL_DIR"
_FILE = click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path)
_FOLDER = click.Path(file_okay=False, resolve_path=True, path_type=Path)
_TEXTS_AT_ONCE = 256  # answers of a long list come while the rest of it is computed
_ANY_SIZE_BYTES = 1 << 30  # Lambda's limits are no reason to refuse a line here
_TEMPLATE = ROOT / "template.yaml"
_DEMO_ENVIRONMENTS = 10  # what `coldframe up` alone may take of a small machine


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="coldframe")
def main() -> None:
    """Text classification on AWS Lambda with its cold starts under control."""


@main.command()
@click.option(
    "--train",
    is_flag=True,
    help="Train heads and estimator again on 20 Newsgroups (a quarter of an hour), and build with them.",
)
@click.option(
    "--weights", type=click.Path(exists=True, path_type=Path), help="Folder with model.safetensors."
)
def build(train: bool, weights: Path | None) -> None:
    """Build the model bundle: fetch, export, quantize, check."""
    arguments = ["--weights", str(weights)] if weights else []
    _run_in_build_environment("layers.model.build", *arguments)
    if train:  # on the encoder that was just built
        _run_in_build_environment("layers.model.train")
        _run_in_build_environment("layers.model.build", *arguments)


def _run_in_build_environment(module: str, *arguments: str) -> None:
    """Runs a module where torch and scikit-learn are; when it fails, this process ends with its status."""
    if not BUILD_PYTHON.exists():
        raise click.ClickException(
            f"{BUILD_PYTHON} is missing: the build environment is not set up. Run `make build`."
        )
    finished = subprocess.run([BUILD_PYTHON, "-m", module, *arguments], cwd=ROOT, env=build_environ())
    if finished.returncode:
        sys.exit(finished.returncode)


@main.command()
@click.argument("table", type=_FILE)
@click.option("--text", required=True, metavar="COLUMN", help="The column of the texts.")
@click.option("--label", required=True, metavar="COLUMN", help="The column of the labels, one for each text.")
@click.option("--group", metavar="COLUMN", help="Rows of one group, such as a thread, are not tested apart.")
@click.option("--name", required=True, help="The model's name; it is written to models/NAME.")
@click.option("--test", type=_FILE, help="Rows to test with.  [default: a share of TABLE]")
@click.option(
    "--test-share",
    default=0.2,
    show_default=True,
    type=click.FloatRange(0.01, 0.4),
    help="The share of TABLE that is held out to test with.",
)
@click.option("--seed", default=20, show_default=True, type=click.IntRange(0, 2**31 - 1))
@click.option(
    "--heads",
    default=",".join(HEAD_NAMES),
    show_default=True,
    help="Heads to train, separated by commas.",
)
@click.option("--drop", is_flag=True, help="Leave out rows with faults instead of ending with their list.")
@click.option(
    "--compare", metavar="OTHER", help="A model, by name or folder, that is asked about the same test rows."
)
@click.option(
    "--must-beat", is_flag=True, help="An error, and no model, when this model is worse than OTHER."
)
@click.option("--models", type=_FOLDER, help="The folder of models.  [default: models]")
def train(
    table: Path,
    text: str,
    label: str,
    group: str | None,
    name: str,
    test: Path | None,
    test_share: float,
    seed: int,
    heads: str,
    drop: bool,
    compare: str | None,
    must_beat: bool,
    models: Path | None,
) -> None:
    """Train a model on TABLE: CSV, TSV, JSON Lines or Parquet, with a column of texts and one of labels."""
    given = {
        "--text": text,
        "--label": label,
        "--group": group,
        "--name": name,
        "--test": test,
        "--test-share": test_share,
        "--seed": seed,
        "--heads": heads,
        "--compare": compare,
        "--models": models,
    }
    options = [f"{option}={value}" for option, value in given.items() if value is not None]
    flags = ["--drop"] * drop + ["--must-beat"] * must_beat
    _run_in_build_environment("layers.model.train_table", *options, *flags, "--", str(table))


@main.command()
@click.option("--model-dir", type=click.Path(path_type=Path), default=None, help="The bundle to check.")
def verify(model_dir: Path | None) -> None:
    """Check every file of the bundle and every golden vector."""
    from coldframe.model.verify import verify_bundle

    report = verify_bundle(model_dir or _model_dir())
    click.echo(f"{report.version}: {report.files} files as built, {report.golden} golden vectors,", nl=False)
    click.echo(f" lowest cosine {report.lowest_cosine:.4f}")


@main.command()
@click.option(
    "--template",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=_TEMPLATE,
    help="A SAM template; default: the project's own.",
)
@template_parameters
@click.option(
    "--account-concurrency",
    default=limits.CONCURRENCY.value,
    show_default=True,
    type=click.IntRange(1),
    help="The account's limit; a new account may have less.",
)
def check(template: Path, parameters: tuple[tuple[str, str], ...], account_concurrency: int) -> None:
    """Refuse what AWS would refuse during a deployment, or after it."""
    from local.check.check import RULES
    from local.check.check import check as findings_of
    from local.check.deployment import load_deployment
    from local.template.cloudformation import load_stack

    stack = load_stack(template, dict(parameters))
    findings = findings_of(load_deployment(stack, _model_dir(), account_concurrency))
    for finding in findings:
        click.echo(finding)
    if findings:
        sys.exit(1)
    click.echo(f"{template.name}: {len(stack.resources)} resources pass {len(RULES)} rules")


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=3000, show_default=True, type=click.IntRange(0, 65535), help="0: a free one.")
@click.option(
    "--template",
    default=_TEMPLATE,
    type=click.Path(path_type=Path),
    help="The SAM template to run.  [default: the project's]",
)
@template_parameters
@click.option(
    "--concurrency",
    "--max-environments",
    type=click.IntRange(1, 100_000),
    help="Environments at once that this machine is to bear of a function without reserved concurrency; "
    "AWS has no such limit.  [default: 10 for the project's template, else what the account has]",
)
@click.option(
    "--reserved-concurrency",
    type=click.IntRange(0, 100_000),
    help="Of each function; more requests at once get 429.  [default: the template's]",
)
@click.option(
    "--request-rate/--no-request-rate",
    default=True,
    help="At most ten requests a second for each unit of concurrency, as on Lambda.  [default: request-rate]",
)
@click.option(
    "--provisioned-concurrency",
    type=click.IntRange(0, limits.CONCURRENCY.value),
    help="Environments of each function initialised ahead of requests.  [default: the template's]",
)
@click.option(
    "--account-concurrency",
    default=limits.CONCURRENCY.value,
    show_default=True,
    type=click.IntRange(1, 100_000),
    help="The same limit for all functions together.",
)
@click.option(
    "--memory-mb",
    type=click.IntRange(limits.MIN_MEMORY.value, limits.MEMORY.value),
    help="An environment that holds more is killed.  [default: the template's]",
)
@click.option(
    "--cpu-from-memory",
    is_flag=True,
    help=f"CPU in proportion to memory, as on Lambda: {limits.VCPU.value} MB are one vCPU.",
)
@click.option(
    "--freeze", is_flag=True, help="Nothing of a function runs between its invocations, as on Lambda."
)
@click.option(
    "--keep-alive-s",
    default=600.0,
    show_default=True,
    type=click.FloatRange(0.1),
    help="An idle environment is stopped after this.",
)
@click.option(
    "--timeout-s",
    type=click.FloatRange(0.1, limits.TIMEOUT.value),
    help="An invocation is stopped after this.  [default: the template's]",
)
@click.option("--model", help="A model that `coldframe train` made.  [default: the example's]")
@click.option(
    "--as-aws",
    is_flag=True,
    help="Failures of functions have AWS's statuses and bodies, for clients whose retries are to be tried.",
)
@click.option("--reload", is_flag=True, help="Load changed code: environments are replaced.")
@click.option(
    "--stores/--no-stores",
    default=True,
    help="DynamoDB, S3 and SQS for the template's tables, buckets and queues.  [default: stores, in memory]",
)
@click.option(
    "--dynamodb-endpoint",
    envvar="AWS_ENDPOINT_URL_DYNAMODB",
    metavar="URL",
    help="Another DynamoDB, such as DynamoDB Local.",
)
@click.option("--s3-endpoint", envvar="AWS_ENDPOINT_URL_S3", metavar="URL", help="Another S3, such as MinIO.")
@click.option(
    "--sqs-endpoint", envvar="AWS_ENDPOINT_URL_SQS", metavar="URL", help="Another SQS, such as ElasticMQ."
)
def up(
    host: str,
    port: int,
    template: Path,
    parameters: tuple[tuple[str, str], ...],
    concurrency: int | None,
    reserved_concurrency: int | None,
    request_rate: bool,
    provisioned_concurrency: int | None,
    account_concurrency: int,
    memory_mb: int | None,
    cpu_from_memory: bool,
    freeze: bool,
    keep_alive_s: float,
    timeout_s: float | None,
    model: str | None,
    as_aws: bool,
    reload: bool,
    stores: bool,
    dynamodb_endpoint: str | None,
    s3_endpoint: str | None,
    sqs_endpoint: str | None,
) -> None:
    """Serve the functions of template.yaml on this machine, as API Gateway and Lambda would.

    One request per environment, each a process that starts cold. The Lambda API is on the same port: boto3
    and the AWS CLI reach it with --endpoint-url.
    """
    from coldframe.model.bundle import load_manifest
    from local.front.emulator import run
    from local.front.options import EmulatorOptions
    from local.stores.places import StoreOptions
    from local.stores.stores import without_stores
    from local.template.template import load_template

    if model:
        os.environ[_MODEL_DIR] = str(named_model(model))
    url = f"http://{host}:{port}"
    loaded = load_template(template, dict(parameters), url=url)
    loaded = loaded.with_settings(
        reserved_concurrency=reserved_concurrency,
        provisioned_concurrency=provisioned_concurrency,
        memory_mb=memory_mb,
        timeout_s=timeout_s,
        cpu_from_memory=cpu_from_memory,
        freeze=freeze,
    )
    for model_dir in loaded.values_of(_MODEL_DIR):
        # A missing bundle is better said here than by each environment.
        load_manifest(Path(os.environ.get(_MODEL_DIR) or model_dir))
    environ: dict[str, str] = {}
    if os.environ.get("COLDFRAME_CACHE_TABLE"):
        # A table of one's own: its AWS settings pass, as Lambda gives its functions those of their role.
        environ |= {name: os.environ[name] for name in _AWS_ACCESS if name in os.environ}
        stores = False
    run(
        EmulatorOptions(
            host=host,
            port=port,
            template=loaded if stores else without_stores(loaded),
            max_environments=concurrency or (_DEMO_ENVIRONMENTS if template == _TEMPLATE else None),
            account_concurrency=account_concurrency,
            request_rate=request_rate,
            keep_alive_s=keep_alive_s,
            environ=environ,
            stores=StoreOptions(dynamodb_endpoint, s3_endpoint, sqs_endpoint),
            reload=reload,
            as_aws=as_aws,
        )
    )


@main.command()
@click.argument("texts", nargs=-1)
@click.option("--head", "heads", multiple=True, help="A head that answers; may be repeated.")
@click.option("--top-k", default=1, show_default=True, type=click.IntRange(1, 1000))
def predict(texts: tuple[str, ...], heads: tuple[str, ...], top_k: int) -> None:
    """Classify TEXTS, or one text per line of standard input, without a server."""
    from coldframe.api.api import Api, Request
    from coldframe.config import load_settings
    from coldframe.pipeline.predictor import load_predictor
    from coldframe.timing import StartMark

    settings = replace(
        load_settings(os.environ),
        model_dir=_model_dir(),
        log_level="off",
        max_texts=_TEXTS_AT_ONCE,
        max_body_bytes=_ANY_SIZE_BYTES,
        max_answer_bytes=_ANY_SIZE_BYTES,
    )
    api = Api(load_predictor(settings), settings, StartMark())
    lines = list(texts) or [line.rstrip("\n") for line in sys.stdin]
    asked: dict[str, object] = {"top_k": top_k} | ({"heads": list(heads)} if heads else {})
    for start in range(0, max(1, len(lines)), _TEXTS_AT_ONCE):
        body = json.dumps({**asked, "texts": lines[start : start + _TEXTS_AT_ONCE]}).encode()
        reply = api.answer(Request("POST", "/v1/predict", body=body))
        answer = json.loads(reply.body)
        if reply.status != 200:
            raise click.ClickException(answer["detail"])
        for prediction in answer["predictions"]:
            click.echo(json.dumps(prediction["heads"]))


@main.command("fill-cache")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--head", "heads", multiple=True, help="A head whose predictions are stored; default: all.")
def fill_cache(file: Path, heads: tuple[str, ...]) -> None:
    """Fill the shared cache from FILE: one JSON object with "text", or one string, per line."""
    from local.stores.fill_cache import fill

    click.echo(str(fill(file, _model_dir(), heads)))


if __name__ == "__main__":
    main()
