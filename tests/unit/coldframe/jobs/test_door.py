"""The routes of jobs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coldframe.api.api import Api, Request
from coldframe.config import Settings
from coldframe.jobs.backoff import RetryPolicy
from coldframe.jobs.door import JobsDoor
from coldframe.jobs.states import State
from coldframe.jobs.worker import Worker
from coldframe.pipeline.models import Models
from coldframe.timing import Deadline, StartMark
from functions.jobs.answering import ModelAnswerer
from tests.jobs_world import Faults, MemoryObjects, MemoryQueue, MemoryStore, Told

TEXTS = ["The shuttle reached orbit", "My printer is broken", "The shuttle reached orbit"]


class Here:
    """The API with jobs in memory, and the worker behind it."""

    def __init__(self, models: Models) -> None:
        self.faults = Faults()
        self.store = MemoryStore(self.faults)
        self.objects = MemoryObjects(self.faults)
        self.queue = MemoryQueue(self.faults)
        self.told = Told()
        settings = Settings(log_level="off")
        self.api = Api(models, settings, StartMark(is_warm=True))
        door = JobsDoor(models, settings, self.store, self.objects, self.queue, lambda: self.queue.now_s)
        self.api.__dict__["_jobs"] = door
        self.worker = Worker(
            self.store,
            self.objects,
            self.queue,
            self.told,
            ModelAnswerer(models),
            RetryPolicy(),
            lambda: self.queue.now_s,
            lambda: 0.5,
        )

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = b"" if body is None else json.dumps(body).encode()
        reply = self.api.answer(Request(method, path, named, content))
        return reply.status, json.loads(reply.body)

    def work(self) -> None:
        while len(self.queue):
            messages = self.queue.receive(100)
            again = self.worker.handle(messages, Deadline(60.0))
            for message in messages:
                if message.id not in again:
                    self.queue.delete(message.id)


@pytest.fixture
def here(predictor: Any) -> Here:
    """Jobs on the real model."""
    return Here(Models({predictor.manifest.name: lambda: predictor}))


def test_a_job(here: Here) -> None:
    """A job is taken, worked off, and its answers are those of POST /v1/predict."""
    status, taken = here.ask("POST", "/v1/jobs", {"texts": TEXTS, "top_k": 2})
    assert (status, taken["state"]) == (202, "queued")
    here.work()
    status, done = here.ask("GET", f"/v1/jobs/{taken['id']}")
    assert (status, done["state"], done["done"]) == (200, "done", 1)
    _, asked = here.ask("POST", "/v1/predict", {"texts": TEXTS, "top_k": 2})
    assert done["predictions"] == asked["predictions"]
    assert done["version"] == asked["version"]


def test_the_same_request_is_the_same_job(here: Here) -> None:
    """However it is written, and with a token of its own it is another one."""
    first = here.ask("POST", "/v1/jobs", {"texts": TEXTS})[1]["id"]
    assert here.ask("POST", "/v1/jobs", {"top_k": 1, "texts": TEXTS})[1]["id"] == first
    named = here.ask("POST", "/v1/jobs", {"texts": TEXTS}, idempotency_key="a")[1]["id"]
    assert named != first
    assert here.ask("POST", "/v1/jobs", {"texts": TEXTS}, idempotency_key="a")[1]["id"] == named
    status, problem = here.ask("POST", "/v1/jobs", {"texts": ["other"]}, idempotency_key="a")
    assert (status, "another request" in problem["detail"]) == (422, True)
    assert len(here.store.jobs) == 2


def test_cancelling(here: Here) -> None:
    """A cancelled job gets no answers, and stays as it is; one that is done stays done."""
    first = here.ask("POST", "/v1/jobs", {"texts": TEXTS})[1]["id"]
    assert here.ask("DELETE", f"/v1/jobs/{first}")[1]["state"] == "cancelled"
    here.work()
    status, found = here.ask("GET", f"/v1/jobs/{first}")
    assert (status, found["state"], "predictions" in found) == (200, "cancelled", False)
    other = here.ask("POST", "/v1/jobs", {"texts": ["other"]})[1]["id"]
    here.work()
    assert here.ask("DELETE", f"/v1/jobs/{other}")[1]["state"] == "done"


def test_many_texts(here: Here) -> None:
    """Texts of several messages come back in order, all or in parts."""
    texts = [f"text number {number % 7}" for number in range(1200)]
    job = here.ask("POST", "/v1/jobs", {"texts": texts, "top_k": 5})[1]
    assert job["parts"] == 3
    here.work()
    found = here.ask("GET", f"/v1/jobs/{job['id']}")[1]
    assert [part["texts"] for part in found["results"]] == [500, 500, 200]
    assert all(part["url"] for part in found["results"])


def test_a_worker_that_is_quicker(here: Here) -> None:
    """A job whose parts are all answered before their number is known ends all the same."""
    send = here.queue.send

    def send_and_work(bodies: Any) -> None:
        send(bodies)
        here.queue.send = send  # type: ignore[method-assign]
        here.work()

    here.queue.send = send_and_work  # type: ignore[method-assign]
    job = here.ask("POST", "/v1/jobs", {"texts": TEXTS, "push": {"sns": True}})[1]
    assert job["state"] == "done"
    here.work()
    assert here.told.states == {job["id"]: {State.DONE}}


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({}, 422, 'either "texts"'),
        ({"texts": TEXTS, "source": {"s3": "s3://bucket/a", "format": "csv"}}, 422, 'either "texts"'),
        ({"texts": []}, 422, "length"),
        ({"texts": ["a\udc00b"]}, 400, "surrogate"),
        ({"texts": TEXTS, "heads": ["none"]}, 422, "not a head"),
        ({"texts": TEXTS, "model": "none"}, 404, "none"),
        ({"texts": TEXTS, "top_k": 0}, 422, "top_k"),
        ({"texts": TEXTS, "push": {}}, 422, "names nobody"),
        ({"texts": TEXTS, "push": {"webhook": "file:///a"}}, 422, "not an address"),
        ({"texts": TEXTS, "push": {"webhook": "https://example.com/a b"}}, 422, "not an address"),
        ({"texts": TEXTS, "push": {"webhook": "https://example.com/a\n"}}, 422, "not an address"),
        ({"source": {"s3": "https://a/b", "format": "csv"}}, 422, "s3"),
        ({"source": {"s3": "s3://bucket/a", "format": "orc"}}, 422, "jsonl, csv, parquet"),
        ({"texts": TEXTS, "other": 1}, 422, "other"),
    ],
)
def test_refused(here: Here, body: Any, status: int, said: str) -> None:
    """What can never be done is refused at once, and leaves nothing behind."""
    found, problem = here.ask("POST", "/v1/jobs", body)
    assert (found, said in problem["detail"]) == (status, True), problem
    assert (here.store.jobs, len(here.queue)) == ({}, 0)


def test_parquet_needs_pyarrow(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the image has none, a Parquet source is refused at once, with what to do."""
    body = {"source": {"s3": "s3://bucket/a", "format": "parquet"}}
    assert here.ask("POST", "/v1/jobs", body)[0] == 202
    monkeypatch.setattr("coldframe.jobs.parquet.can_read_parquet", lambda: False)
    status, problem = here.ask("POST", "/v1/jobs", body)
    assert (status, "ImageExtra=pyarrow" in problem["detail"]) == (422, True)


