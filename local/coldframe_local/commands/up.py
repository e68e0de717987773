"""`coldframe up`: the local API."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coldframe_local.commands.scenario_file import scenario_options
from coldframe_local.commands.scenario_settings import Settings
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import Log
from coldframe_local.name_value import template_parameters
from coldframe_local.paths import ROOT, check_served

if TYPE_CHECKING:
    from coldframe_local.emulator.template.template import Template

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
_MODELS, _TRACES, _SKETCHES = "COLDFRAME_MODELS", "COLDFRAME_TRACES", "COLDFRAME_SKETCHES"
_QUIET = {"COLDFRAME_METRICS_NAMESPACE": "", _TRACES: "off", _SKETCHES: "off"}
"""Settings without additions to the log. Metrics are for CloudWatch, and spans for a collector."""
_TEMPLATE = ROOT / "template.yaml"
_DEMO_ENVIRONMENTS = 10  # what `coldframe up` alone may take of a small machine


@click.command()
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; 0.0.0.0 lets other machines call.",
)
@click.option(
    "--port",
    default=3000,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0: a free one.",
)
@click.option(
    "--template",
    default=_TEMPLATE,
    type=click.Path(path_type=Path),
    help="SAM template whose functions and routes are served.  [default: the project's]",
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
    "--freeze/--no-freeze",
    default=True,
    help="Stop a function's threads between its invocations, as Lambda does.  [default: freeze]",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    help="Model to serve; repeatable. The first one answers requests that name no model.  [default: the"
    " template's, else all that are built]",
)
@click.option(
    "--as-aws",
    is_flag=True,
    help="Answer failures of functions with AWS's statuses and bodies, to try a client's retries.  [default:"
    " answers that explain the failure]",
)
@click.option(
    "--otlp",
    metavar="URL",
    help="Collector of OpenTelemetry that gets a trace of each request, such as http://127.0.0.1:4318."
    "  [default: no traces]",
)
@click.option(
    "--verbose",
    is_flag=True,
    help="Say which properties of the template are ignored, and why.  [default: only how many]",
)
@click.option(
    "--reload",
    is_flag=True,
    help="Replace environments when their code changes.  [default: changes wait for the next start]",
)
@click.option(
    "--stores-port",
    default=0,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port of DynamoDB, S3 and SQS in memory; 0: a free one.",
)
@scenario_options("memory_mb")
def up(
    host: str,
    port: int,
    template: Path,
    parameters: tuple[tuple[str, str], ...],
    concurrency: int | None,
    freeze: bool,
    models: tuple[str, ...],
    as_aws: bool,
    otlp: str | None,
    verbose: bool,
    reload: bool,
    stores_port: int,
    settings: Settings,
) -> None:
    """Serve the functions of template.yaml on this machine, as API Gateway and Lambda would.

    One request per environment, each a process that starts cold. The Lambda API is on the same port: boto3
    and the AWS CLI reach it with --endpoint-url.
    """
    from coldframe_local.emulator.front.emulator import run
    from coldframe_local.emulator.options import EmulatorOptions
    from coldframe_local.emulator.stores.places import StoreOptions
    from coldframe_local.emulator.stores.stores import without_stores
    from coldframe_local.emulator.template.template import load_template

    if models:
        os.environ[_MODELS] = ",".join(models)
    url = f"http://{host}:{port}"
    loaded = load_template(template, dict(parameters), url=url)
    loaded = loaded.with_settings(
        reserved_concurrency=settings.reserved_concurrency,
        provisioned_concurrency=settings.provisioned_concurrency,
        memory_mb=settings.memory_mb,
        timeout_s=settings.timeout_s,
        cpu_from_memory=settings.cpu_from_memory,
        freeze=freeze,
        snapstart=settings.snapstart,
        restore_ms=settings.restore_ms,
    )
    for model_name in loaded.values_of(_MODELS):
        # A missing model is better said here than by each environment.
        check_served(os.environ.get(_MODELS) or model_name)
    environ = _telemetry(otlp is not None or bool(loaded.event_sources.subscriptions), loaded)
    stores = settings.stores
    if os.environ.get("COLDFRAME_CACHE_TABLE"):
        # A table of one's own: its AWS settings pass, as Lambda gives its functions those of their role.
        environ |= {name: os.environ[name] for name in _AWS_ACCESS if name in os.environ}
        stores = False
    options = EmulatorOptions(
        host=host,
        port=port,
        template=loaded if stores else without_stores(loaded),
        max_environments=concurrency or (_DEMO_ENVIRONMENTS if template == _TEMPLATE else None),
        account_concurrency=settings.account_concurrency,
        switches=settings.switches(),
        keep_alive_s=settings.keep_alive_s or 0.0,
        idle_expiry=None if settings.keep_alive_s else settings.idle_expiry(),
        max_age_s=settings.max_age_s(),
        seed=settings.seed,
        environ=environ,
        stores=StoreOptions(*settings.endpoints(), stores_port),
        schedules=settings.schedules,
        event_source_mappings=settings.event_source_mappings,
        reload=reload,
        as_aws=as_aws,
        verbose=verbose,
    )
    if otlp is None:
        run(options)
        return
    from coldframe.telemetry.sending import open_sender

    with closing(open_sender("coldframe", otlp)) as sender:
        run(replace(options, log=_also(options.log, sender)))
    if sender.lost:
        click.echo(f"{otlp} did not take {sender.lost} spans. Start a collector there.", err=True)


def _telemetry(has_receiver: bool, template: Template) -> dict[str, str]:
    """Variables of every function: nothing is added to its log, unless a variable of this process says so.

    has_receiver: somebody takes the spans of the log lines. A function with LOG_GROUP reads sketches.
    """
    has_reader = any("LOG_GROUP" in function.settings.environ for function in template.functions)
    added = ({_TRACES: "log"} if has_receiver else {}) | ({_SKETCHES: "log"} if has_reader else {})
    return {name: value for name, value in _QUIET.items() if name not in os.environ} | added


def _also(write: Log, send: Callable[[str], None]) -> Log:
    def write_and_send(line: str) -> None:
        send(line)
        write(line)

    return write_and_send
