"""Experiments over tiny models, with their stores in a folder and in DynamoDB in memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coldframe.api.api import Api, Reply, Request
from coldframe.config import Settings
from coldframe.experiments.control import Control, StageCounts
from coldframe.experiments.document import Experiment, Run, read_experiment
from coldframe.experiments.keeper import Keeper
from coldframe.experiments.stores import FolderStore, Store
from coldframe.experiments.table import TableStore
from coldframe.feedback.ids import Signer
from coldframe.feedback.marks import Marker
from coldframe.pipeline.models import Models
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import StartMark
from tests.conftest import served, tiny_predictor
from tests.support.dynamodb import create_table, dynamodb_in_memory

TABLE = "experiments"
KEY = "a key of feedback for tests"
DAY_S = 86_400


class Time:
    """A clock that tests move. It counts seconds since 1970, and never stands still for the breaker."""

    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now_s


class FaultyClient:
    """DynamoDB's client, whose calls fail as `fault` says: before they are made, or after."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.before: Callable[[str], Exception | None] = lambda operation: None
        self.after: Callable[[str], Exception | None] = lambda operation: None

    def __getattr__(self, operation: str) -> Any:
        def call(**arguments: Any) -> Any:
            if error := self.before(operation):
                raise error
            reply = getattr(self._client, operation)(**arguments)
            if error := self.after(operation):
                raise error
            return reply

        return call


class Clients:
    """`AwsClients` with one client."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def get(self, service: str) -> Any:
        return self.client

    def close(self) -> None:
        return None


@pytest.fixture
def time_of_day() -> Time:
    """The clock of the stores."""
    return Time()


@pytest.fixture
def client() -> Iterator[FaultyClient]:
    """DynamoDB in memory, with an empty table of experiments."""
    with dynamodb_in_memory() as client:
        create_table(client, TABLE, "run", "item")
        yield FaultyClient(client)


@pytest.fixture(params=["folder", "table"])
def store(request: pytest.FixtureRequest, tmp_path: Path, time_of_day: Time) -> Store:
    """Either store, empty."""
    if request.param == "folder":
        return FolderStore(tmp_path / "experiments", time_of_day)
    return table_store(request.getfixturevalue("client"), time_of_day)


@pytest.fixture
def folder(tmp_path: Path, time_of_day: Time) -> FolderStore:
    """A store in a folder."""
    return FolderStore(tmp_path / "experiments", time_of_day)


def table_store(client: FaultyClient, now: Time) -> TableStore:
    """A store in DynamoDB, which never pauses."""
    return TableStore(TABLE, Clients(client), now, lambda pause_s: None)  # type: ignore[arg-type]


def experiment(kind: str = "shadow", **fields: Any) -> Experiment:
    """An experiment of two heads of the tiny model."""
    arms = [{"name": "now", "head": "first"}, {"name": "next", "head": "second"}]
    body = {"name": "trial", "kind": kind, "arms": arms, **fields}
    return read_experiment(msgspec.json.encode(body))


class Environment:
    """An API with experiments, as on Lambda: nothing runs beside requests."""

    def __init__(
        self,
        store: Store,
        models: Models | None = None,
        judge: Callable[..., None] = lambda *_: None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.log: list[str] = []
        self.models = models or served(tiny_predictor())
        self.api = Api(self.models, Settings(), StartMark(), self.log.append)
        self.keeper = Keeper(
            store, self.models, self.log.append, 5.0, judge, clock or itertools.count().__next__
        )
        self.api._experiments = self.keeper
        self.api._marker = Marker(Signer(KEY), 1.0)
        self.read()

    def read(self) -> None:
        """Writes counts and reads the document, as once a minute."""
        self.keeper.set_up()

    def post(self, number: int = 0, principal: str = "", headers: Any = None, **fields: Any) -> Reply:
        """Sends one new text, unless `fields` have texts."""
        body = {"texts": [f"text {number}"], **fields}
        content = msgspec.json.encode(body)
        request = Request("POST", "/v1/predict", headers or {}, content, f"r{number}", principal=principal)
        return self.api.answer(request)

    def ask(self, number: int = 0, **fields: Any) -> dict[str, Any]:
        """The answer to one new text."""
        reply = self.post(number, **fields)
        assert reply.status == 200, reply.body
        answer: dict[str, Any] = msgspec.json.decode(reply.body)
        return answer

    def arm(self, number: int = 0, **fields: Any) -> str | None:
        """The arm that answered; None outside of experiments."""
        mark = self.ask(number, **fields).get("experiment")
        return mark["arm"] if mark else None


@pytest.fixture
def start(store: Store, time_of_day: Time) -> Callable[..., Run]:
    """Starts an experiment in the store."""
    return lambda kind="shadow", **fields: Control(store, time_of_day).start(experiment(kind, **fields))


def totals(store: Store) -> StageCounts:
    """Counts of the present run and its last lineup."""
    control = Control(store)
    run = control.current()
    assert run is not None
    return control.counts(run)[-1]


def other_model(name: str = "retrained") -> Predictor:
    """A second model on the tiny encoder."""
    return tiny_predictor(name=name)
