"""`coldframe render`: manifests of the homes of the server, on standard output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from local.name_value import NameValue

if TYPE_CHECKING:
    from local.deploy.homes.facts import Choices
    from local.deploy.homes.notes import Manifest

F = TypeVar("F", bound=Callable[..., Any])

_MODELS, _DEVICE = "COLDFRAME_MODELS", "COLDFRAME_DEVICE"
# By whether there is a GPU. `coldframe bench check from-zero` measures what the first of the two sizes holds
# at its peak; nobody has measured yet what CUDA takes.
_IMAGES = {False: "coldframe:server", True: "coldframe:gpu"}
_MEMORIES_MB = {False: 1024, True: 4096}
_OPTIONS = (
    click.option(
        "--image", help="Image, by tag or digest.  [default: coldframe:server; with --gpu: coldframe:gpu]"
    ),
    click.option("--name", default="coldframe", show_default=True, help="Name of every object."),
    click.option("--cpu", default=1.0, show_default=True, type=click.FloatRange(0.25, 192)),
    click.option("--memory-mb", type=click.IntRange(512), help="[default: 1024; with --gpu: 4096]"),
    click.option(
        "--gpu", default=0, show_default=True, type=click.IntRange(0, 16), help="GPUs of a replica."
    ),
    click.option("--models", help="Names to serve, with commas.  [default: all in the image]"),
    click.option(
        "--env",
        "environment",
        multiple=True,
        type=NameValue(),
        metavar="NAME=VALUE",
        help="A setting of the server; may be repeated.",
    ),
    click.option(
        "--allow-anyone",
        is_flag=True,
        help="Answer callers without a token.  [default: the manifest mounts a secret with tokens]",
    ),
)


def _server_options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _replica_options(least: int) -> Callable[[F], F]:
    """--min and --max. least: the default of --min."""
    smallest = click.option(
        "--min",
        "least",
        default=least,
        show_default=True,
        type=click.IntRange(min(least, 1)),
        help="Replicas.",
    )
    largest = click.option("--max", "most", default=10, show_default=True, type=click.IntRange(1))
    return lambda command: smallest(largest(command))


@click.group()
def render() -> None:
    """Print the manifest of a home of the server: for `kubectl apply -f -`, `docker compose`, `aws ecs`."""


@render.command()
@_server_options
@_replica_options(least=2)
@click.option(
    "--kustomize",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a Kustomize base into this folder instead of printing.",
)
def kubernetes(kustomize: Path | None, **options: Any) -> None:
    """Deployment, Service, HorizontalPodAutoscaler, PodDisruptionBudget and NetworkPolicy."""
    from local.deploy.homes.kubernetes import kubernetes as objects_of

    objects = objects_of(_choices(**options))
    if kustomize is None:
        _print(objects)
        return
    from local.deploy.homes.kustomize import write_base

    for path in write_base(kustomize, objects):
        click.echo(path)


@render.command()
@_server_options
@_replica_options(least=0)
def knative(**options: Any) -> None:
    """A Service of Knative Serving, which scales to zero."""
    from local.deploy.homes.knative import knative as objects_of

    _print(objects_of(_choices(**options)))


@render.command()
@_server_options
@_replica_options(least=0)
def kserve(**options: Any) -> None:
    """An InferenceService of KServe, for the Open Inference Protocol (v2)."""
    from local.deploy.homes.kserve import kserve as objects_of

    _print(objects_of(_choices(**options)))


@render.command()
@_server_options
def compose(**options: Any) -> None:
    """A Compose file."""
    from local.deploy.homes.compose import compose as objects_of

    _print(objects_of(_choices(least=1, most=1, **options)))


@render.command()
@_server_options
@click.option(
    "--architecture",
    default="arm64",
    show_default=True,
    type=click.Choice(("arm64", "x86_64")),
    help="Instruction set, which decides the price and the image.",
)
@click.option("--region", default="us-east-1", show_default=True, help="Region of the log.")
@click.option(
    "--execution-role",
    metavar="ARN",
    required=True,
    help="Role that pulls the image, writes the log, and reads the parameter with the tokens.",
)
@click.option("--task-role", metavar="ARN", help="Role of the server, for the shared cache and jobs.")
def ecs(architecture: str, region: str, execution_role: str, task_role: str | None, **options: Any) -> None:
    """A task definition of Amazon ECS, as JSON: for Fargate, with --gpu for EC2."""
    from local.deploy.homes.ecs import OnEcs
    from local.deploy.homes.ecs import ecs as definition_of
    from local.deploy.homes.notes import as_json

    on = OnEcs(execution_role, architecture, region, task_role)
    click.echo(as_json(definition_of(_choices(least=1, most=1, **options), on)), nl=False)


def _choices(
    image: str | None,
    name: str,
    cpu: float,
    memory_mb: int | None,
    gpu: int,
    models: str | None,
    environment: tuple[tuple[str, str], ...],
    allow_anyone: bool,
    least: int,
    most: int,
) -> Choices:
    """Raises BadSetting for a setting that the server would refuse at its start."""
    from coldframe.server.settings import load_server_settings
    from local.deploy.homes.facts import ALLOW_ANYONE, TOKENS, Choices, Replicas, Size

    if most < least:
        raise click.UsageError(f"--min {least} is more than --max {most}.")
    on_gpu = gpu > 0
    settings = dict(environment) | ({_MODELS: models} if models else {})
    if on_gpu:  # without a GPU it does not start: better than a replica that is too slow
        settings.setdefault(_DEVICE, "cuda")
    if allow_anyone:
        settings[ALLOW_ANYONE] = "true"
    if settings.get(TOKENS):
        raise click.UsageError(
            f"A manifest is not a place for {TOKENS}. Put tokens into the secret it names."
        )
    load_server_settings(settings)
    size = Size(cpu, memory_mb or _MEMORIES_MB[on_gpu], gpu)
    return Choices(name, image or _IMAGES[on_gpu], size, Replicas(least, most), settings)


def _print(objects: Sequence[Manifest]) -> None:
    from local.deploy.homes.notes import as_yaml

    click.echo(as_yaml(objects), nl=False)
