"""How a Distributed Map runs: batches, failures, results, and what is left of it when it is cut off."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import boto3
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moto import mock_aws

from coldframe_local.batch.offline.request import NO_VERSION, OfflineRequest, Place
from coldframe_local.batch.offline.run_locally import Here, names_of
from coldframe_local.emulator.state_machines.definition import (
    ItemProcessor,
    ItemReader,
    Map,
    ProcessorConfig,
    ReaderConfig,
    ResultWriter,
    Task,
    WriterConfig,
)
from coldframe_local.emulator.state_machines.journal import Journal, OtherRun
from coldframe_local.emulator.state_machines.map_run import MapRun, ObjectChanged, tolerated
from coldframe_local.emulator.state_machines.workflow import Failed

BUCKET = "texts"
REQUEST = OfflineRequest(
    Place(BUCKET, "in.jsonl"), Place(BUCKET, "out"), "JSONL", "text", None, None, 3, 4, 0.0
)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        yield client


def put(s3: Any, rows: int) -> None:
    body = "".join(json.dumps({"text": f"text {row}"}) + "\n" for row in range(rows))
    s3.put_object(Bucket=BUCKET, Key="in.jsonl", Body=body.encode())


class Killed(BaseException):
    """Stands for a signal that ends the process."""


class Function:
    """A function with one model. Answers each item; fails as it is told, by number of the invocation."""

    def __init__(
        self, fails: Callable[[int, Any], str] = lambda number, event: "", version: str = "sha256:1"
    ) -> None:
        self.fails = fails
        self.version = version
        self.events: list[Any] = []
        self._lock = Lock()

    def __call__(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        event = parameters["Payload"]
        with self._lock:
            self.events.append(event)
            number = len(self.events)
        if error := self.fails(number, event):
            raise Failed(error, json.dumps({"errorType": error}))
        expected = event.get("BatchInput", {}).get("version")
        if expected not in (None, self.version):
            raise Failed("BatchRefused", f"Found the model {self.version}, expected {expected}")
        results = [
            {"id": item["id"], "version": self.version, "heads": _heads(item["row"])}
            for item in event["Items"]
        ]
        return {"Payload": {"Results": results}, "StatusCode": 200}


def _heads(row: Any) -> str:
    return str(row["text"]).upper()


def run_of(s3: Any, function: Function, folder: Path, request: OfflineRequest = REQUEST) -> Here:
    head = s3.head_object(Bucket=BUCKET, Key="in.jsonl")
    version_id = head.get("VersionId", NO_VERSION)
    pinned = replace(request, etag=head["ETag"], version_id=version_id, version=function.version)
    here = Here(pinned, "run", s3, None, "f", folder)
    here._invoke = function  # type: ignore[assignment]
    return here


def files(s3: Any, output: dict[str, Any]) -> dict[str, bytes]:
    """What the manifest names, by status."""
    details = output["ResultWriterDetails"]
    manifest = json.loads(s3.get_object(Bucket=details["Bucket"], Key=details["Key"])["Body"].read())
    found = {}
    for status, named in manifest["ResultFiles"].items():
        for file in named:
            body = s3.get_object(Bucket=manifest["DestinationBucket"], Key=file["Key"])["Body"].read()
            assert len(body) == file["Size"]
            found[status] = body
    return found


def test_results_are_those_of_every_row_in_order(s3: Any, tmp_path: Path) -> None:
    """Children end in any order; the file has the rows' order."""
    put(s3, 50)
    found = files(s3, run_of(s3, Function(), tmp_path).run(lambda items: None))
    lines = [json.loads(line) for line in found.pop("SUCCEEDED").splitlines()]
    assert lines == [{"id": row, "version": "sha256:1", "heads": f"TEXT {row}"} for row in range(50)]
    assert found == {}


@pytest.mark.parametrize("cache", [False, True])
def test_the_shared_cache_is_left_alone_unless_it_is_asked_for(s3: Any, tmp_path: Path, cache: bool) -> None:
    """Writing a short text there costs more than computing it."""
    put(s3, 5)
    function = Function()
    run_of(s3, function, tmp_path, replace(REQUEST, cache=cache)).run(lambda items: None)
    assert [event["BatchInput"]["cache"] for event in function.events] == [cache, cache]


