"""The shared cache with the real model, the real handler and the real command line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import pytest

from coldframe.config import load_settings
from coldframe.model.files import AUTO
from coldframe.pipeline.models import load_predictor
from coldframe.pipeline.predictor import Predictor
from coldframe_bench.targets.faulty_server import FaultyServer, error
from tests.conftest import ROOT
from tests.functional.commands.test_cli import coldframe
from tests.functional.conftest import BUCKET, SECRET_KEY, TABLE
from tests.functional.function.test_predict_function import FORBIDDEN, HTTP

pytestmark = pytest.mark.waits

TEXTS = [
    "The shuttle reached orbit",
    "He struck out nine batters in seven innings",
    "Which cipher is safe? " * 200,  # several windows
    "",
    "My bike stalls at full throttle",
]
HEADS = ["auto", "logreg", "rf", "hgb", "mlp"]


def environ_of(bundle: Path, aws_environ: dict[str, str], **settings: str) -> dict[str, str]:
    cache = {"COLDFRAME_CACHE_TABLE": TABLE, "COLDFRAME_CACHE_BUCKET": BUCKET}
    patient = {"COLDFRAME_CACHE_DEADLINE_MS": "60000", "COLDFRAME_CACHE_POLICY": "always"}
    return {**aws_environ, "COLDFRAME_MODEL_DIR": str(bundle), **cache, **patient, **settings}


def environment(bundle: Path, aws_environ: dict[str, str], **settings: str) -> Predictor:
    """A fresh environment with the table."""
    given = environ_of(bundle, aws_environ, **settings)
    return load_predictor(load_settings({k: v for k, v in given.items() if k.startswith("COLDFRAME_")}))


def bits(predictor: Predictor, heads: list[str], use_cache: bool = True) -> dict[str, bytes]:
    rows = predictor.predict(TEXTS, heads, use_cache).answers
    return {head: b"".join(rows[head]) for head in heads}


def test_same_bits_on_off_cold_warm(
    predictor: Predictor, bundle: Path, aws_environ: dict[str, str], store: FaultyServer
) -> None:
    """Answers are the same to the bit: no cache, empty, filled here, filled elsewhere, by embedding only."""
    expected = bits(predictor, HEADS, use_cache=False)
    one = environment(bundle, aws_environ)
    computed = one.predict(TEXTS, ["logreg"])
    assert b"".join(computed.answers["logreg"]) == expected["logreg"]
    saved = one.cache.save(computed.unsaved)
    assert saved is not None
    assert (saved.values, saved.failure) == (2 * len(TEXTS), None)
    other = environment(bundle, aws_environ)
    named = other.predict(TEXTS, [head for head in HEADS if head != AUTO])
    assert (named.usage.tokens, named.usage.batches) == (0, 0)
    assert named.usage.cache.l2 == len(TEXTS)
    assert named.usage.cache.embedding == 3 * len(TEXTS)
    prediction = other.predict(TEXTS, HEADS)
    assert {head: b"".join(rows) for head, rows in prediction.answers.items()} == expected
    assert bits(other, HEADS) == expected  # from memory
    other.cache.save(prediction.unsaved)
    third = environment(bundle, aws_environ)
    assert bits(third, HEADS) == expected  # all from the table
    assert bits(third, HEADS, use_cache=False) == expected
    store.fault = error("AccessDeniedException")
    assert bits(environment(bundle, aws_environ), HEADS) == expected


def handle(environ: dict[str, str], requests: int) -> dict[str, Any]:
    """A fresh process that handles requests; its answers, modules, threads and log."""
    code = (
        "import json, sys, threading\n"
        "from types import SimpleNamespace\n"
        "from coldframe_functions.predict.app import handler\n"
        "context = SimpleNamespace(aws_request_id='1', get_remaining_time_in_millis=lambda: 29_000)\n"
        f"event = json.loads({json.dumps(HTTP)!r})\n"
        f"answers = [json.loads(handler(event, context)['body']) for _ in range({requests})]\n"
        "json.dump({'answers': answers, 'modules': sorted(sys.modules),"
        " 'threads': [t.name for t in threading.enumerate()]}, sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**environ, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert SECRET_KEY not in done.stdout
    result: dict[str, Any] = {**json.loads(done.stderr), "log": done.stdout.splitlines()}
    return result


def test_hot_path_with_a_table(bundle: Path, aws_environ: dict[str, str], store: FaultyServer) -> None:
    """A table alone changes no import: a short text is computed and kept here, the table is not asked."""
    environ = environ_of(bundle, aws_environ, COLDFRAME_CACHE_POLICY="adaptive")
    process = handle(environ, 2)
    assert not FORBIDDEN & set(process["modules"])
    assert store.calls == []
    counted = [answer["usage"]["cache"] for answer in process["answers"]]
    assert [(cache.get("skipped", 0), cache["l1"]) for cache in counted] == [(1, 0), (0, 1)]


def test_no_thread_is_left(bundle: Path, aws_environ: dict[str, str], store: FaultyServer) -> None:
    """After lookups and writes there is nothing but the main thread: Lambda may freeze it at any time."""
    process = handle(environ_of(bundle, aws_environ), 1)
    assert store.calls == ["BatchGetItem", "BatchWriteItem"]
    assert process["threads"] == ["MainThread"]
    written = json.loads(process["log"][-1])["cache_write"]
    assert written["values"] == written["of"] > 0
    second = handle(environ_of(bundle, aws_environ), 1)
    assert second["answers"][0]["usage"]["cache"] == {"l1": 0, "l2": 1, "embedding": 0, "miss": 0}
    assert second["answers"][0]["predictions"] == process["answers"][0]["predictions"]


def test_provisioned_environments_are_ready(
    bundle: Path, aws_environ: dict[str, str], store: FaultyServer
) -> None:
    """Ahead of traffic the init phase connects to the table; requests find the connection open."""
    environ = environ_of(bundle, aws_environ, AWS_LAMBDA_INITIALIZATION_TYPE="provisioned-concurrency")
    process = handle(environ, 0)
    assert "boto3" in process["modules"]
    assert (store.calls[0], store.connections) == ("BatchGetItem", 1)
    calls = len(store.calls)
    handle(environ, 1)
    assert (len(store.calls) > 2 * calls, store.connections) == (True, 2)


def test_fill_cache(bundle: Path, aws_environ: dict[str, str], store: FaultyServer, tmp_path: Path) -> None:
    """`fill-cache` fills the table; a second run finds everything there and writes nothing."""
    file = tmp_path / "texts.jsonl"
    lines = [json.dumps({"text": text, "id": 1}) for text in TEXTS] + [
        "",
        json.dumps("  My bike stalls at full throttle"),
    ]
    file.write_text("\n".join(lines) + "\n")
    environ = environ_of(bundle, aws_environ)
    first = coldframe("fill-cache", str(file), "--head", "logreg", **environ)
    assert first.stdout == "6 texts, 1 of them repeated: 5 predictions written, 0 known already\n", (
        first.stderr
    )
    assert first.stderr == ""  # no progress bar where nobody watches
    again = coldframe("fill-cache", str(file), **environ)
    assert again.stdout == "6 texts, 1 of them repeated: 20 predictions written, 5 known already\n"
    writes = store.count("BatchWriteItem")
    third = coldframe("fill-cache", str(file), **environ)
    assert third.stdout == "6 texts, 1 of them repeated: 0 predictions written, 25 known already\n"
    assert store.count("BatchWriteItem") == writes
    assert environment(bundle, aws_environ).predict(TEXTS, HEADS).usage.cache.l2 == 25


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"text": "a secret"}\n{"words": "a secret"}\n', ":2 has no text."),
        ('"a secret"\na secret\n', ":2 is not JSON."),
        ("3\n", ":1 has no text."),
    ],
    ids=["no text", "no JSON", "a number"],
)
def test_bad_lists(
    bundle: Path,
    aws_environ: dict[str, str],
    store: FaultyServer,
    tmp_path: Path,
    content: str,
    expected: str,
) -> None:
    """A line that cannot be read is named by its number before anything is written."""
    file = tmp_path / "texts.jsonl"
    file.write_text(content)
    done = coldframe("fill-cache", str(file), **environ_of(bundle, aws_environ))
    assert done.returncode == 1
    assert expected in done.stderr
    assert "secret" not in done.stderr
    assert store.calls == []


def test_fill_cache_says_why_it_stops(
    bundle: Path, aws_environ: dict[str, str], store: FaultyServer, tmp_path: Path
) -> None:
    """A table that refuses ends the run with its reason; without a table there is nothing to fill."""
    file = tmp_path / "texts.jsonl"
    file.write_text('"a"\n')
    store.fault = error("AccessDeniedException")
    done = coldframe("fill-cache", str(file), **environ_of(bundle, aws_environ))
    assert (done.returncode, done.stdout) == (1, "")
    assert "AccessDeniedException" in done.stderr
    assert "Traceback" not in done.stderr
    done = coldframe("fill-cache", str(file), COLDFRAME_MODEL_DIR=str(bundle))
    assert done.returncode == 1
    assert "COLDFRAME_CACHE_TABLE is not set" in done.stderr


def test_item_limit_is_dynamodbs(store: FaultyServer, moto: str) -> None:
    """The emulated table refuses an item that is larger than ours are allowed to be."""
    from coldframe.cache.dynamodb_store import ITEM_LIMIT_BYTES, Item, to_row

    client = boto3.client("dynamodb", endpoint_url=moto)
    with pytest.raises(client.exceptions.ClientError, match="size"):
        client.put_item(TableName=TABLE, Item=to_row(bytes(16), Item(bytes(ITEM_LIMIT_BYTES), 1)))
    client.close()
