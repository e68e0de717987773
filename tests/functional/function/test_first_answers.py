"""A cold environment under fire: whatever is asked first, the answer is the one of a warm environment."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coldframe.api.api import Api, Request
from coldframe.config import Settings
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import StartMark
from tests.conftest import ROOT, served

ASKED: list[tuple[str, dict[str, Any]]] = [
    ("/v1/predict", {"text": "NASA launched the shuttle into orbit around the moon"}),
    ("/v1/predict", {"text": "What a nice day", "scores": True}),
    ("/v1/predict", {"texts": ["Ångström units, naïvely", "SCSI controller", "hm"], "top_k": 3}),
    ("/v1/predict", {"texts": ["hockey goalie", "What a nice day"], "heads": ["rf", "auto", "hgb"]}),
    ("/v1/embeddings", {"input": ["hockey goalie", "東京"], "encoding_format": "base64"}),
]

# Threads that begin together in a process that has just been initialised, as restless as can be.
FIRE = """
import json, random, sys, threading
from types import SimpleNamespace
from coldframe_functions.predict.app import handler

event, asked, seed = json.loads(sys.stdin.read())
context = SimpleNamespace(aws_request_id="1", get_remaining_time_in_millis=lambda: 29_000)
sys.setswitchinterval(1e-5)
begin, answers, chance = threading.Barrier(4), [], random.Random(seed)

def fire(order):
    begin.wait()
    for number in order:
        path, body = asked[number]
        answer = handler({**event, "rawPath": path, "body": json.dumps(body)}, context)
        answers.append((number, answer["statusCode"], answer["body"]))

threads = [
    threading.Thread(target=fire, args=(chance.sample(range(len(asked)), len(asked)),)) for _ in range(4)
]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps(answers))
"""


def content(body: str) -> Any:
    """An answer without what may differ: counters, and who was first."""
    return {name: value for name, value in json.loads(body).items() if name not in ("usage", "start")}


@pytest.mark.parametrize("seed", range(6))
def test_first_answers_of_many_threads(bundle: Path, predictor: Predictor, seed: int) -> None:
    """Four threads at once, from the first moment: every answer is whole, and that of a warm environment."""
    engine = Api(served(predictor), Settings(model_dir=bundle, log_level="off"), StartMark(is_warm=True))
    expected = [
        engine.answer(Request("POST", path, body=json.dumps(body).encode())).body.decode()
        for path, body in ASKED
    ]
    event = json.loads((ROOT / "tests" / "events" / "http_api_predict.json").read_text())
    done = subprocess.run(
        [sys.executable, "-c", FIRE],
        input=json.dumps([event | {"isBase64Encoded": False}, ASKED, seed]),
        cwd=ROOT,
        env={"COLDFRAME_MODEL_DIR": str(bundle), "COLDFRAME_LOG_LEVEL": "off", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert len(answers) == 4 * len(ASKED)
    for number, status, body in answers:
        assert status == 200, body
        assert content(body) == content(expected[number])
