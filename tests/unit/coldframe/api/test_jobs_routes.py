"""The routes of jobs."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from coldframe.api.api import Api, Request
from coldframe.api.jobs_routes import JobsRoutes
from coldframe.config import Settings
from coldframe.jobs.backoff import RetryPolicy
from coldframe.jobs.control import Controller
from coldframe.jobs.object_file import Pin
from coldframe.jobs.records import MAX_PARTS, PART_BYTES, Result
from coldframe.jobs.states import State
from coldframe.jobs.worker import Worker
from coldframe.pipeline.models import Models
from coldframe.timing import Deadline, StartMark
from coldframe_functions.jobs.answering import ModelAnswerer
from tests.support.jobs_world import (
    KILLER,
    Faults,
    Killed,
    MemoryObjects,
    MemoryQueue,
    MemoryStore,
    Told,
    VirtualTime,
    replace,
)

TEXTS = ["The shuttle reached orbit", "My printer is broken", "The shuttle reached orbit"]


URI = "s3://ours/in.jsonl"
SOURCE = {"source": {"s3": URI, "format": "jsonl"}}
WEEK_S = 7 * 86_400.0


class Here:
    """The API with jobs in memory, and the worker and the controller behind it."""

    def __init__(self, models: Models) -> None:
        self.faults = Faults()
        self.time = VirtualTime()
        self.store = MemoryStore(self.faults, self.time)
        self.objects = MemoryObjects(self.faults)
        self.queue = MemoryQueue(self.time, self.faults)
        self.control = MemoryQueue(self.time, self.faults)
        self.told = Told()
        settings = Settings(log_level="off")
        self.api = Api(models, settings, StartMark(is_warm=True))
        routes = JobsRoutes(models, settings, self.store, self.objects, self.queue, self.control, self.time)
        self.api.__dict__["_jobs"] = routes
        self.worker = Worker(
            self.store,
            self.objects,
            self.queue,
            self.control,
            ModelAnswerer(models),
            RetryPolicy(),
            lambda: 0.5,
            pause=self.time.wait,
        )
        self.controller = Controller(
            self.store,
            self.objects,
            self.queue,
            self.control,
            self.told,
            RetryPolicy(),
            self.time,
            lambda: 0.5,
            pause=self.time.wait,
        )

    def ask(
        self, method: str, path: str, body: Any = None, principal: str = "", **headers: str
    ) -> tuple[int, Any]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = b"" if body is None else json.dumps(body).encode()
        reply = self.api.answer(Request(method, path, named, content, principal=principal))
        return reply.status, json.loads(reply.body)

    def work(self) -> None:
        while len(self.queue) or len(self.control):
            for message in self.control.receive(10):
                if self.controller.handle(message, Deadline(60.0)):
                    self.control.delete(message.id)
            messages = self.queue.receive(100)
            again = self.worker.handle(messages, Deadline(60.0))
            for message in messages:
                if message.id not in again:
                    self.queue.delete(message.id)


@pytest.fixture
def here(predictor: Any) -> Here:
    """Jobs on the real model."""
    return Here(Models({predictor.manifest.name: predictor}))


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


def test_defaults_that_are_spelled_out(here: Here) -> None:
    """A request that names the default head and model is the request that names none."""
    first = here.ask("POST", "/v1/jobs", {"texts": TEXTS})[1]["id"]
    model = here.store.jobs[first].options.model
    for more in ({"heads": ["auto"]}, {"model": model}, {"top_k": 1, "scores": False}):
        assert here.ask("POST", "/v1/jobs", {"texts": TEXTS, **more})[1]["id"] == first


def test_another_version_of_the_model_is_another_job(predictor: Any) -> None:
    """After a deployment of another model the same request is answered by that model."""
    here = Here(Models({predictor.manifest.name: predictor}))
    first = here.ask("POST", "/v1/jobs", {"texts": TEXTS})[1]["id"]
    newer = copy.copy(predictor)
    newer.manifest = replace(predictor.manifest, version="sha256:other")
    models = Models({predictor.manifest.name: newer})
    here.api.__dict__["_jobs"] = JobsRoutes(
        models, Settings(), here.store, here.objects, here.queue, here.control, here.time
    )
    assert here.ask("POST", "/v1/jobs", {"texts": TEXTS})[1]["id"] != first


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


@pytest.mark.parametrize("headers", [{}, {"idempotency_key": "a"}])
def test_a_cancelled_job_begins_anew(here: Here, headers: dict[str, str]) -> None:
    """The same request after a DELETE is answered; messages from before do nothing."""
    first = here.ask("POST", "/v1/jobs", {"texts": TEXTS}, **headers)[1]["id"]
    here.ask("DELETE", f"/v1/jobs/{first}")
    again = here.ask("POST", "/v1/jobs", {"texts": TEXTS}, **headers)[1]
    assert (again["id"], again["state"]) == (first, "queued")
    here.work()
    done = here.ask("GET", f"/v1/jobs/{first}")[1]
    assert (done["state"], done["done"], len(done["predictions"])) == ("done", 1, len(TEXTS))


@pytest.mark.parametrize(("jobs", "parts"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_weekly_job(here: Here, jobs: bool, parts: bool) -> None:
    """A request that is repeated after its expiry is answered, whatever DynamoDB has deleted by then."""
    for _ in range(3):
        job = here.ask("POST", "/v1/jobs", {"texts": TEXTS})[1]
        assert job["state"] == "queued"
        here.work()
        assert here.ask("GET", f"/v1/jobs/{job['id']}")[1]["state"] == "done"
        here.time.now_s += WEEK_S
        here.store.delete_expired(jobs, parts)
        assert here.ask("GET", f"/v1/jobs/{job['id']}")[0] == 404


def test_owners(here: Here) -> None:
    """A job is its owner's: for another caller it is not there, and its key is free."""
    job = here.ask("POST", "/v1/jobs", {"texts": TEXTS}, "ann", idempotency_key="a")[1]["id"]
    for principal in ("bob", ""):
        assert here.ask("GET", f"/v1/jobs/{job}", None, principal)[0] == 404
        assert here.ask("GET", f"/v1/jobs/{job}/answers/0", None, principal)[0] == 404
        assert here.ask("DELETE", f"/v1/jobs/{job}", None, principal)[0] == 404
        status, other = here.ask("POST", "/v1/jobs", {"texts": ["other"]}, principal, idempotency_key="a")
        assert (status, other["id"] != job) == (202, True)
    assert here.ask("GET", f"/v1/jobs/{job}", None, "ann")[1]["state"] == "queued"


