"""The express lane says what the whole engine says, or leaves it to the engine."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe.api.api import Api
from coldframe.coldstart.express import ExpressLane, open_lane
from coldframe.config import ENVIRONMENT_NAMES, Settings, load_settings
from coldframe.errors import BundleCorrupt, BundleMissing
from coldframe.model.bundle import load_manifest
from coldframe.pipeline.models import load_models
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import StartMark
from functions.predict.engine import read_event
from tests.conftest import EXAMPLE, ROOT, SECOND, served

EVENT: dict[str, Any] = json.loads((ROOT / "tests" / "events" / "http_api_predict.json").read_text())
REST: dict[str, Any] = json.loads((ROOT / "tests" / "events" / "rest_api_predict.json").read_text())
SURE = "NASA launched the shuttle into orbit around the moon"
UNSURE = "What a nice day"
BOTH = f"{EXAMPLE},{SECOND}"


class Context:
    """As much of Lambda's as is read."""

    aws_request_id = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        return 29_000


def lane_of(bundle: Path, **environ: str) -> ExpressLane:
    """The lane of an environment with these settings beside the bundle's folder."""
    named = {f"COLDFRAME_{name}": value for name, value in environ.items()}
    lane = open_lane({"COLDFRAME_MODEL_DIR": str(bundle), "COLDFRAME_LOG_LEVEL": "off", **named})
    assert lane is not None
    return lane


@pytest.fixture(scope="module")
def lane(bundle: Path) -> ExpressLane:
    return lane_of(bundle)


@pytest.fixture(scope="module")
def engine(predictor: Predictor, bundle: Path) -> Api:
    settings = Settings(model_dir=bundle, log_level="off", l1_cache_bytes=0)
    return Api(served(predictor), settings, StartMark(is_warm=True))


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
        {"text": SURE, "top_k": 1000, "scores": True, "heads": ["auto"], "cache": False, "budget_ms": 1},
        {"text": "hockey goalie " * 600},
        {"text": SURE, "min_probability": 1},
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
        "top_k": st.integers(-1, 22) | st.sampled_from([1000, 1001, 1.0]) | st.booleans(),
        "scores": st.booleans() | st.integers(0, 1),
        "cache": st.booleans() | st.none(),
        "model": st.sampled_from([EXAMPLE, "no such", "", 1, None]),
        "budget_ms": st.integers(-1, 10**6) | st.just("5"),
        "min_probability": st.floats(-0.1, 1.1) | st.integers(-1, 2) | st.booleans() | st.just("0.5"),
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


SURE_JSON = json.dumps(SURE)
numbers = st.sampled_from(
    [
        "1",
        "2",
        "1000",
        "1001",
        "0",
        "-0",
        "-1",
        "1.0",
        "1e0",
        "2E0",
        "1e999",
        "NaN",
        "Infinity",
        "-Infinity",
        "01",
    ]
) | st.integers(15, 420).map(lambda digits: "1" + "0" * digits)
members = st.one_of(
    st.sampled_from(
        [SURE_JSON, '"\\ud800"', '"\\ud83d\\ude80"', '"\\u0041 orbit"', '"\x7f"', '"\t"', '"\\q"']
    ).map('"text": {}'.format),
    st.sampled_from([f"[{SURE_JSON}]", "[]", f"[{SURE_JSON},]", "[" * 3 + "]" * 3]).map('"texts": {}'.format),
    st.tuples(st.sampled_from(["top_k", "budget_ms", "to\\u0070_k"]), numbers).map('"{0[0]}": {0[1]}'.format),
    st.sampled_from(["true", "false", "null", "1", "True"]).map('"scores": {}'.format),
    st.sampled_from(['["auto"]', '["auto", "auto"]', "[]", "null"]).map('"heads": {}'.format),
    st.sampled_from(['"\\ud800": 1', '"": 1', '"text" 1', ""]),
)


@settings(max_examples=600, deadline=None)
@given(
    found=st.lists(members, max_size=4),
    before=st.sampled_from(["", " ", "\ufeff", "\x00", "//\n"]),
    after=st.sampled_from(["", "\n\r\t ", "x", "{}", "\x00"]),
)
def test_any_json(lane: ExpressLane, engine: Api, found: list[str], before: str, after: str) -> None:
    """However JSON is written, with repeated names, odd numbers and escapes: the engine's answer, or none."""
    agree(lane, engine, event_of(before + "{" + ", ".join(found) + "}" + after))
    agree(lane, engine, event_of(before + "{" + ", ".join([f'"text": {SURE_JSON}', *found]) + "}" + after))


