"""Cold environments in a row, each given a sure text, a long one and an unsure one from the first moment.

Twenty by default, and 300 within some minutes:
    COLD_ENVIRONMENTS=300 .venv/bin/python -m pytest tests/functional/function/test_cold_environments.py
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from coldframe.pipeline.predictor import Predictor
from coldframe.vectors import ranked, to_floats
from tests.conftest import ROOT

COUNT = int(os.environ.get("COLD_ENVIRONMENTS", "20"))

SURE = "NASA launched the shuttle into orbit around the moon"

# Runs in a process of its own.
ENVIRONMENT = """
import json, sys
from types import SimpleNamespace
from coldframe_functions.predict.app import handler

event, sure, long, switch_s = json.loads(sys.stdin.read())
sys.setswitchinterval(switch_s)
context = SimpleNamespace(aws_request_id="1", get_remaining_time_in_millis=lambda: 29_000)

def post(text):
    answer = handler({**event, "body": json.dumps({"text": text})}, context)
    return answer["statusCode"], answer["body"]

print(json.dumps([post(text) for text in (sure, long, "hm", long)]))
"""


def long_text(encoder_dir: Path) -> str:
    """300 different words that are tokens themselves: more than the vocabulary searches one by one."""
    tokens = (encoder_dir / "vocabulary.txt").read_text().split("\n")
    words = [line.split(" ")[0] for line in tokens if line[:1].isalpha() and line.isascii()]
    return " ".join(words[:: len(words) // 300][:300])


def answers_of_one(bundle: Path, text: str, number: int) -> list[tuple[int, str]]:
    """What environment `number` answers. Every second one changes threads as often as it can."""
    event = json.loads((ROOT / "tests" / "events" / "http_api_predict.json").read_text())
    asked = [event | {"isBase64Encoded": False}, SURE, text, 1e-5 if number % 2 else 5e-3]
    done = subprocess.run(
        [sys.executable, "-c", ENVIRONMENT],
        input=json.dumps(asked),
        cwd=ROOT,
        env={"COLDFRAME_MODEL_DIR": str(bundle), "COLDFRAME_LOG_LEVEL": "off", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers: list[tuple[int, str]] = json.loads(done.stdout)
    return answers


def test_no_environment_is_broken(bundle: Path, encoder_dir: Path, predictor: Predictor) -> None:
    """Every answer is a 200 with the bits of a model that was loaded long ago."""
    text = long_text(encoder_dir)
    asked = [SURE, text, "hm", text]
    expected = [best_of(predictor, asked_text) for asked_text in asked]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        environments = threads.map(lambda number: answers_of_one(bundle, text, number), range(COUNT))
    given = {number: list(map(read, answers)) for number, answers in enumerate(environments)}
    assert {number: answers for number, answers in given.items() if answers != expected} == {}


def best_of(predictor: Predictor, text: str) -> tuple[str, float]:
    """The label of the loaded model's answer, and its probability."""
    *values, _ = to_floats(predictor.predict([text], ["auto"], use_cache=False).answers["auto"][0])
    return predictor.manifest.labels[ranked(values)[0]], max(values)


def read(answer: tuple[int, str]) -> Any:
    """Label and probability of an answer; of a refused request, what was said."""
    status, body = answer
    if status != 200:
        return body
    given = json.loads(body)["predictions"][0]["heads"]["auto"]
    return given["label"], given["probability"]