def test_many_texts(here: Here) -> None:
    """Texts of several messages come back in order, all or in parts."""
    texts = [f"text number {number % 7}" for number in range(1200)]
    job = here.ask("POST", "/v1/jobs", {"texts": texts, "top_k": 5})[1]
    assert job["parts"] == 3
    here.work()
    found = here.ask("GET", f"/v1/jobs/{job['id']}")[1]
    assert [part["texts"] for part in found["results"]] == [500, 500, 200]
    assert all(part["url"] for part in found["results"])


def test_pages(here: Here) -> None:
    """A job of any size is read back to its last answer by `next`; each page fits into an answer."""
    name = here.ask("POST", "/v1/jobs", {"texts": TEXTS})[1]["id"]
    job = here.store.jobs[name]
    row = '{"index":0,"heads":{"auto":{"label":"' + "\u043f" * 10_000 + '"}}}'
    for part in range(1000):
        inline = b"" if part % 3 == 0 else f"[{row}]".encode()
        result = Result(part, "d", "v", 1, inline, "" if inline else f"jobs/{part}.json")
        here.store.put_result(job, result)
    here.store.jobs[name] = replace(job, state=State.DONE, parts=1000, done=frozenset(range(1000)))
    path, pages, numbers = f"/v1/jobs/{name}", 0, list[int]()
    while path:
        status, page = here.ask("GET", path)
        assert (status, page["state"]) == (200, "done")
        numbers += [part["part"] for part in page["results"]]
        path, pages = page.get("next", ""), pages + 1
    assert numbers == list(range(1000))
    assert pages > 5
    assert here.ask("GET", f"/v1/jobs/{name}/answers/1000")[1]["done"] == 1000
    assert here.ask("GET", f"/v1/jobs/{name}/answers/x")[0] == 404


def test_a_source(here: Here) -> None:
    """A job answers for the object that is there when it is sent; another object is another job."""
    here.objects.change(URI, b'"The shuttle reached orbit"')
    first = here.ask("POST", "/v1/jobs", SOURCE)[1]["id"]
    assert here.ask("POST", "/v1/jobs", SOURCE)[1]["id"] == first
    here.work()
    assert len(here.ask("GET", f"/v1/jobs/{first}")[1]["predictions"]) == 1
    here.objects.change(URI, b'"The shuttle reached orbit"\n"Another text"')
    second = here.ask("POST", "/v1/jobs", SOURCE)[1]["id"]
    here.work()
    assert second != first
    assert len(here.ask("GET", f"/v1/jobs/{second}")[1]["predictions"]) == 2


