"""Two real models on one encoder: what is loaded, encoded and looked up once for both."""

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from coldframe.config import Settings, load_settings
from coldframe.errors import BundleCorrupt, BundleMissing
from coldframe.model.encoder import Encoder
from coldframe.model.files import ESTIMATOR, encoder_folder
from coldframe.pipeline.models import Models, load_models
from coldframe_bench.targets.faulty_server import FaultyServer
from tests.conftest import ENCODER_NAME, EXAMPLE, ROOT, SECOND, add_model
from tests.functional.conftest import BUCKET, TABLE
from tests.functional.function.test_predict_function import HTTP, to

BOTH = f"{EXAMPLE},{SECOND}"
SURE = "NASA launched the shuttle into orbit around the moon"
TEXTS = ["The shuttle reached orbit", "He struck out nine batters", "Which cipher is safe? " * 200, ""]
HEADS = ["logreg", "mlp"]


def models_in(model_dir: Path, names: str = BOTH, **settings: Any) -> Models:
    return load_models(Settings(model_dir=model_dir, models=names, log_level="off", **settings))


@pytest.fixture
def broken_second(bundle: Path, tmp_path: Path) -> Path:
    """The example, and a second model whose estimator is cut short."""
    for part in ("encoders", EXAMPLE):
        (tmp_path / part).symlink_to(bundle / part)
    add_model(tmp_path, SECOND)
    (tmp_path / SECOND / ESTIMATOR).write_bytes(b"short")
    return tmp_path


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Folders of the encoders that are loaded."""
    loaded: list[Path] = []

    class Counted(Encoder):
        def __init__(self, folder: Path, *facts: Any) -> None:
            loaded.append(folder)
            super().__init__(folder, *facts)

    monkeypatch.setattr("coldframe.model.model.Encoder", Counted)
    yield loaded


def test_one_session_for_both(two_models: Path, sessions: list[Path]) -> None:
    """Two models of one encoder load it once; threads that ask both first get each model's answer."""
    alone = {
        name: models_in(two_models, name).default.predict(TEXTS, HEADS).answers for name in (EXAMPLE, SECOND)
    }
    sessions.clear()
    models, gate = models_in(two_models), threading.Barrier(4)

    def ask(number: int) -> tuple[str, dict[str, Any]]:
        name = models.names[number % 2]
        gate.wait()
        return name, models.get(name).predict(TEXTS, HEADS, use_cache=False).answers

    with ThreadPoolExecutor(4) as threads:
        for name, found in threads.map(ask, range(4)):
            assert found == alone[name]
    assert sessions == [encoder_folder(two_models, ENCODER_NAME)]
    assert models.get(EXAMPLE).model.encoder is models.get(SECOND).model.encoder


def test_one_pass_for_both(two_models: Path) -> None:
    """A text that one model has answered costs the other no token; its answer has its own labels."""
    models = models_in(two_models)
    first = models.default.predict(TEXTS, HEADS)
    assert first.usage.tokens > 0
    second = models.get(SECOND).predict(TEXTS, HEADS)
    assert (second.usage.tokens, second.usage.batches) == (0, 0)
    assert second.usage.cache.embedding == len(TEXTS) * len(HEADS)
    assert models.get(SECOND).manifest.labels == [f"queue {name}" for name in models.default.manifest.labels]


def environment(model_dir: Path) -> Models:
    """A fresh environment with the table."""
    settings = {
        "MODEL_DIR": str(model_dir),
        "MODELS": BOTH,
        "CACHE_TABLE": TABLE,
        "CACHE_BUCKET": BUCKET,
        "CACHE_DEADLINE_MS": "60000",
        "CACHE_POLICY": "always",
    }
    return load_models(load_settings({f"COLDFRAME_{name}": value for name, value in settings.items()}))


def test_shared_cache_serves_both(
    two_models: Path, aws_environ: dict[str, str], store: FaultyServer, tmp_path: Path
) -> None:
    """What one model left in the table saves another its passes; so it does after a training."""
    one = environment(two_models).default
    saved = one.cache.save(one.predict(TEXTS, HEADS).unsaved)
    assert saved is not None
    assert saved.values == len(TEXTS) * (len(HEADS) + 1)
    (tmp_path / "encoders").symlink_to(two_models / "encoders")
    shutil.copytree(two_models / EXAMPLE, tmp_path / EXAMPLE)
    retrained = add_model(tmp_path, SECOND, temperature=0.4)
    for folder in (two_models, tmp_path):
        second = environment(folder).get(SECOND)
        prediction = second.predict(TEXTS, HEADS)
        usage = prediction.usage
        assert (usage.tokens, usage.batches) == (0, 0)
        assert (usage.cache.embedding, usage.cache.l2) == (len(TEXTS) * len(HEADS), 0)
        second.cache.save(prediction.unsaved)
    assert second.manifest.version == retrained.version
    assert environment(tmp_path).get(SECOND).predict(TEXTS, HEADS).usage.cache.l2 == len(TEXTS) * len(HEADS)


