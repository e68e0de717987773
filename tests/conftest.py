"""Shared fixtures: the real bundle, and a small engine where the model does not matter."""

import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
import pytest
from hypothesis import settings

from coldframe.api.api import Api, Reply, Request
from coldframe.cache.cache import PredictionCache
from coldframe.config import Settings
from coldframe.model.bundle import (
    EncoderFacts,
    EncoderManifest,
    EncoderVersion,
    EstimatorFacts,
    HeadFacts,
    Manifest,
    Sealed,
    Source,
    load_manifest,
)
from coldframe.model.encoder import TextEncoder
from coldframe.model.estimator import Guess
from coldframe.model.files import MANIFEST, encoder_folder, model_folder, record_default
from coldframe.model.heads import Head, Heads
from coldframe.model.model import Model
from coldframe.model.tokenizer import Window
from coldframe.pipeline.models import Models, load_predictor
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import NO_DEADLINE, Clock, Deadline, MovingAverage, StartMark
from coldframe.vectors import Vector, to_floats
from coldframe_training.embeddings.matrices import to_matrix, to_vectors
from tests.groups import (
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_runtest_logreport,
    pytest_sessionfinish,
    pytest_testnodedown,
    pytest_xdist_make_scheduler,
)

__all__ = [
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_runtest_logreport",
    "pytest_sessionfinish",
    "pytest_testnodedown",
    "pytest_xdist_make_scheduler",
]