@pytest.mark.parametrize(
    "body",
    [
        '{"text": 1, "text": ' + SURE_JSON + "}",
        '{"text": ' + SURE_JSON + ', "top_k": 0, "top_k": 1}',
        '{"text": ' + SURE_JSON + ', "budget_ms": 1' + "0" * 400 + "}",
        '{"text": ' + SURE_JSON + ', "more": ' + "[" * 9000 + "]" * 9000 + "}",
        '{"text": ' + SURE_JSON + ', "cache": NaN}',
    ],
    ids=["name twice", "number twice", "huge number", "deep", "NaN"],
)
def test_odd_json_is_the_engines(lane: ExpressLane, engine: Api, body: str) -> None:
    """JSON that other readers refuse or read otherwise is left to the engine, which refuses it."""
    assert lane.answer(event_of(body), "request-1") is None
    assert engine.answer(read_event(event_of(body), Context())).status in (400, 422)


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
    lane = lane_of(bundle, CACHE_TABLE="table")
    answers = [lane.answer(event_of({"text": SURE}), "request-1") for _ in range(2)]
    bodies = [json.loads(answer["body"]) for answer in answers if answer]
    assert [body["start"] for body in bodies] == ["cold", "warm"]
    assert bodies[0]["usage"]["cache"]["skipped"] == 1


def test_log_has_no_text(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line of JSON per answer, in the form of the engine's, without the text."""
    lane = lane_of(bundle, LOG_LEVEL="info")
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
        {"COLDFRAME_THREADS": "0"},
        {"COLDFRAME_THREADS": "one"},
        {"COLDFRAME_max_texts": "5"},
        {"COLDFRAME_VERIFY_AT_INIT": "maybe"},
    ],
)
def test_closed(bundle: Path, environ: dict[str, str]) -> None:
    """Ahead of traffic, and with settings that are not the lane's to read, everything is loaded at once."""
    assert open_lane({"COLDFRAME_MODEL_DIR": str(bundle), **environ}) is None


def test_open(bundle: Path) -> None:
    """On demand, with the settings of the template, it is open."""
    assert open_lane({"COLDFRAME_MODEL_DIR": str(bundle), "COLDFRAME_CACHE_TABLE": "table"}) is not None


