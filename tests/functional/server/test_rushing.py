"""A server that rushes answers under overload: real processes, real models."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.server_process import ServerProcess, serving

REQUESTS, TEXTS = 24, 12
WORDS = [
    "window",
    "manager",
    "encryption",
    "doctor",
    "shuttle",
    "hockey",
    "orbit",
    "goalie",
    "people",
    "power",
    "system",
    "problem",
]


@pytest.fixture(scope="module")
def server(bundle: Path) -> Iterator[ServerProcess]:
    """One worker, which needs longer for all requests than they have."""
    environ = {"COLDFRAME_OBJECTIVE_MS": "3000", "COLDFRAME_WORKERS": "1"}
    with serving(bundle, COLDFRAME_OVERLOAD="rush", **environ) as process:
        yield process


def texts(number: int) -> list[str]:
    """Texts of several windows that no other request has, and of which the estimator is not sure."""
    return [
        " ".join(
            f"{WORDS[(number + place * step) % len(WORDS)]} {place * number % 97}" for place in range(300)
        )
        for step in range(1, TEXTS + 1)
    ]


def send(server: ServerProcess, number: int, **more: Any) -> tuple[int, dict[str, Any]]:
    with server.client() as client:
        reply = client.post("/v1/predict", json={"texts": texts(number), **more})
        return reply.status_code, reply.json()


def auto_answers(reply: dict[str, Any]) -> list[dict[str, Any]]:
    return [one["heads"]["auto"] for one in reply["predictions"]]


def test_overload_is_answered(server: ServerProcess) -> None:
    """Nobody is refused: some answers are rushed, say so, and are counted. Later the answers are whole."""
    with ThreadPoolExecutor(REQUESTS) as pool:
        replies = list(pool.map(lambda number: send(server, number), range(REQUESTS)))
    assert [status for status, _ in replies] == [200] * REQUESTS
    answers = [answer for _, reply in replies for answer in auto_answers(reply)]
    rushed = Counter(answer["by"] for answer in answers if answer.get("rushed"))
    assert rushed["estimator"] > 0
    metrics = server.metrics()
    assert metrics['coldframe_answers_total{kind="rushed"}'] == rushed.total()
    assert metrics["coldframe_jobs_refused_total"] == 0
    assert metrics["coldframe_jobs_rushed_total"] > 0
    number = next(i for i, (_, reply) in enumerate(replies) if any(map(is_rushed, auto_answers(reply))))
    _, again = send(server, number)
    assert not any(map(is_rushed, auto_answers(again)))
    assert again["usage"]["cache"]["miss"] > 0


def is_rushed(answer: dict[str, Any]) -> bool:
    return bool(answer.get("rushed"))


def test_named_heads_are_never_rushed(server: ServerProcess) -> None:
    """Under overload a named head answers or is refused, also beside `auto`; no answer is rushed."""
    heads = (["logreg"], ["auto", "logreg"])
    with ThreadPoolExecutor(REQUESTS) as pool:
        replies = list(
            pool.map(
                lambda number: send(server, number, heads=heads[number % 2], cache=False), range(REQUESTS)
            )
        )
    assert {status for status, _ in replies} == {200, 503}
    for status, reply in replies:
        if status == 200:
            assert not any(
                is_rushed(answer) for one in reply["predictions"] for answer in one["heads"].values()
            )
