"""What a run costs, how it is begun on AWS, and what its request says."""

import random
import re
from dataclasses import replace
from typing import Any

import boto3
import msgspec
import pytest
from botocore.stub import Stubber
from hypothesis import given
from hypothesis import strategies as st

from coldframe.telemetry.trace import continue_trace
from coldframe_local.batch.offline.estimate import SAMPLED, Usage, estimate, usage_of
from coldframe_local.batch.offline.on_aws import OnAws, RunFailed
from coldframe_local.batch.offline.request import OfflineRequest, Place, RequestUnusable, format_of, place_of
from coldframe_local.planner.scenarios.prices import load_prices
from coldframe_local.planner.traces.report_lines import Report

REQUEST = OfflineRequest(Place("b", "in.csv"), Place("b", "out"), "CSV", "body", None, None, 100, 4, 0.0)
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:StateMachine-1"
EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:StateMachine-1:run"
MAP_RUN = "arn:aws:states:us-east-1:123456789012:mapRun:StateMachine-1/Predict:1"
US_EAST = load_prices().region("us-east-1")


def report(duration_s: float, init_s: float = 0.0) -> Report:
    return Report(duration_s, init_s, 1024, 300, None)


# Trace.


def test_a_run_is_a_trace_that_does_not_name_it() -> None:
    """A caller's trace goes into the input; without one a run has its own, which a second start repeats."""
    header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    called = replace(REQUEST, traceparent=header)
    assert called.as_input()["traceparent"] == header
    assert (called.default_name(), called.identity()) == (REQUEST.default_name(), REQUEST.identity())
    own = REQUEST.as_input()["traceparent"]
    assert (
        own
        == REQUEST.as_input()["traceparent"]
        != replace(REQUEST, version="other").as_input()["traceparent"]
    )
    assert continue_trace({"traceparent": own}).parent_id == own.split("-")[2]


# Cost.


@given(st.integers(2, 60), st.floats(0.01, 5), st.floats(0, 1))
def test_equal_batches_are_estimated_as_they_are_spent(
    batches: int, duration_s: float, init_s: float
) -> None:
    """Where every batch takes as long, the estimate is what is then billed, rounding apart."""
    cold = iter([init_s])
    found = estimate(
        ({"Items": [0] * 10} for _ in range(batches)),
        lambda batch: report(duration_s, next(cold, 0.0)),
        2,
        random.Random(0),
    )
    assert found.rows == 10 * batches
    billed = usage_of([report(duration_s, init_s)] * 2 + [report(duration_s)] * (batches - 2))
    assert found.usage.gb_s == pytest.approx(billed.gb_s, abs=1e-3 * (batches + 2))
    assert found.usage.batches == billed.batches
    assert found.error == pytest.approx(0.0 if min(batches, SAMPLED) > 2 else found.error)


def test_the_sample_is_of_the_whole_run() -> None:
    """Every batch is as likely to be invoked: the rows at the end are as much part of the estimate."""
    asked: list[int] = []

    def run(batch: dict[str, Any]) -> Report:
        asked.append(batch["Items"][0])
        return report(1.0)

    for seed in range(200):
        estimate(({"Items": [number]} for number in range(40)), run, 1, random.Random(seed))
    assert len(asked) == 200 * SAMPLED
    counts = [asked.count(number) for number in range(40)]
    assert min(counts) > 15 and max(counts) < 75  # 40 expected; a binomial's six standard deviations


def test_no_rows_cost_nothing() -> None:
    """No batch, no invocation."""
    found = estimate([], lambda batch: pytest.fail("invoked"), 1, random.Random(0))
    assert (found.rows, found.usage.usd(US_EAST, "arm64")) == (0, 0.0)


def test_usd_are_those_of_lambda_and_step_functions() -> None:
    """By hand: a million batches of one second at one GB on arm64."""
    million = Usage(1_000_000, 1e6, 1e6)
    lambda_usd = 13.3334 + 0.20
    step_functions_usd = 1.00 + 25.0 + 1e6 * 64 / 1024 * 0.06 / 3600
    assert million.usd(US_EAST, "arm64") == pytest.approx(lambda_usd + step_functions_usd)


# On AWS.


