"""`coldframe offline`: every row of an object in S3."""

from __future__ import annotations

import os
import random
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coldframe.capacity import limits
from coldframe_local.command_group import Group
from coldframe_local.emulator.template.syntax.parameters import REGION
from coldframe_local.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coldframe_local.batch.offline.request import OfflineRequest
    from coldframe_local.batch.offline.run_locally import Here

_FUNCTION = "PredictFunction"
_JOURNALS = ROOT / ".cache" / "offline"


@click.group(cls=Group)
def offline() -> None:
    """Classify every row of an object in S3: on AWS by Step Functions, or on this machine."""


@offline.command()
@click.argument("source")
@click.option("--out", required=True, metavar="S3", help="Where results go: s3://bucket/prefix.")
@click.option("--text", default="text", show_default=True, help="The column that is classified.")
@click.option("--head", "heads", multiple=True, help="A head that answers; may be repeated.")
@click.option("--model", help="The model that answers.  [default: the function's first]")
@click.option(
    "--format",
    "form",
    type=click.Choice(["CSV", "JSONL", "PARQUET"], case_sensitive=False),
    help="Format of SOURCE.  [default: by the end of the key]",
)
@click.option(
    "--batch",
    "batch_items",
    default=200,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Rows of one invocation. Larger batches cost less, and lose more when one fails.",
)
@click.option(
    "--concurrency",
    default=4,
    show_default=True,
    type=click.IntRange(1, limits.MAP_CHILDREN.value),
    help="Most invocations at once. More end the run sooner, and take more of the account's concurrency.",
)
@click.option(
    "--cache/--no-cache",
    default=False,
    show_default=True,
    help="Ask and fill the shared cache. For a short text that costs more than computing it.",
)
@click.option(
    "--tolerate-percent",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0, 100),
    help="Rows that may fail.",
)
@click.option(
    "--name",
    help="Name of the run. A run of this name resumes.  [default: by arguments, object and model version]",
)
@click.option(
    "--state-machine",
    metavar="ARN",
    help="Run on AWS: the output OfflineStateMachine of the stack.  [default: none; needs --local]",
)
@click.option(
    "--local",
    "url",
    metavar="URL",
    help="Run here, with functions of this Lambda API: `coldframe up`.  [default: none]",
)
@click.option(
    "--function", default=_FUNCTION, show_default=True, help="Its name or ARN, for the estimate and --local."
)
@click.option(
    "--journals",
    type=click.Path(file_okay=False, path_type=Path),
    default=_JOURNALS,
    help="Where a run here keeps what it has done.  [default: .cache/offline]",
)
@click.option(
    "--s3-endpoint",
    envvar="AWS_ENDPOINT_URL_S3",
    metavar="URL",
    help="Another S3, such as MinIO.  [default: AWS's]",
)
@click.option("--region", default=REGION, show_default=True, help="Region of the estimate's prices.")
@click.option(
    "--architecture",
    default="arm64",
    show_default=True,
    type=click.Choice(("arm64", "x86_64")),
    help="Architecture of the estimate's prices.",
)
@click.option("--estimate/--no-estimate", "estimated", default=True, help="Say first what it costs.")
@click.option("--yes", is_flag=True, help="Start without a question.")
def start(
    source: str,
    out: str,
    text: str,
    heads: tuple[str, ...],
    model: str | None,
    form: str | None,
    batch_items: int,
    concurrency: int,
    cache: bool,
    tolerate_percent: float,
    name: str | None,
    state_machine: str | None,
    url: str | None,
    function: str,
    journals: Path,
    s3_endpoint: str | None,
    region: str,
    architecture: str,
    estimated: bool,
    yes: bool,
) -> None:
    """Classify every row of SOURCE, s3://bucket/key: CSV with a header, JSON Lines or Parquet.

    Says what it will cost, then starts. Started again with the same arguments, it resumes where it was cut
    off; with another object or model version it is another run.
    """
    from coldframe_local.batch.offline.pin import pin
    from coldframe_local.batch.offline.request import OfflineRequest, format_of, place_of
    from coldframe_local.batch.offline.run_locally import Here
    from coldframe_local.emulator.state_machines.lambda_task import LambdaTask

    if (state_machine is None) == (url is None):
        raise click.UsageError(
            "Say where to run: --state-machine ARN on AWS, or --local URL on this machine."
        )
    place = place_of(source)
    request = OfflineRequest(
        place,
        place_of(out),
        form.upper() if form else format_of(place.key),
        text,
        list(heads) or None,
        model,
        batch_items,
        concurrency,
        tolerate_percent,
        cache,
        traceparent=_traceparent(),
    )
    s3, lambda_ = _client("s3", region, s3_endpoint), _client("lambda", region, url)
    with _failures():
        request = pin(request, s3, LambdaTask(lambda_), function)
        here = Here(request, name or request.default_name(), s3, lambda_, function, journals)
        if estimated:
            _say_estimate(here, region, architecture)
        if not yes:
            click.confirm("Start?", abort=True)
        click.echo(f"run {here.name}")
        click.echo(f"trace {request.as_input()['traceparent'].split('-')[1]}")
        if url is not None:
            _run_here(here, region, architecture)
        else:
            _run_on_aws(request, here.name, s3, _client("stepfunctions", region, None), state_machine or "")


