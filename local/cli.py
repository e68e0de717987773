"""`coldframe`: the one command of the project."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click
from msgspec.structs import replace

from coldframe import __version__
from coldframe.errors import ColdframeError

ROOT = Path(__file__).resolve().parent.parent
BUILD_PYTHON = ROOT / ".venv-build" / "bin" / "python"
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
BUNDLE = ROOT / "layers" / "model" / "bundle"


class Cli(click.Group):
    """Shows our own errors as one line, without a stack trace."""

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except ColdframeError as exc:
            raise click.ClickException(str(exc)) from exc


@click.group(cls=Cli, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="coldframe")
def main() -> None:
    """Text classification on AWS Lambda with its cold starts under control."""


@main.command()
@click.option(
    "--train",
    is_flag=True,
    help="Train heads and estimator again on 20 Newsgroups first (a quarter of an hour).",
)
@click.option(
    "--weights", type=click.Path(exists=True, path_type=Path), help="Folder with model.safetensors."
)
def build(train: bool, weights: Path | None) -> None:
    """Build the model bundle: fetch, export, quantize, check."""
    if not BUILD_PYTHON.exists():
        raise click.ClickException(
            f"{BUILD_PYTHON} is missing: the build environment is not set up. Run `make build`."
        )
    arguments = ["--weights", str(weights)] if weights else []
    training = ["layers.model.train", "layers.model.train_estimator"] if train else []
    for module in [*training, "layers.model.build"]:
        finished = subprocess.run([BUILD_PYTHON, "-m", module, *arguments], cwd=ROOT, env=_build_environ())
        if finished.returncode:
            sys.exit(finished.returncode)


@main.command()
@click.option("--model-dir", type=click.Path(path_type=Path), default=None, help="The bundle to check.")
def verify(model_dir: Path | None) -> None:
    """Check every file of the bundle and every golden vector."""
    from coldframe.verify import verify_bundle

    report = verify_bundle(model_dir or _model_dir())
    click.echo(f"{report.version}: {report.files} files as built, {report.golden} golden vectors,", nl=False)
    click.echo(f" lowest cosine {report.lowest_cosine:.4f}")


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=3000, show_default=True, type=click.IntRange(0, 65535))
@click.option(
    "--max-environments",
    default=10,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="More requests at once get 429.",
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
    default=29.0,
    show_default=True,
    type=click.FloatRange(0.1, 900),
    help="An invocation is stopped after this.",
)
def up(host: str, port: int, max_environments: int, keep_alive_s: float, timeout_s: float) -> None:
    """Serve the function on this machine, as Lambda would: one request per environment."""
    from coldframe.bundle import load_manifest
    from local.emulator import EmulatorOptions, run

    load_manifest(_model_dir())  # a missing bundle is better said here than by each environment
    environ = {name: value for name, value in os.environ.items() if name.startswith("COLDFRAME_")}
    if environ.get("COLDFRAME_CACHE_TABLE"):  # as Lambda gives its functions those of their role
        environ |= {name: os.environ[name] for name in _AWS_ACCESS if name in os.environ}
    run(
        EmulatorOptions(
            host=host,
            port=port,
            max_environments=max_environments,
            keep_alive_s=keep_alive_s,
            timeout_s=timeout_s,
            task_root=ROOT,
            environ={**environ, "COLDFRAME_MODEL_DIR": str(_model_dir())},
        )
    )


@main.command()
@click.argument("texts", nargs=-1)
@click.option("--head", "heads", multiple=True, help="A head that answers; may be repeated.")
@click.option("--top-k", default=1, show_default=True, type=click.IntRange(1, 20))
def predict(texts: tuple[str, ...], heads: tuple[str, ...], top_k: int) -> None:
    """Classify TEXTS, or one text per line of standard input, without a server."""
    from coldframe.api import Api, Request
    from coldframe.config import load_settings
    from coldframe.predictor import load_predictor
    from coldframe.timing import StartMark

    settings = replace(load_settings(os.environ), model_dir=_model_dir(), log_level="off")
    asked: dict[str, object] = {"texts": list(texts) or sys.stdin.read().splitlines(), "top_k": top_k}
    if heads:
        asked["heads"] = list(heads)
    reply = Api(load_predictor(settings), settings, StartMark()).answer(
        Request("POST", "/v1/predict", body=json.dumps(asked).encode())
    )
    answer = json.loads(reply.body)
    if reply.status != 200:
        raise click.ClickException(answer["detail"])
    for prediction in answer["predictions"]:
        click.echo(json.dumps(prediction["heads"]))


@main.command("warm-cache")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--head", "heads", multiple=True, help="A head whose predictions are stored; default: all.")
def warm_cache(file: Path, heads: tuple[str, ...]) -> None:
    """Fill the shared cache from FILE: one JSON object with "text", or one string, per line."""
    from local.warm_cache import warm

    click.echo(str(warm(file, _model_dir(), heads)))


@main.group()
def bench() -> None:
    """Measure, against a floor taken in the same run."""


@bench.command()
@click.option(
    "--samples",
    default=15,
    show_default=True,
    type=click.IntRange(3, 1000),
    help="Fresh processes of each kind.",
)
def cold(samples: int) -> None:
    """Cold starts: fresh processes to their first answer, beside an import floor."""
    from bench.cold_start import run

    run(_model_dir(), samples)


@bench.command()
@click.option(
    "--requests", default=20, show_default=True, type=click.IntRange(4, 10_000), help="Of each mix of texts."
)
@click.option("--budget", type=click.IntRange(1), help="Tokens of a pass; default: measured here.")
@click.option("--seed", default=0, show_default=True, help="Of all that is drawn by chance.")
def batching(requests: int, budget: int | None, seed: int) -> None:
    """Batching inside a request: one text at a time, fixed sizes and the budgeted plan, in one run."""
    from bench.batching import run

    run(_model_dir(), requests, budget, seed)


@bench.command()
@click.option(
    "--samples", default=15, show_default=True, type=click.IntRange(3, 1000), help="Fresh processes."
)
def memory(samples: int) -> None:
    """A served environment: milliseconds of its session, peak memory after requests of every size."""
    from bench.memory import run

    run(_model_dir(), samples)


@bench.command("cache-faults")
@click.option(
    "--requests", default=40, show_default=True, type=click.IntRange(10, 10_000), help="For each fault."
)
@click.option("--seed", default=0, show_default=True, help="Of all that is drawn by chance.")
def cache_faults(requests: int, seed: int) -> None:
    """The shared table down, slow, throttling, wrong or stale, beside no table at all, in one run."""
    if find_spec("moto") is None:
        raise click.ClickException(
            "moto is not installed. Run `make test`, or install tests/requirements.txt."
        )
    from bench.cache_faults import run

    run(_model_dir(), requests, seed)


def _model_dir() -> Path:
    return Path(os.environ.get("COLDFRAME_MODEL_DIR") or BUNDLE)


def _build_environ() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'layers' / 'shared' / 'python'}"}
