"""One engine, many threads: a long-lived server calls `Api.answer` from each of them.

240 requests by default, and 20,000 within some minutes:
    THREAD_REQUESTS=20000 .venv/bin/python -m pytest tests/functional/function/test_threads.py
"""

import json
import os
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from coldframe.api.api import Api, Request
from coldframe.config import Settings
from coldframe.pipeline.models import load_predictor
from coldframe.timing import StartMark
from tests.conftest import served

REQUESTS = int(os.environ.get("THREAD_REQUESTS", "240"))
THREADS = 16
WORDS = ["NASA", "shuttle", "orbit", "hockey", "goalie", "window", "manager", "encryption", "doctor"]
WORDS += ["the", "of", "a", "nice", "day", "Ångström", "東京", "e-mail", "don't", "unbelievably", "[SEP]"]


@pytest.fixture
def restless_threads() -> Iterator[None]:
    """Threads take turns very often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


def requests_of_all_kinds(encoder_dir: Path) -> list[tuple[str, dict[str, Any]]]:
    """Sure and unsure, short and long texts, alone and in company, for every kind of answer; seeded."""
    chance = random.Random(5)
    lines = (encoder_dir / "vocabulary.txt").read_text().split("\n")
    words = WORDS + [line.split(" ")[0] for line in lines if line[:1].isalpha()][::40]
    texts = [" ".join(chance.choices(words, k=chance.choice([0, 1, 2, 4, 8, 16]))) for _ in range(150)]
    texts.append(" ".join(chance.choices(words, k=300)))  # the vocabulary is read whole
    asked: list[tuple[str, dict[str, Any]]] = []
    for _ in range(REQUESTS):
        some = chance.choices(texts, k=chance.choice([1, 1, 1, 2, 3]))
        heads = chance.choice([["auto"], ["auto"], ["logreg"], ["rf", "auto"], ["logreg", "mlp"]])
        if chance.random() < 0.1:
            asked.append(("/v1/embeddings", {"input": some, "encoding_format": "base64"}))
        else:
            asked.append(("/v1/predict", {"texts": some, "heads": heads, "top_k": 3}))
    return asked


def content(engine: Api, path: str, body: dict[str, Any]) -> Any:
    """An answer without counters and without who came first."""
    reply = engine.answer(Request("POST", path, body=json.dumps(body).encode()))
    said = json.loads(reply.body)
    return reply.status, {name: value for name, value in said.items() if name not in ("usage", "start")}


@pytest.mark.usefixtures("restless_threads")
@pytest.mark.parametrize("l1_bytes", [16 << 20, 40_000], ids=["roomy", "full"])
def test_same_bits_from_many_threads(bundle: Path, encoder_dir: Path, l1_bytes: int) -> None:
    """16 threads that share a cold engine get the answers of one by one, also where the cache is full."""
    asked = requests_of_all_kinds(encoder_dir)
    settings = Settings(model_dir=bundle, log_level="off", l1_cache_bytes=l1_bytes)
    roomy = Settings(model_dir=bundle, log_level="off")
    alone = Api(served(load_predictor(roomy)), roomy, StartMark())
    known: dict[str, Any] = {}
    for one in asked:
        if repr(one) not in known:
            known[repr(one)] = content(alone, *one)
    expected = [known[repr(one)] for one in asked]
    predictor = load_predictor(settings)
    shared = Api(served(predictor), settings, StartMark())
    with ThreadPoolExecutor(THREADS) as threads:
        got = list(threads.map(lambda one: content(shared, *one), asked))
    wrong = [index for index, (one, other) in enumerate(zip(got, expected, strict=True)) if one != other]
    assert wrong == []
    assert {status for status, _ in got} == {200}
    again = [content(shared, path, body) for path, body in asked[:100]]
    assert again == expected[:100]  # nothing wrong was kept