def _traceparent() -> str:
    """W3C's header in the variable `TRACEPARENT`; "" where there is none, or a malformed one.

    https://opentelemetry.io/docs/specs/otel/context/env-carriers/, read 2026-11-25
    """
    from coldframe.telemetry.trace import TRACEPARENT, continue_trace

    header = os.environ.get(TRACEPARENT.upper(), "").strip()
    return header if continue_trace({TRACEPARENT: header}).parent_id else ""


@contextmanager
def _failures() -> Iterator[None]:
    """Turn an error of AWS, or of the local emulator, into one line of output."""
    from botocore.exceptions import BotoCoreError, ClientError

    from coldframe_local.emulator.state_machines.workflow import Failed

    try:
        yield
    except (BotoCoreError, ClientError) as exc:
        raise click.ClickException(str(exc)) from exc
    except Failed as exc:
        raise click.ClickException(f"{exc.error}: {exc.cause}") from exc


def _say_estimate(here: Here, region: str, architecture: str) -> None:
    from coldframe_local.batch.offline.estimate import estimate
    from coldframe_local.planner.scenarios.prices import load_prices

    forecast = estimate(here.batches(), here.probe, here.request.concurrency, random.Random(0))
    if not forecast.rows:
        raise click.ClickException(f"{here.request.source} has no rows.")
    usd = forecast.usage.usd(load_prices().region(region), architecture)
    click.echo(
        f"{forecast.rows:,} rows in {forecast.usage.batches:,} batches: about {usd:.4f} USD"
        f" (± {forecast.error:.0%} by the sample), {usd / forecast.rows * 1e6:.2f} USD per million rows"
    )


def _run_here(here: Here, region: str, architecture: str) -> None:
    from coldframe_local.planner.scenarios.prices import load_prices

    rows = 0  # a bar without a terminal counts nothing
    with _bar() as bar:

        def count(items: int) -> None:
            nonlocal rows
            rows += items
            bar.update(items)

        output = here.run(count)
    usage = here.usage()
    usd = usage.usd(load_prices().region(region), architecture)
    click.echo(f"{rows:,} rows; {usage.batches:,} batches were invoked by this command, {usd:.4f} USD on AWS")
    _say_results(output)


def _run_on_aws(request: OfflineRequest, name: str, s3: Any, states: Any, arn: str) -> None:
    from coldframe_local.batch.offline.on_aws import OnAws
    from coldframe_local.batch.offline.pin import check_unchanged

    with _bar() as bar:

        def show(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        output = OnAws(request, name, states, arn).run(show)
    check_unchanged(request, s3)
    _say_results(output)


def _say_results(output: dict[str, Any]) -> None:
    details = output["ResultWriterDetails"]
    click.echo(f"results: s3://{details['Bucket']}/{details['Key']}")


def _bar() -> Any:
    from coldframe.progress import Progress

    return Progress(desc="classifying", unit="row", unit_scale=True)


def _client(service: str, region: str, endpoint: str | None) -> Any:
    import boto3
    from botocore.config import Config

    # Path style: a bucket's name before `127.0.0.1` is not a host. An invocation may take fifteen minutes.
    config = Config(
        connect_timeout=5,
        read_timeout=910,
        retries={"total_max_attempts": 3 if service == "s3" else 1},
        s3={"addressing_style": "path"} if endpoint else None,
        max_pool_connections=100,
    )
    if endpoint is None:
        return boto3.client(service, region_name=region, config=config)
    # The emulator and its stores heed no key, and boto3 wants one.
    session = boto3.Session()
    keys = (
        {} if session.get_credentials() else {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
    )
    return session.client(service, region_name=region, endpoint_url=endpoint, config=config, **keys)