@pytest.mark.parametrize("token", ["a b", "é", "x" * 256, "\n"])
def test_refused_tokens(here: Here, token: str) -> None:
    """A token is short and plain."""
    status, problem = here.ask("POST", "/v1/jobs", {"texts": TEXTS}, idempotency_key=token)
    assert (status, "Idempotency-Key" in problem["detail"]) == (422, True)


def test_an_outage(here: Here) -> None:
    """While a service fails callers are told to ask again, and the repeated request is the same job."""
    here.faults.fails = 1.0
    for method, path, body in (
        ("POST", "/v1/jobs", {"texts": TEXTS}),
        ("GET", "/v1/jobs/a", None),
        ("DELETE", "/v1/jobs/a", None),
    ):
        status, problem = here.ask(method, path, body)
        assert (status, "same request again" in problem["detail"]) == (503, True)
    here.faults.fails = 0.0
    job = here.ask("POST", "/v1/jobs", {"texts": TEXTS})[1]
    here.work()
    assert here.ask("GET", f"/v1/jobs/{job['id']}")[1]["state"] == "done"
    assert len(here.store.jobs) == 1


def test_unknown_jobs(here: Here) -> None:
    """A job that is not there is a 404, and one that nobody heard of for hours has failed."""
    assert here.ask("GET", "/v1/jobs/a")[0] == 404
    assert here.ask("DELETE", "/v1/jobs/a")[0] == 404
    job = here.ask("POST", "/v1/jobs", {"texts": TEXTS})[1]["id"]
    here.queue.now_s = 1e5
    assert here.ask("GET", f"/v1/jobs/{job}")[1]["state"] == "failed"


def test_without_jobs(api: Api) -> None:
    """Where there are no jobs, a caller is told what to set."""
    reply = api.answer(Request("POST", "/v1/jobs", {}, b"{}"))
    assert reply.status == 404
    assert "COLDFRAME_JOBS_TABLE" in reply.body.decode()