def test_closed_is_said(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A setting that closes the lane is named in a line of the log, and no value is."""
    environ = {"COLDFRAME_MODEL_DIR": str(bundle), "COLDFRAME_MAX_WINDOWS": "1", "COLDFRAME_THREADS": "2"}
    assert open_lane(environ) is None
    line = json.loads(capsys.readouterr().out)
    assert (line["event"], line["settings"]) == ("express-lane-closed", ["COLDFRAME_MAX_WINDOWS"])


def test_closed_is_not_said_without_a_log(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the log is off, nothing is written to it."""
    environ = {"COLDFRAME_MODEL_DIR": str(bundle), "COLDFRAME_MAX_WINDOWS": "1", "COLDFRAME_LOG_LEVEL": "off"}
    assert open_lane(environ) is None
    assert capsys.readouterr().out == ""


def test_closed_ahead_of_traffic_is_not_said(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ahead of traffic nothing is lost, and nothing is said."""
    ahead = {"AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start", "COLDFRAME_MAX_WINDOWS": "1"}
    assert open_lane({"COLDFRAME_MODEL_DIR": str(bundle), **ahead}) is None
    assert capsys.readouterr().out == ""


VALID = {
    "THREADS": "2",
    "MAX_TEXTS": "2",
    "MAX_BODY_BYTES": "300",
    "MAX_DECOMPRESSED_BYTES": "9",
    "MAX_ANSWER_BYTES": "4096",
    "MAX_BATCH_TOKENS": "128",
    "MAX_WINDOWS": "0",
    "L1_CACHE_BYTES": "0",
    "CACHE_TABLE": "",
    "CACHE_BUCKET": "bucket",
    "CACHE_POLICY": "off",
    "CACHE_DEADLINE_MS": "20",
    "CACHE_TTL_S": "60",
    "VERIFY_AT_INIT": "false",
    "LOG_LEVEL": "off",
    "DEVICE": "cpu",
    "PASSES": "2",
    "MODELS": EXAMPLE,
    "JOBS_TABLE": "jobs",
    "JOBS_QUEUE": "https://queue",
    "JOBS_CONTROL_QUEUE": "https://queue",
    "JOBS_FAILED_QUEUE": "https://failed",
    "JOBS_BUCKET": "bucket",
    "JOBS_SOURCES": "a,b",
    "JOBS_TOPIC": "arn",
    "JOBS_WEBHOOK_HOSTS": "example.com",
    "JOBS_WEBHOOK_KEY": "key",
    "JOBS_TTL_S": "3600",
}


def test_open_with_every_setting(bundle: Path, predictor: Predictor) -> None:
    """With any setting but a number of windows the lane is open, and keeps to the limits that are set."""
    assert {f"COLDFRAME_{name}" for name in [*VALID, "MODEL_DIR"]} == ENVIRONMENT_NAMES
    lane = lane_of(bundle, **VALID)
    limits = {f"COLDFRAME_{name}": value for name, value in VALID.items()}
    engine = Api(served(predictor), load_settings(limits), StartMark(is_warm=True))
    asked = [
        {"text": SURE},
        {"texts": [SURE, SURE]},
        {"texts": [SURE] * 3},
        {"text": SURE, "budget_ms": 1, "heads": ["auto"], "cache": True, "scores": True},
        {"texts": [SURE, SURE], "top_k": 1000, "scores": True},
        {"text": SURE + " " * 300},
    ]
    assert [agree(lane, engine, event_of(one)) for one in asked] == [True, True, False, False, False, False]


def test_unusable_bundle(tmp_path: Path) -> None:
    """An environment without a usable default model fails its init phase, with what to do."""
    with pytest.raises(BundleMissing, match=r"has no model.*Run `coldframe build`"):
        lane_of(tmp_path)
    with pytest.raises(BundleMissing, match=r"has no model.*Run `coldframe build`"):
        lane_of(tmp_path, MODELS=EXAMPLE)
    (tmp_path / EXAMPLE).mkdir()
    for content in (b"{", b"[]", b"{}"):
        (tmp_path / EXAMPLE / "manifest.json").write_bytes(content)
        with pytest.raises(BundleCorrupt, match=r"manifest\.json cannot be read"):
            lane_of(tmp_path)


@pytest.fixture(scope="module")
def engine_of_two(two_models: Path) -> Api:
    """The road of two models."""
    settings = Settings(model_dir=two_models, models=BOTH, log_level="off", l1_cache_bytes=0)
    return Api(load_models(settings), settings, StartMark(is_warm=True))


@pytest.mark.parametrize(
    ("model", "answered"),
    [({}, True), ({"model": EXAMPLE}, True), ({"model": SECOND}, True), ({"model": "no such"}, False)],
)
def test_same_answer_of_each_model(
    two_models: Path, engine_of_two: Api, model: dict[str, str], answered: bool
) -> None:
    """Each model's sure texts are answered here, as the engine answers them; unknown names are not."""
    lane = lane_of(two_models, MODELS=BOTH)
    for asked in ({"text": SURE}, {"texts": [SURE, "SCSI controller"], "scores": True, "top_k": 20}):
        event = event_of(asked | model)
        assert agree(lane, engine_of_two, event) is answered
        if answered:
            mine = lane.answer(event, "request-1")
            assert mine is not None
            assert json.loads(mine["body"])["model"] == model.get("model", EXAMPLE)
    assert not agree(lane, engine_of_two, event_of({"text": SURE, "heads": ["logreg"]} | model))


def test_broken_model_is_left_to_the_road(two_models: Path, tmp_path: Path) -> None:
    """A model that cannot be used is not answered for here; the other one is, before and after."""
    for part in ("encoders", EXAMPLE):
        (tmp_path / part).symlink_to(two_models / part)
    shutil.copytree(two_models / SECOND, tmp_path / SECOND)
    (tmp_path / SECOND / "estimator.bin").write_bytes(b"short")
    lane = lane_of(tmp_path, MODELS=f"{BOTH},no-such")
    asked = [EXAMPLE, SECOND, "no-such", EXAMPLE]
    answers = [lane.answer(event_of({"text": SURE, "model": name}), "request-1") for name in asked]
    assert [answer is not None for answer in answers] == [True, False, False, True]


def test_model_of_another_version_of_its_encoder(two_models: Path, tmp_path: Path) -> None:
    """The lane refuses a default model that the road refuses, and leaves to the road any other."""
    shutil.copytree(two_models, tmp_path, dirs_exist_ok=True)
    stale = load_manifest(tmp_path, SECOND).with_encoder("sha256:" + "0" * 64)
    (tmp_path / SECOND / "manifest.json").write_bytes(stale.encode())
    with pytest.raises(BundleCorrupt, match=r"'queues' was trained on .* Train the model again\."):
        lane_of(tmp_path, MODELS=SECOND)
    lane = lane_of(tmp_path, MODELS=BOTH)
    assert lane.answer(event_of({"text": SURE, "model": SECOND}), "request-1") is None
    assert lane.answer(event_of({"text": SURE}), "request-1") is not None


def test_default_model_of_lane_and_road(two_models: Path) -> None:
    """Lane and road agree on the model of a request that names none."""
    for names, default in ((BOTH, EXAMPLE), (f"{SECOND},{EXAMPLE}", SECOND), ("", EXAMPLE)):
        settings = Settings(model_dir=two_models, models=names, log_level="off", l1_cache_bytes=0)
        engine = Api(load_models(settings), settings, StartMark(is_warm=True))
        lane = lane_of(two_models, MODELS=names)
        assert agree(lane, engine, event_of({"text": SURE}))
        answer = lane.answer(event_of({"text": SURE}), "request-1")
        assert answer is not None
        assert json.loads(answer["body"])["model"] == default