def on_aws(stub: Stubber, client: Any) -> OnAws:
    return OnAws(REQUEST, "run", client, MACHINE, sleep=lambda s: None)


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> Any:
    client = boto3.client(
        "stepfunctions", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    with Stubber(client) as stub:
        yield stub, client
        stub.assert_no_pending_responses()


def described(status: str, **more: Any) -> dict[str, Any]:
    return {
        "executionArn": EXECUTION,
        "stateMachineArn": MACHINE,
        "status": status,
        "startDate": 0,
        "input": START["input"],
        **more,
    }


def watched(stub: Stubber, status: str, succeeded: int, **more: Any) -> None:
    """One look at the execution and at its map run."""
    stub.add_response("describe_execution", described(status, **more), {"executionArn": EXECUTION})
    run = {"executionArn": EXECUTION, "mapRunArn": MAP_RUN, "stateMachineArn": MACHINE, "startDate": 0}
    stub.add_response("list_map_runs", {"mapRuns": [run]}, {"executionArn": EXECUTION})
    names = ("pending", "running", "failed", "timedOut", "aborted", "resultsWritten")
    counts = dict.fromkeys(names, 0) | {"succeeded": succeeded, "total": 9}
    answer = {
        "mapRunArn": MAP_RUN,
        "executionArn": EXECUTION,
        "status": "RUNNING",
        "startDate": 0,
        "maxConcurrency": 4,
        "toleratedFailurePercentage": 0.0,
        "toleratedFailureCount": 0,
        "itemCounts": counts,
        "executionCounts": counts,
    }
    stub.add_response("describe_map_run", answer, {"mapRunArn": MAP_RUN})


START = {
    "stateMachineArn": MACHINE,
    "name": "run",
    "input": msgspec.json.encode(REQUEST.as_input(), order="sorted").decode(),
}


def test_a_run_is_watched_until_it_is_over(states: Any) -> None:
    """Counts are told as they grow; the output is where the results are."""
    stub, client = states
    stub.add_response("start_execution", {"executionArn": EXECUTION, "startDate": 0}, START)
    watched(stub, "RUNNING", 4)
    watched(stub, "SUCCEEDED", 9, output='{"ResultWriterDetails": {"Bucket": "b", "Key": "k"}}')
    counts: list[tuple[int, int]] = []
    output = on_aws(stub, client).run(lambda done, total: counts.append((done, total)))
    assert counts == [(4, 9), (9, 9)]
    assert output["ResultWriterDetails"]["Key"] == "k"


def test_a_run_that_failed_is_redriven(states: Any) -> None:
    """The same name again does not begin anew: only failed children are repeated."""
    stub, client = states
    stub.add_client_error("start_execution", "ExecutionAlreadyExists", expected_params=START)
    stub.add_response("describe_execution", described("FAILED"), {"executionArn": EXECUTION})
    stub.add_response("redrive_execution", {"redriveDate": 0}, {"executionArn": EXECUTION})
    watched(stub, "FAILED", 7, error="States.ItemReaderFailed", cause="gone")
    with pytest.raises(RunFailed, match=r"FAILED: States\.ItemReaderFailed gone\. Start it again"):
        on_aws(stub, client).run(lambda done, total: None)


def test_a_run_of_another_object_or_model_is_not_resumed(states: Any) -> None:
    """An execution of this name, ended yesterday, does not stand for today's object and model."""
    stub, client = states
    yesterday = msgspec.json.encode(replace(REQUEST, version="sha256:old").as_input()).decode()
    stub.add_client_error("start_execution", "ExecutionAlreadyExists", expected_params=START)
    stub.add_response(
        "describe_execution", described("SUCCEEDED", input=yesterday), {"executionArn": EXECUTION}
    )
    with pytest.raises(RunFailed, match="another request, object or model version"):
        on_aws(stub, client).run(lambda done, total: None)


# The request.


@pytest.mark.parametrize("address", ["in.csv", "http://b/k", "s3://b", "s3://b/", "s3:///k"])
def test_addresses_that_are_none_are_refused(address: str) -> None:
    """With the form that is expected."""
    with pytest.raises(RequestUnusable, match="Expected s3://bucket/key"):
        place_of(address)


def test_places_and_formats() -> None:
    """Keys may hold any character; formats go by the end of the key, in either case."""
    assert place_of("s3://b/a b/c#d?e.csv") == Place("b", "a b/c#d?e.csv")
    assert [format_of(key) for key in ("a.CSV", "a.jsonl", "a.ndjson", "a.parquet")] == [
        "CSV",
        "JSONL",
        "JSONL",
        "PARQUET",
    ]
    with pytest.raises(RequestUnusable, match="--format"):
        format_of("a.txt")


def test_a_run_has_its_name_by_its_request() -> None:
    """The same request goes on with the same run; another one is another run."""
    assert REQUEST.default_name() == OfflineRequest(**vars(REQUEST)).default_name()
    assert REQUEST.default_name().startswith("in-")


@pytest.mark.parametrize(
    "change", [{"text": "title"}, {"etag": "b"}, {"version_id": "2"}, {"version": "sha256:2"}]
)
def test_a_run_has_another_name_for_another_object_or_model(change: dict[str, str]) -> None:
    """Whatever the answers depend on is in the name, so that no run answers for an earlier one."""
    assert replace(REQUEST, **change).default_name() != REQUEST.default_name()  # type: ignore[arg-type]


def test_a_name_has_only_characters_that_step_functions_takes() -> None:
    """A key may hold spaces and dots; the name of an execution may not."""
    place = Place("b", "texts/a b.of [may].csv")
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,80}", replace(REQUEST, source=place).default_name())