def test_a_source_that_changes_under_its_job(here: Here) -> None:
    """A job never mixes two versions of its source: it fails, and the same request is the new one's job."""
    here.objects.change(URI, b'"old"')
    first = here.ask("POST", "/v1/jobs", SOURCE)[1]["id"]
    here.objects.change(URI, b'"newer"')
    here.work()
    failed = here.ask("GET", f"/v1/jobs/{first}")[1]
    assert (failed["state"], failed["reason"]) == ("failed", "the source was changed while it was read")
    second = here.ask("POST", "/v1/jobs", SOURCE)[1]["id"]
    here.work()
    assert here.ask("GET", f"/v1/jobs/{second}")[1]["state"] == "done"


def test_a_poisoned_source_hurts_nobody(here: Here) -> None:
    """Nine jobs beside a source that ends its environment are answered at once, each by one delivery."""
    here.objects.change(URI, KILLER.encode())
    bad = here.ask("POST", "/v1/jobs", SOURCE)[1]["id"]
    good = [here.ask("POST", "/v1/jobs", {"texts": [f"text {number}"]})[1]["id"] for number in range(9)]
    kills = 0
    while len(here.queue) or len(here.control):
        try:
            here.work()
        except Killed:
            kills += 1
    assert kills == RetryPolicy().attempts
    assert here.ask("GET", f"/v1/jobs/{bad}")[1]["state"] == "failed"
    assert {here.ask("GET", f"/v1/jobs/{job}")[1]["state"] for job in good} == {"done"}
    assert here.queue.deliveries == len(good)


def test_equal_requests_split_once(here: Here) -> None:
    """Five equal requests for a source are one message to divide it."""
    here.objects.change(URI, b'"text"')
    for _ in range(5):
        assert here.ask("POST", "/v1/jobs", SOURCE)[0] == 202
    assert here.control.sent == 1


def test_a_key_outlives_its_source(here: Here) -> None:
    """A request that is repeated by its key is its job, even where the source is gone by now."""
    here.objects.change(URI, b'"text"')
    first = here.ask("POST", "/v1/jobs", SOURCE, idempotency_key="a")[1]["id"]
    here.work()
    del here.objects.contents[URI]
    status, found = here.ask("POST", "/v1/jobs", SOURCE, idempotency_key="a")
    assert (status, found["id"], found["state"]) == (202, first, "done")


def test_refused_sources(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that is missing, or larger than any job, is refused before anything is done for it."""
    status, problem = here.ask("POST", "/v1/jobs", SOURCE)
    assert (status, "NoSuchKey" in problem["detail"]) == (422, True)
    monkeypatch.setattr(here.objects, "pin", lambda uri: Pin("etag", MAX_PARTS * PART_BYTES + 1))
    status, problem = here.ask("POST", "/v1/jobs", SOURCE)
    assert (status, f"at most {MAX_PARTS * PART_BYTES}" in problem["detail"]) == (422, True)
    assert (here.store.jobs, here.control.sent) == ({}, 0)


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
        ({"texts": TEXTS, "push": {}}, 422, "has no receiver"),
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
    here.objects.change("s3://bucket/a", b"PAR1")
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
    name = "a" * 26
    for method, path, body in (
        ("POST", "/v1/jobs", {"texts": TEXTS}),
        ("GET", f"/v1/jobs/{name}", None),
        ("DELETE", f"/v1/jobs/{name}", None),
    ):
        status, problem = here.ask(method, path, body)
        assert (status, "Repeat the request" in problem["detail"]) == (503, True)
    here.faults.fails = 0.0
    job = here.ask("POST", "/v1/jobs", {"texts": TEXTS})[1]
    here.work()
    assert here.ask("GET", f"/v1/jobs/{job['id']}")[1]["state"] == "done"
    assert len(here.store.jobs) == 1


@pytest.mark.parametrize("name", ["a", "a" * 27, "x" * 5000, "A" * 26, "a" * 25 + "1", "start"])
def test_names_of_no_job(here: Here, name: str) -> None:
    """A name that no job can have is a 404, and the store is not asked."""
    here.faults.fails = 1.0
    for method, path in (("GET", ""), ("GET", "/answers/0"), ("DELETE", "")):
        assert here.ask(method, f"/v1/jobs/{name}{path}")[0] == 404


def test_a_look_changes_nothing(here: Here) -> None:
    """However long a job takes, a GET leaves it as it is."""
    job = here.ask("POST", "/v1/jobs", {"texts": TEXTS})[1]["id"]
    here.time.now_s = 1e5
    writes = here.store.writes
    assert here.ask("GET", f"/v1/jobs/{job}")[1]["state"] == "queued"
    assert here.store.writes == writes


def test_without_jobs(api: Api) -> None:
    """Where there are no jobs, a caller is told what to set."""
    reply = api.answer(Request("POST", "/v1/jobs", {}, b"{}"))
    assert reply.status == 404
    assert "COLDFRAME_JOBS_TABLE" in reply.body.decode()