def test_another_number_of_windows(two_models: Path) -> None:
    """Served with fewer windows, the encoder and each model on it have other versions."""
    usual, other = models_in(two_models), models_in(two_models, max_windows=1)
    for before, after in zip(usual.all(), other.all(), strict=True):
        assert before.encoder.version != after.encoder.version == after.manifest.encoder.version
        assert before.manifest.version != after.manifest.version
        assert after.predict(["orbit " * 2000], ["logreg"], use_cache=False).usage.windows == 1
    assert len({after.encoder.version for after in other.all()}) == 1
    assert models_in(two_models, max_windows=4).default.manifest == usual.default.manifest


@pytest.mark.parametrize(
    ("names", "expected"),
    [("", BOTH.split(",")), (BOTH, [EXAMPLE, SECOND]), (f" {SECOND} , ", [SECOND])],
)
def test_served_models(two_models: Path, names: str, expected: list[str]) -> None:
    """The setting says what is served, the default first; without it, all are, the recorded one first."""
    models = models_in(two_models, names)
    assert models.names == expected
    assert models.default.manifest.name == expected[0]


def test_missing_models(two_models: Path) -> None:
    """A missing default model is an error at once; another one is when it is asked."""
    with pytest.raises(BundleMissing, match=r"has no model 'no-such'\. Models: queues, topics\."):
        models_in(two_models, f"no-such,{EXAMPLE}")
    models = models_in(two_models, f"{EXAMPLE},no-such")
    with pytest.raises(BundleMissing, match=r"has no model 'no-such'\. Models: queues, topics\."):
        models.get("no-such")


@pytest.mark.parametrize(("level", "lines"), [("info", 1), ("off", 0)])
def test_a_model_that_cannot_be_loaded_is_logged(
    broken_second: Path, capsys: pytest.CaptureFixture[str], level: str, lines: int
) -> None:
    """The log says once which model it is and what is wrong with it, unless nothing is logged."""
    settings = {"MODEL_DIR": str(broken_second), "MODELS": BOTH, "LOG_LEVEL": level}
    models = load_models(load_settings({f"COLDFRAME_{name}": value for name, value in settings.items()}))
    for _ in range(2):
        with pytest.raises(BundleCorrupt) as caught:
            models.get(SECOND)
    expected = {"event": "model-not-loaded", "model": SECOND, "because": str(caught.value)}
    logged = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [{name: line[name] for name in expected} for line in logged] == [expected] * lines


HANDLE = """
import json, sys
from types import SimpleNamespace
opened = []
def note(event, arguments):
    if event == "open" and "/queues/" in str(arguments[0]):
        opened.append(str(arguments[0]))
sys.addaudithook(note)
from coldframe_functions.predict.app import handler
context = SimpleNamespace(aws_request_id="1", get_remaining_time_in_millis=lambda: 29_000)
found = []
for event in json.loads(sys.stdin.read()):
    answer = handler(event, context)
    found.append([answer["statusCode"], answer["body"], len(opened)])
print(json.dumps(found))
"""


def event(path: str, body: object = None) -> dict[str, Any]:
    """A request to the function."""
    asked = to(HTTP, "GET" if body is None else "POST", path)
    return asked | {"body": None if body is None else json.dumps(body), "isBase64Encoded": False}


def handle(model_dir: Path, *asked: dict[str, Any]) -> list[tuple[int, Any, int]]:
    """What a fresh environment answers: status, body, and files of the second model opened by then."""
    done = subprocess.run(
        [sys.executable, "-c", HANDLE],
        input=json.dumps(asked),
        env={
            "COLDFRAME_MODEL_DIR": str(model_dir),
            "COLDFRAME_MODELS": BOTH,
            "COLDFRAME_LOG_LEVEL": "off",
            "PATH": "/usr/bin:/bin",
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [(status, json.loads(body), opened) for status, body, opened in json.loads(done.stdout)]


def test_init_phase_reads_every_model(two_models: Path) -> None:
    """The second model is read before anything is asked; of it a request opens only heads that it names."""
    first = [
        event("/v1/predict", {"text": SURE}),
        event("/v1/predict", {"text": SURE, "heads": HEADS}),
        event("/v1/embeddings", {"input": SURE}),
    ]
    *others, asked, again = handle(
        two_models,
        *first,
        event("/v1/predict", {"text": SURE, "heads": HEADS, "model": SECOND}),
        event("/v1/predict", {"text": SURE, "heads": ["auto"], "model": SECOND}),
    )
    in_init = others[0][2]
    assert in_init > 0
    assert [(status, opened) for status, _, opened in others] == [(200, in_init)] * 3
    assert (asked[0], asked[1]["model"]) == (200, SECOND)
    assert asked[2] <= in_init + len(HEADS)
    assert asked[1]["usage"]["tokens"] == 0
    assert (again[0], again[2]) == (200, asked[2])


def test_broken_second_model(broken_second: Path) -> None:
    """It is a 503; the first model answers before and after."""
    of_second = event("/v1/predict", {"text": SURE, "model": SECOND})
    of_first = event("/v1/predict", {"text": SURE})
    by_head = event("/v1/predict", {"text": SURE, "heads": HEADS})
    answers = handle(broken_second, of_first, of_second, by_head, of_second, event("/healthz"), of_first)
    assert [status for status, *_ in answers] == [200, 503, 200, 503, 503, 200]
    assert "estimator.bin" in answers[1][1]["detail"]
