"""`coldframe up`: the local API."""

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click

from coldframe.capacity import limits
from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe.capacity.switches import Switches
from local.commands.rules import lifetimes, rate_switches
from local.emulator.lambda_service.settings import RESTORE_MS
from local.emulator.lambda_service.telemetry.log_pipe import Log
from local.name_value import template_parameters
from local.paths import ROOT, check_served

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
_METRICS, _MODELS, _TRACES = "COLDFRAME_METRICS_NAMESPACE", "COLDFRAME_MODELS", "COLDFRAME_TRACES"
_TEMPLATE = ROOT / "template.yaml"
_DEMO_ENVIRONMENTS = 10  # what `coldframe up` alone may take of a small machine


@click.command()
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
    help="Most environments to run at once for a function without reserved concurrency. Protects this "
    "machine; AWS has no such limit.  [default: 10 for the project's template, else what the account has]",
)
@click.option(
    "--reserved-concurrency",
    type=click.IntRange(0, 100_000),
    help="Reserved concurrency of each function; more requests at once get 429.  [default: the template's]",
)
@rate_switches
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
    "--freeze/--no-freeze",
    default=True,
    help="Nothing of a function runs between its invocations, as on Lambda.  [default: freeze]",
)
@click.option(
    "--snapstart/--no-snapstart",
    default=None,
    help="Environments of published versions start from a snapshot.  [default: the template's]",
)
@click.option(
    "--restore-ms",
    default=RESTORE_MS,
    show_default=True,
    type=click.FloatRange(0),
    help="AWS's own part of a restore, which cannot be measured here.",
)
@lifetimes
@click.option(
    "--keep-alive-s",
    type=click.FloatRange(0.1),
    help="Every idle environment is stopped after this.  [default: --idle-expiry-min]",
)
@click.option(
    "--seed", default=0, show_default=True, type=int, help="Seed for the idle times of environments."
)
@click.option(
    "--timeout-s",
    type=click.FloatRange(0.1, limits.TIMEOUT.value),
    help="An invocation is stopped after this.  [default: the template's]",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    help="A model to serve; may be repeated. The first answers requests that name none.  [default: the"
    " template's, else all that are built]",
)
@click.option(
    "--as-aws",
    is_flag=True,
    help="Failures of functions have AWS's statuses and bodies, for clients whose retries are to be tried.",
)
@click.option(
    "--otlp",
    metavar="URL",
    help="Collector of OpenTelemetry that gets a trace of each request, such as http://127.0.0.1:4318.",
)
@click.option("--verbose", is_flag=True, help="Say which properties of the template are ignored, and why.")
@click.option("--reload", is_flag=True, help="Load changed code: environments are replaced.")
@click.option(
    "--stores/--no-stores",
    default=True,
    help="DynamoDB, S3 and SQS for the template's tables, buckets and queues.  [default: stores, in memory]",
)
@click.option(
    "--stores-port",
    default=0,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Where they listen; 0: a free port.",
)
@click.option(
    "--schedules/--no-schedules",
    default=True,
    help="Run the template's schedules: functions get their events when they are due.  [default: schedules]",
)
@click.option(
    "--event-source-mappings/--no-event-source-mappings",
    default=True,
    help="Read the template's queues for the functions that they invoke.  [default: event-source-mappings]",
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
    switches: Switches,
    provisioned_concurrency: int | None,
    account_concurrency: int,
    memory_mb: int | None,
    cpu_from_memory: bool,
    freeze: bool,
    snapstart: bool | None,
    restore_ms: float,
    idle_expiry: IdleExpiry,
    max_age_s: float | None,
    keep_alive_s: float | None,
    seed: int,
    timeout_s: float | None,
    models: tuple[str, ...],
    as_aws: bool,
    otlp: str | None,
    verbose: bool,
    reload: bool,
    stores: bool,
    stores_port: int,
    schedules: bool,
    event_source_mappings: bool,
    dynamodb_endpoint: str | None,
    s3_endpoint: str | None,
    sqs_endpoint: str | None,
) -> None:
    """Serve the functions of template.yaml on this machine, as API Gateway and Lambda would.

    One request per environment, each a process that starts cold. The Lambda API is on the same port: boto3
    and the AWS CLI reach it with --endpoint-url.
    """
    from local.emulator.front.emulator import run
    from local.emulator.options import EmulatorOptions
    from local.emulator.stores.places import StoreOptions
    from local.emulator.stores.stores import without_stores
    from local.emulator.template.template import load_template

    if models:
        os.environ[_MODELS] = ",".join(models)
    url = f"http://{host}:{port}"
    loaded = load_template(template, dict(parameters), url=url)
    loaded = loaded.with_settings(
        reserved_concurrency=reserved_concurrency,
        provisioned_concurrency=provisioned_concurrency,
        memory_mb=memory_mb,
        timeout_s=timeout_s,
        cpu_from_memory=cpu_from_memory,
        freeze=freeze,
        snapstart=snapstart,
        restore_ms=restore_ms,
    )
    for model_name in loaded.values_of(_MODELS):
        # A missing model is better said here than by each environment.
        check_served(os.environ.get(_MODELS) or model_name)
    environ = _telemetry(otlp)
    if os.environ.get("COLDFRAME_CACHE_TABLE"):
        # A table of one's own: its AWS settings pass, as Lambda gives its functions those of their role.
        environ |= {name: os.environ[name] for name in _AWS_ACCESS if name in os.environ}
        stores = False
    options = EmulatorOptions(
        host=host,
        port=port,
        template=loaded if stores else without_stores(loaded),
        max_environments=concurrency or (_DEMO_ENVIRONMENTS if template == _TEMPLATE else None),
        account_concurrency=account_concurrency,
        switches=switches,
        keep_alive_s=keep_alive_s or 0.0,
        idle_expiry=None if keep_alive_s else idle_expiry,
        max_age_s=max_age_s,
        seed=seed,
        environ=environ,
        stores=StoreOptions(dynamodb_endpoint, s3_endpoint, sqs_endpoint, stores_port),
        schedules=schedules,
        event_source_mappings=event_source_mappings,
        reload=reload,
        as_aws=as_aws,
        verbose=verbose,
    )
    if otlp is None:
        run(options)
        return
    from coldframe.telemetry.spans import open_sender

    with closing(open_sender("coldframe", otlp)) as sender:
        run(replace(options, log=_also(options.log, sender)))
    if sender.lost:
        click.echo(f"{otlp} did not take {sender.lost} spans. Start a collector there.", err=True)


def _telemetry(otlp: str | None) -> dict[str, str]:
    """Variables of every function. Metrics are for CloudWatch; spans are for a collector, if there is one."""
    traces = {} if otlp is None else {_TRACES: "log"}
    quiet = {_METRICS: "", _TRACES: "off"}
    return {name: value for name, value in quiet.items() if name not in os.environ} | traces


def _also(write: Log, send: Callable[[str], None]) -> Log:
    def write_and_send(line: str) -> None:
        send(line)
        write(line)

    return write_and_send