@settings(deadline=None, max_examples=15)
@given(killed_after=st.integers(0, 16))
def test_a_run_that_was_cut_off_ends_with_the_same_bytes(
    killed_after: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What was done is not done again: at most the children that were under way."""
    with mock_aws(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket=BUCKET)
        put(s3, 50)
        whole = files(s3, run_of(s3, Function(), tmp_path_factory.mktemp("whole")).run(lambda items: None))
        folder = tmp_path_factory.mktemp("cut")
        ended: list[int] = []  # items of children

        def kill(items: int) -> None:
            if items:  # 0: nothing was done before
                ended.append(items)
            if len(ended) > killed_after:
                raise Killed

        first = Function()
        with pytest.raises(Killed):
            run_of(s3, first, folder).run(kill)
        second = Function()
        resumed = files(s3, run_of(s3, second, folder).run(lambda items: None))
    assert resumed == whole
    assert len(second.events) <= 17 - killed_after - 1
    repeated = [event for event in second.events if event in first.events]
    assert len(repeated) < REQUEST.concurrency + 1


def test_a_batch_that_fails_ends_the_run_and_its_next_start_repeats_it_alone(s3: Any, tmp_path: Path) -> None:
    """An error that is not retried ends the run; what succeeded is kept."""
    put(s3, 12)
    broken = Function(lambda number, event: "BatchRefused" if event["Items"][0]["id"] == 9 else "")
    with pytest.raises(Failed, match=r"States\.ExceedToleratedFailureThreshold") as caught:
        run_of(s3, broken, tmp_path).run(lambda items: None)
    assert caught.value.cause.startswith("3 of 12 items failed; s3://texts/out/")
    mended = Function()
    found = files(s3, run_of(s3, mended, tmp_path).run(lambda items: None))
    assert [event["Items"][0]["id"] for event in mended.events] == [9]
    assert found.keys() == {"SUCCEEDED"}


def test_failures_that_are_tolerated_have_a_file_of_their_own(s3: Any, tmp_path: Path) -> None:
    """The file of failures has each child's input, error and cause, as AWS writes it."""
    put(s3, 12)
    broken = Function(lambda number, event: "BatchRefused" if event["Items"][0]["id"] == 3 else "")
    request = OfflineRequest(**{**vars(REQUEST), "tolerated_failure_percentage": 25.0})
    found = files(s3, run_of(s3, broken, tmp_path, request).run(lambda items: None))
    (failed,) = json.loads(found["FAILED"])
    assert (failed["Status"], failed["Error"], json.loads(failed["Cause"])) == (
        "FAILED",
        "BatchRefused",
        {"errorType": "BatchRefused"},
    )
    assert [item["id"] for item in json.loads(failed["Input"])["Items"]] == [3, 4, 5]
    assert len(found["SUCCEEDED"].splitlines()) == 9


def test_another_object_is_another_run(s3: Any, tmp_path: Path) -> None:
    """Batches of an object that has changed since would be mixed with those of the old one."""
    put(s3, 5)
    run_of(s3, Function(), tmp_path).run(lambda items: None)
    put(s3, 6)
    with pytest.raises(OtherRun, match=r"started with another object\. Give it another --name, or delete"):
        run_of(s3, Function(), tmp_path).run(lambda items: None)


def test_another_model_is_another_run(s3: Any, tmp_path: Path) -> None:
    """A run cut off before a deployment does not resume after it: its file would hold two models' answers."""
    put(s3, 12)
    broken = Function(lambda number, event: "BatchRefused" if event["Items"][0]["id"] == 9 else "")
    with pytest.raises(Failed):
        run_of(s3, broken, tmp_path).run(lambda items: None)
    with pytest.raises(
        OtherRun, match=r"another model version\. Give it another --name, or delete .*run\.sq"
    ):
        run_of(s3, Function(version="sha256:2"), tmp_path).run(lambda items: None)


def test_a_deployment_during_a_run_ends_it(s3: Any, tmp_path: Path) -> None:
    """Batches after the deployment are refused, since their rows would be answered by another model."""
    put(s3, 12)
    function = Function()
    here = run_of(s3, function, tmp_path, replace(REQUEST, concurrency=1))

    def deploy(items: int) -> None:
        if items:
            function.version = "sha256:2"

    with pytest.raises(Failed, match=r"States\.ExceedToleratedFailureThreshold"):
        here.run(deploy)
    assert {event["BatchInput"]["version"] for event in function.events} == {"sha256:1"}


@pytest.mark.parametrize("versioning", ["Enabled", None])
def test_an_object_that_changes_before_it_is_read(s3: Any, tmp_path: Path, versioning: str | None) -> None:
    """A run reads the object that it was started with, or ends with an error."""
    if versioning:
        s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": versioning})
    put(s3, 5)
    here = run_of(s3, Function(), tmp_path)
    put(s3, 6)
    if versioning:
        found = files(s3, here.run(lambda items: None))
        assert len(found["SUCCEEDED"].splitlines()) == 5
        return
    with pytest.raises(ObjectChanged, match="has changed after this run was started"):
        here.run(lambda items: None)


def test_an_output_over_the_limit_of_a_child_fails_it(s3: Any, tmp_path: Path) -> None:
    """What would fail on AWS fails here: 256 KiB."""
    s3.put_object(Bucket=BUCKET, Key="in.jsonl", Body=json.dumps({"text": "x" * 120_000}).encode() * 1)
    function = Function()
    here = run_of(s3, function, tmp_path)
    big = {"Payload": {"Results": ["y" * 300_000]}, "StatusCode": 200}
    here._invoke = lambda parameters: big  # type: ignore[assignment]
    with pytest.raises(Failed) as caught:
        here.run(lambda items: None)
    assert caught.value.error == "States.ExceedToleratedFailureThreshold"


def test_a_function_without_a_report_cannot_be_estimated(s3: Any, tmp_path: Path) -> None:
    """A log that tells no duration is named, with the way to start all the same."""
    put(s3, 3)
    with pytest.raises(Failed) as caught:
        run_of(s3, Function(), tmp_path).probe({"Items": []})
    assert caught.value.error == "NoReport"
    assert "--no-estimate" in caught.value.cause


def echoed(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """A function that answers what it is sent."""
    return dict(parameters)


def a_map(**changes: Any) -> Map:
    task = Task("arn:aws:states:::lambda:invoke", {"Payload.$": "$"}, OutputPath="$.Payload", End=True)
    fields: dict[str, Any] = {
        "ItemReader": ItemReader(
            "arn:aws:states:::s3:getObject", ReaderConfig("JSONL"), {"Bucket": BUCKET, "Key": "in.jsonl"}
        ),
        "ItemProcessor": ItemProcessor(ProcessorConfig("DISTRIBUTED", "STANDARD"), "T", {"T": task}),
        "ResultWriter": ResultWriter("arn:aws:states:::s3:putObject", {"Bucket": BUCKET, "Prefix": "p/"}),
        "End": True,
    }
    return Map(**{**fields, **changes})


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (WriterConfig("COMPACT", "JSON"), [[1], {"a": 2}]),
        (WriterConfig("FLATTEN", "JSON"), [1, {"a": 2}]),
        (WriterConfig("COMPACT", "JSONL"), [[1], {"a": 2}]),
        (WriterConfig(), None),
    ],
)
def test_results_have_the_form_that_the_writer_asks_for(
    config: WriterConfig, expected: Any, s3: Any, tmp_path: Path
) -> None:
    """Unchanged with the execution around it, compact, or flat; as an array or as lines."""
    s3.put_object(Bucket=BUCKET, Key="in.jsonl", Body=b'[1]\n{"a": 2}\n')
    writer = ResultWriter("arn:aws:states:::s3:putObject", {"Bucket": BUCKET, "Prefix": "p/"}, config)
    with Journal(tmp_path / "j") as journal:
        run = MapRun(s3, echoed, journal, names_of("m", "r"), 2, lambda items: None, clock=lambda: 0.0)
        found = files(s3, run.run(a_map(ResultWriter=writer), {}))["SUCCEEDED"]
    if config.OutputType == "JSONL":
        assert [json.loads(line) for line in found.splitlines()] == expected
    elif expected is not None:
        assert json.loads(found) == expected
    else:
        first = json.loads(found)[0]
        assert (first["Input"], first["Output"], first["Status"]) == ("[1]", "[1]", "SUCCEEDED")
        assert first["StartDate"] == "1970-01-01T00:00:00.000Z"
        assert first["InputDetails"] == first["OutputDetails"] == {"Included": True}


@pytest.mark.parametrize(
    ("count", "percentage", "total", "expected"),
    [(0, 0.0, 100, 0), (5, 0.0, 100, 5), (0, 10.0, 100, 10), (5, 10.0, 100, 5), (50, 10.0, 100, 10)],
)
def test_the_lower_bound_on_failures_counts(count: int, percentage: float, total: int, expected: int) -> None:
    """A count and a percentage bound failures, each alone and both together."""
    state = a_map(ToleratedFailureCount=count, ToleratedFailurePercentage=percentage)
    assert tolerated(state, {}, total) == expected