# No law is about how long an example takes: a busy machine would break them all.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "models"
EXAMPLE = "topics"
ENCODER_NAME = "minilm-l6-v2"
SECOND = "queues"
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TREES = ("heads/rf.bin", "heads/hgb.bin")
LABELS = ["animals", "music", "weather"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says last which tests never ran on this machine, and what they need."""
    reasons = Counter(skip_reason(report) for report in terminalreporter.stats.get("skipped", []))
    if reasons:
        terminalreporter.section(f"{reasons.total()} TESTS NEVER RAN HERE", sep="!")
        for reason, count in reasons.most_common():
            terminalreporter.line(f"{count:4} {reason}")


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why a test was skipped, without the place."""
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return why.removeprefix("Skipped: ")


@pytest.fixture(autouse=True)
def clean_environ(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No setting and no credential leaks into a test, of whoever runs it or of another test."""
    before = set(os.environ)
    for name in settings_in_environ():
        monkeypatch.delenv(name)
    yield
    for name in settings_in_environ() - before:
        del os.environ[name]


@pytest.fixture(autouse=True)
def signal_handlers() -> Iterator[None]:
    """No test replaces the handlers of signals that end this process, which runs all tests."""
    before = {number: signal.getsignal(number) for number in _ENDINGS}
    yield
    replaced = [number for number in _ENDINGS if signal.getsignal(number) != before[number]]
    for number in replaced:
        signal.signal(number, before[number])
    if replaced:
        names = ", ".join(number.name for number in replaced)
        pytest.fail(f"This test replaced the handler of {names}. Run the command in a process of its own.")


def settings_in_environ() -> set[str]:
    """Names of variables that change what is tested."""
    return {name for name in os.environ if name.startswith(("COLDFRAME_", "AWS_"))}


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example and its encoder, as `make build` makes them, without other models."""
    if not (MODELS / EXAMPLE / "manifest.json").exists():
        pytest.fail(f"{MODELS} has no {EXAMPLE}. Run `make test`, or `make build` first.")
    folder = tmp_path_factory.mktemp("models")
    for part in ("encoders", EXAMPLE):
        shutil.copytree(MODELS / part, folder / part, ignore=shutil.ignore_patterns("*-gpu"))
    return folder


@pytest.fixture(scope="session")
def containers() -> None:
    """A Docker engine that answers, a base image, and packages to build with; without, a test is skipped."""
    if shutil.which("docker") is None or subprocess.run(["docker", "info"], capture_output=True).returncode:
        pytest.skip("no Docker engine answers: nothing was built or run in a container")
    base = subprocess.run([ROOT / "local" / "tools" / "base-image.sh"], capture_output=True, text=True)
    if base.returncode:
        pytest.skip(f"no base image, so nothing was run in a container: {base.stderr.splitlines()[-1]}")
    download = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest", "packages", "msgspec"]
    command = ["docker", "run", "--rm", "--entrypoint", "python3", base.stdout.strip(), *download]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("containers reach no package index here: no image was built")


@pytest.fixture(scope="session")
def two_models(bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, and on the same encoder a model of its own: other labels, another estimator, two heads.

    The example is the recorded default; its name is not the first by the alphabet.
    """
    folder = tmp_path_factory.mktemp("two-models")
    for part in ("encoders", EXAMPLE):
        (folder / part).symlink_to(bundle / part)
    add_model(folder, SECOND)
    record_default(folder, EXAMPLE)
    return folder


def add_model(model_dir: Path, name: str, temperature: float = 0.5) -> Manifest:
    """Makes a model of the example's files. temperature: of its estimator, for a version of its own."""
    example, folder = load_manifest(model_dir, EXAMPLE), model_folder(model_dir, name)
    shutil.copytree(model_folder(model_dir, EXAMPLE), folder)
    manifest = sealed(
        msgspec.structs.replace(
            example,
            name=name,
            labels=[f"queue {label}" for label in example.labels],
            heads={head: example.heads[head] for head in ("logreg", "mlp")},
            ensemble=msgspec.UNSET,  # its members are other heads
            estimator=msgspec.structs.replace(
                example.estimator, temperature=temperature, answer_temperatures=(0.7, 0.8)
            ),
            files={file: entry for file, entry in example.files.items() if not file.startswith(_TREES)},
        )
    )
    for trees in _TREES:
        (folder / trees).unlink()
    (folder / MANIFEST).write_bytes(manifest.encode())
    return manifest


@pytest.fixture(scope="session")
def encoder_dir(bundle: Path) -> Path:
    """The folder of the example's encoder."""
    return encoder_folder(bundle, ENCODER_NAME)


@pytest.fixture(scope="session")
def predictor(bundle: Path) -> Predictor:
    """The real predictor."""
    return load_predictor(Settings(model_dir=bundle))


class TinyEncoder:
    """Eight dimensions, one token per character, windows of four; records what it is asked."""

    dimension = 8

    def __init__(self) -> None:
        self.tokenized: list[str] = []
        self.batches: list[list[Window]] = []

    def cut(self, texts: Sequence[str], deadline: Deadline = NO_DEADLINE) -> list[list[Window]]:
        self.tokenized += texts
        return [
            [[1, *map(ord, text[i : i + 4]), 2] for i in range(0, max(1, len(text)), 4)] for text in texts
        ]

    def count_fragments(self, ids: Sequence[int]) -> int:
        return sum(map(str.isdigit, map(chr, ids)))

    def encode(self, rows: Sequence[Window]) -> list[Vector]:
        self.batches.append(list(rows))
        ids = np.array(rows)  # fails for rows of different lengths, as the real one does
        angles = ids.sum(axis=1, keepdims=True) * np.arange(1, self.dimension + 1)
        vectors = np.sin(angles)
        return to_vectors(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


class TinyHead:
    """Softmax of the first three dimensions."""

    def predict(self, embeddings: Sequence[Vector]) -> list[Vector]:
        with np.errstate(all="ignore"):  # of a value that overflows, as graphs do
            scores = np.exp(to_matrix(embeddings)[:, :3])
            return to_vectors(scores / scores.sum(axis=1, keepdims=True))


class TinyCentroids:
    """Finds an embedding the stranger, the smaller its first value is."""

    def out_of_distribution(self, embeddings: Sequence[Vector]) -> list[float]:
        return [(1 - to_floats(row)[0]) / 2 for row in embeddings]


class TinyEstimator:
    """Sure of texts with an even number of tokens, and then of the first label."""

    def __init__(self, settled_margin: float = 1.0) -> None:
        self._settled_margin = settled_margin

    def guess(self, ids: Sequence[int], deadline: Deadline) -> Guess:
        deadline.check()
        is_sure = len(ids) % 2 == 0
        return Guess([0.8, 0.1, 0.1] if is_sure else [0.2, 0.3, 0.5], is_sure, 0.25)

    def token_evidence(self, ids: Iterable[int]) -> dict[int, list[float]]:
        return {token: [token / 100, 0.0, 0.0] for token in ids}

    def count_unknown(self, ids: Iterable[int]) -> int:
        return 1

    def is_settled(self, answer: Sequence[float]) -> bool:
        second, best = sorted(answer)[-2:]
        return best - second > self._settled_margin


def tiny_encoder_manifest(name: str = "tiny") -> EncoderManifest:
    """The manifest of `TinyEncoder`."""
    manifest = EncoderManifest(
        name=name,
        version="",
        files={},
        facts=EncoderFacts(dimension=8, max_tokens=5, max_windows=4),
        graph="sha256:0",
        source=Source("none", "0" * 64, "none"),
        built_with={},
    )
    return sealed(manifest)


def tiny_manifest(
    name: str = "topics", encoder: EncoderManifest | None = None, settled_margin: float = 1.0
) -> Manifest:
    """A manifest with two heads and three labels."""
    built = encoder or tiny_encoder_manifest()
    facts = HeadFacts({"text": 0.5}, 0.55, {})
    manifest = Manifest(
        name=name,
        version="",
        encoder=EncoderVersion(built.name, built.version),
        estimator=EstimatorFacts(
            vocabulary=0,
            scales=[1.0, 1.0, 1.0],
            bias=[0.0, 0.0, 0.0],
            temperature=1.0,
            threshold=0.5,
            partner="second",
            settled_margin=settled_margin,
        ),
        labels=LABELS,
        default_head="first",
        heads={"first": facts, "second": facts},
        files={},
    )
    return sealed(manifest)


S = TypeVar("S", bound=Sealed)


def sealed(manifest: S) -> S:
    """The manifest with the digest of what it says as its version."""
    return msgspec.structs.replace(manifest, version=manifest.digest())


def tiny_predictor(
    encoder: TinyEncoder | None = None,
    read_head: Callable[[str], Head] | None = None,
    cache_bytes: int = 1 << 20,
    cache: PredictionCache | None = None,
    clock: Clock = time.perf_counter,
    name: str = "topics",
    manifest: Manifest | None = None,
    encoder_manifest: EncoderManifest | None = None,
    settled_margin: float = 1.0,
    estimator: "TinyEstimator | None" = None,
) -> Predictor:
    """A predictor without files. clock: times the encoder. settled_margin: 1 reads all windows of a text."""
    built = encoder_manifest or tiny_encoder_manifest()
    both = encoder or TinyEncoder()  # it cuts texts, too
    read = read_head or (lambda name: TinyHead())
    passes = TextEncoder(both, 20, MovingAverage(0.1), clock)
    return Predictor(
        manifest or tiny_manifest(name, built, settled_margin),
        built,
        both,
        estimator or TinyEstimator(settled_margin),
        Model(passes, Heads(read, TinyCentroids())),
        cache or PredictionCache(cache_bytes),
    )


def served(*predictors: Predictor) -> Models:
    """Models that are there already, the default first."""
    return Models({found.manifest.name: found for found in predictors})


@pytest.fixture
def log_lines() -> list[str]:
    """What the engine of `api` wrote to its log."""
    return []


@pytest.fixture
def api(log_lines: list[str]) -> Api:
    """The engine over the tiny predictor."""
    return Api(served(tiny_predictor()), Settings(max_texts=100), StartMark(), log_lines.append)


def post(engine: Api, body: object, path: str = "/v1/predict", **headers: str) -> Reply:
    """Sends JSON, or bytes as they are."""
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return engine.answer(Request("POST", path, named, content, "request-1"))
