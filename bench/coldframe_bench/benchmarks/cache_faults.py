"""A shared table that fails, beside no table at all: what it costs a request, in one run.

Real boto3 over HTTP to moto's server, through `coldframe_bench.targets.faulty_server`, which injects faults.
Every text is answered by both environments, in turns of alternating order; memory's own cache is off. Both
are set up ahead of traffic, so importing boto3 is not part of it.
"""

import os
import statistics
import time
from collections.abc import Sequence
from importlib.util import find_spec

import boto3
import msgspec

from coldframe.config import Settings
from coldframe.errors import ColdframeError
from coldframe.pipeline.answers import Prediction
from coldframe.pipeline.models import load_predictor
from coldframe.pipeline.predictor import Predictor
from coldframe.progress import Progress
from coldframe_bench.data.mixes import load_corpus
from coldframe_bench.records.tables import Row, table
from coldframe_bench.targets import faulty_server as faults
from coldframe_bench.targets.machine import Check
from coldframe_bench.targets.serving import listening
from coldframe_local.paths import models

TABLE = "predictions"
HEADS = ["logreg"]
_DEADLINE_MS = 100
_CHARACTERS = 4_000  # texts of several hundred tokens: a lookup is worth while
_FILL_DEADLINE_MS = 60_000
_EXPIRED = "has expired items only"

FAULTS: dict[str, faults.Fault] = {
    "works, without these texts": faults.works,
    _EXPIRED: faults.works,
    "slow: never answers": faults.hangs,
    "slow: a byte now and then": faults.trickles,
    "throttles every call": faults.error("ProvisionedThroughputExceededException"),
    "processes no key": faults.processes(0),
    "garbage": faults.content(b"<html>not DynamoDB</html>"),
}
_DOWN = "down: connection refused"


class Outcome(msgspec.Struct, frozen=True):
    """One text: seconds without and with the table, and the state of the breaker before it was asked."""

    without_s: float
    with_s: float
    breaker: str


def run(check: Check) -> None:
    """Prints a row for each fault, of as many texts as samples."""
    if find_spec("moto") is None:
        raise ColdframeError("moto is not installed. Run `make test`, or install tests/requirements.txt.")
    posts = _posts(check.samples, check.seed)
    base = Settings(
        model_dir=check.model_dir,
        models=models(),
        l1_cache_bytes=0,
        cache_deadline_ms=_DEADLINE_MS,
        log_level="off",
    )
    alone = _load(base)
    rows = []
    moto_server = listening("-m", "moto.server", "-H", "127.0.0.1", "-p", "0")
    with moto_server as moto, faults.faulty_server(moto) as server:
        _create_table(moto)
        with_table = msgspec.structs.replace(base, cache_table=TABLE, cache_policy="always")
        for name in Progress([*FAULTS, _DOWN], desc="faults", unit="fault"):
            texts = [f"{name} {index} {post}" for index, post in enumerate(posts)]  # nobody has seen them
            if name == _EXPIRED:
                _fill(with_table, moto, texts)
            server.fault = FAULTS.get(name, faults.works)
            url = faults.closed_port() if name == _DOWN else server.url
            rows.append(_row(name, measure(alone, _load(with_table, url), texts)))
            server.released.set()  # those kept waiting go
            server.released.clear()
    head = "the table | breaker closed: requests | more ms, median | most | open: requests"
    print(table(f"{head} | with / without, median | quartiles | of them probes", rows))
    median_ms = statistics.median(_time_s(alone, text)[0] for text in posts[:9]) * 1e3
    print(
        f"{check.samples} texts, one per request, {median_ms:.0f} ms each without a table;"
        f" deadline {_DEADLINE_MS} ms; load average {os.getloadavg()[0]:.1f}."
    )


def measure(alone: Predictor, tabled: Predictor, texts: Sequence[str]) -> list[Outcome]:
    """Both answer every text. Raises ColdframeError when their answers differ by a bit."""
    outcomes = []
    state = "closed"
    for index, text in enumerate(texts):
        pair = [alone, tabled] if index % 2 else [tabled, alone]
        timed_answers = {id(predictor): _time_s(predictor, text) for predictor in pair}
        (without_s, plain), (with_s, answer) = timed_answers[id(alone)], timed_answers[id(tabled)]
        if plain.answers != answer.answers:
            raise ColdframeError("The answer with the table is not that without.")
        usage = answer.usage.cache
        was_called = not usage.skipped
        outcomes.append(Outcome(without_s, with_s, "probe" if was_called and state != "closed" else state))
        state = usage.breaker
    return outcomes


def _row(name: str, outcomes: Sequence[Outcome]) -> Row:
    closed = [outcome for outcome in outcomes if outcome.breaker == "closed"]
    opened = [outcome for outcome in outcomes if outcome.breaker != "closed"]
    more_ms = [(outcome.with_s - outcome.without_s) * 1e3 for outcome in closed]
    cells = [name, f"{len(closed)}", f"{statistics.median(more_ms):.0f}", f"{max(more_ms):.0f}"]
    probes = sum(outcome.breaker == "probe" for outcome in opened)
    ratios = [outcome.with_s / outcome.without_s for outcome in opened]
    if len(ratios) > 1:
        low, middle, high = statistics.quantiles(ratios, n=4)
        cells += [f"{len(opened)}", f"{middle:.2f}", f"{low:.2f}–{high:.2f}", f"{probes}"]
    else:
        cells += ["0", "", "", ""]
    return cells


def _time_s(predictor: Predictor, text: str) -> tuple[float, Prediction]:
    started_s = time.perf_counter()
    prediction = predictor.predict([text], HEADS)
    predictor.cache.save(prediction.unsaved)
    return time.perf_counter() - started_s, prediction


def _posts(count: int, seed: int) -> list[str]:
    long = [post[:_CHARACTERS] for post in load_corpus(seed).posts if len(post) >= _CHARACTERS]
    return [long[index % len(long)] for index in range(count)]


def _load(settings: Settings, url: str = "") -> Predictor:
    """A predictor with everything loaded, whose store is at `url`."""
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "an-id",
        "AWS_SECRET_ACCESS_KEY": "a-key",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL_DYNAMODB": url,
    }
    predictor = load_predictor(settings)
    predictor.cache.set_up()
    return predictor


def _fill(settings: Settings, moto: str, texts: Sequence[str]) -> None:
    """Stores every text for a second, and waits until that is over."""
    patient = msgspec.structs.replace(settings, cache_ttl_s=1, cache_deadline_ms=_FILL_DEADLINE_MS)
    predictor = _load(patient, moto)
    for text in texts:
        _time_s(predictor, text)
    time.sleep(2)


def _create_table(moto: str) -> None:
    client = boto3.client("dynamodb", endpoint_url=moto, region_name="us-east-1")
    client.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "cache_key", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "cache_key", "KeyType": "HASH"}],
    )
