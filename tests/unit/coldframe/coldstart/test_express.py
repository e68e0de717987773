"""The express lane says what the whole engine says, or leaves it to the engine."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.api.api import Api
from coldframe.coldstart.express import ExpressLane, open_lane
from coldframe.config import Settings
from coldframe.errors import BundleCorrupt, BundleMissing
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import StartMark
from functions.predict.events import read_event
from tests.conftest import ROOT

EVENT: dict[str, Any] = json.loads((ROOT / "tests" / "events" / "http_api_predict.json").read_text())
REST: dict[str, Any] = json.loads((ROOT / "tests" / "events" / "rest_api_predict.json").read_text())
SURE = "NASA launched the shuttle into orbit around the moon"
UNSURE = "What a nice day"


class Context:
    """As much of Lambda's as is read."""

    aws_request_id = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        return 29_000


@pytest.fixture(scope="module")
def lane(bundle: Path) -> ExpressLane:
    return ExpressLane(bundle, has_table=False, has_log=False)


@pytest.fixture(scope="module")
def engine(predictor: Predictor, bundle: Path) -> Api:
    settings = Settings(model_dir=bundle, log_level="off", l1_cache_bytes=0)
    return Api(predictor, settings, StartMark(is_warm=True))


def event_of(body: object, source: dict[str, Any] = EVENT, **changed: Any) -> dict[str, Any]:
    content = body if isinstance(body, str) else json.dumps(body)
    return {**source, "body": content, "isBase64Encoded": False, **changed}


def without_counters(body: bytes | str) -> Any:
    answer = json.loads(body)
    return {name: value for name, value in answer.items() if name not in ("usage", "start")}


def agree(lane: ExpressLane, engine: Api, event: dict[str, Any]) -> bool:
    """Whether the lane answered; then the engine's answer is the same."""
    mine = lane.answer(event, "request-1")
    if mine is None:
        return False
    theirs = engine.answer(read_event(event, Context()))
    assert (mine["statusCode"], mine["headers"]["content-type"]) == (200, theirs.headers["content-type"])
    assert without_counters(mine["body"]) == without_counters(theirs.body)
    assert json.loads(mine["body"])["usage"].keys() == json.loads(theirs.body)["usage"].keys()
    return True


@pytest.mark.parametrize("source", [EVENT, REST], ids=["HTTP API", "REST API"])
@pytest.mark.parametrize(
    "asked",
    [
        {"text": SURE},
        {"texts": [SURE, "  NASA launched the  shuttle into orbit around the moon\n", "SCSI controller"]},
        {"text": SURE, "top_k": 20, "scores": True, "heads": ["auto"], "cache": False, "budget_ms": 1},
        {"text": "hockey goalie " * 600},
    ],
)
def test_same_answer(lane: ExpressLane, engine: Api, source: dict[str, Any], asked: object) -> None:
    """Sure texts are answered here, as the engine answers them."""
    assert agree(lane, engine, event_of(asked, source))


fields = st.fixed_dictionaries(
    {},
    optional={
        "text": st.sampled_from([SURE, UNSURE, "", "é", "[SEP]", 1, None]),
        "texts": st.lists(st.sampled_from([SURE, "SCSI controller", "ü"]), max_size=3) | st.none(),
        "heads": st.lists(st.sampled_from(["auto", "mlp", "no such"]), max_size=2) | st.none(),
        "top_k": st.integers(-1, 22) | st.just(1.0) | st.booleans(),
        "scores": st.booleans() | st.integers(0, 1),
        "cache": st.booleans() | st.none(),
        "budget_ms": st.integers(-1, 10**6) | st.just("5"),
        "more": st.none(),
    },
)


@settings(max_examples=300, deadline=None)
@given(asked=fields)
def test_same_answer_or_none(lane: ExpressLane, engine: Api, asked: dict[str, object]) -> None:
    """Whatever is asked, well-formed or not: the engine's answer, or none."""
    agree(lane, engine, event_of(asked))


@settings(max_examples=200, deadline=None)
@given(text=st.text())
def test_any_text(lane: ExpressLane, engine: Api, text: str) -> None:
    """Any text at all: the engine's answer, or none."""
    agree(lane, engine, event_of({"text": text}))


@pytest.mark.parametrize(
    "event",
    [
        event_of({"text": UNSURE}),
        event_of({"text": SURE, "heads": ["mlp"]}),
        event_of({"text": SURE}, headers={"content-encoding": "gzip"}),
        event_of({"text": SURE}, headers={"content-type": "text/csv"}),
        event_of({"text": SURE}, rawPath="/v1/embeddings"),
        event_of({"texts": [SURE] * 65}),
        event_of({"text": SURE + " " * 20_000}),
        event_of('{"text": "broken'),
        event_of('"text"'),
        event_of("", isBase64Encoded=True),
        event_of("?", isBase64Encoded=True),
        {},
        {"requestContext": None},
    ],
)
def test_left_to_the_engine(lane: ExpressLane, event: dict[str, Any]) -> None:
    """What is not plain, or not sure, is the engine's."""
    assert lane.answer(event, "request-1") is None


def test_cold_once(bundle: Path) -> None:
    """The first answer is the cold one."""
    lane = ExpressLane(bundle, has_table=True, has_log=False)
    answers = [lane.answer(event_of({"text": SURE}), "request-1") for _ in range(2)]
    bodies = [json.loads(answer["body"]) for answer in answers if answer]
    assert [body["start"] for body in bodies] == ["cold", "warm"]
    assert bodies[0]["usage"]["cache"]["skipped"] == 1


def test_log_has_no_text(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line of JSON per answer, in the form of the engine's, without the text."""
    lane = ExpressLane(bundle, has_table=False, has_log=True)
    lane.answer(event_of({"text": SURE}), "request-1")
    out = capsys.readouterr().out
    line = json.loads(out)
    assert (line["event"], line["request_id"], line["start"]) == ("request", "request-1", "cold")
    assert "NASA" not in out


@pytest.mark.parametrize(
    "environ",
    [
        {"AWS_LAMBDA_INITIALIZATION_TYPE": "provisioned-concurrency"},
        {"AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start"},
        {"COLDFRAME_MAX_WINDOWS": "1"},
        {"COLDFRAME_MISSPELT": "1"},
        {"COLDFRAME_LOG_LEVEL": "loud"},
        {"COLDFRAME_CACHE_TABLE": "table", "COLDFRAME_CACHE_POLICY": "always"},
    ],
)
def test_closed(bundle: Path, environ: dict[str, str]) -> None:
    """Ahead of traffic, and with settings that are not the lane's to read, everything is loaded at once."""
    assert open_lane({"COLDFRAME_MODEL_DIR": str(bundle), **environ}) is None


def test_open(bundle: Path) -> None:
    """On demand, with the settings of the template, it is open."""
    assert open_lane({"COLDFRAME_MODEL_DIR": str(bundle), "COLDFRAME_CACHE_TABLE": "table"}) is not None


def test_unusable_bundle(tmp_path: Path) -> None:
    """An environment without a usable bundle fails its init phase, with what to do."""
    with pytest.raises(BundleMissing, match="Run `coldframe build`"):
        ExpressLane(tmp_path, has_table=False, has_log=False)
    for content in (b"{", b"[]", b"{}"):
        (tmp_path / "manifest.json").write_bytes(content)
        with pytest.raises(BundleCorrupt, match=r"manifest\.json cannot be read"):
            ExpressLane(tmp_path, has_table=False, has_log=False)
