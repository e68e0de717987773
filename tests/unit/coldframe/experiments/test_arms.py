"""Requests in an experiment: who answers, what is counted, and what stays out."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec
import pytest

from coldframe.api.api import Request
from coldframe.config import Settings
from coldframe.experiments.control import Control
from coldframe.experiments.document import Run
from coldframe.experiments.stores import CURRENT, DOCUMENT, FolderStore, Item, Store, StoreFails
from coldframe.feedback.ids import Signer
from coldframe.model.files import AUTO
from coldframe.pipeline.predictor import Predictor
from coldframe.timing import NO_DEADLINE, Deadline
from coldframe_functions.predict.answer_batch import answer_batch
from coldframe_functions.predict.answer_ping import answer_ping
from tests.conftest import TinyEncoder, served, tiny_predictor
from tests.unit.coldframe.experiments.conftest import KEY, Environment, Time, experiment, other_model, totals

Start = Callable[..., Run]


def test_without_a_document_there_is_no_experiment(store: Store) -> None:
    """An empty store changes no answer."""
    assert Environment(store).arm() is None


@pytest.mark.parametrize("document", [b"[]", b'"text"', b'{"experiment":{}}', b"{}"])
def test_a_document_that_cannot_be_read_is_no_experiment(store: Store, document: bytes) -> None:
    """Requests are answered without it, and the log names the reason once."""
    store.write(CURRENT, Item(DOCUMENT, document, 1), NO_DEADLINE)
    environment = Environment(store)
    environment.read()
    assert environment.arm() is None
    assert sum("cannot be read" in line for line in environment.log) == 1


def test_a_shadow_answers_and_is_not_returned(store: Store, start: Start) -> None:
    """The first arm answers; both are counted, and compared text by text."""
    start("shadow")
    environment = Environment(store)
    answers = [environment.ask(i) for i in range(6)]
    environment.read()
    assert {answer["experiment"]["arm"] for answer in answers} == {"now"}
    assert all(set(row["heads"]) == {"first"} for answer in answers for row in answer["predictions"])
    counts = totals(store)
    assert (counts.of("now", "answers"), counts.of("next", "answers")) == (6, 6)
    assert counts.of("next", "compared") == counts.of("next", "agreed") == 6


def test_a_shadow_on_the_same_encoder_encodes_nothing(folder: FolderStore, time_of_day: Time) -> None:
    """Another model's shadow has the embeddings of the answer, with the cache and without it."""
    encoder = TinyEncoder()
    models = served(tiny_predictor(encoder), tiny_predictor(TinyEncoder(), name="retrained"))
    arms = [{"name": "now"}, {"name": "next", "model": "retrained"}]
    Control(folder, time_of_day).start(experiment(arms=arms))
    environment = Environment(folder, models)
    environment.ask(1)
    environment.ask(2, cache=False)
    environment.read()
    assert totals(folder).of("next", "compared") == 2
    assert models.get("retrained").tokenizer.batches == []  # type: ignore[attr-defined]


def test_answers_from_the_cache_are_neither_timed_nor_compared(store: Store, start: Start) -> None:
    """A repeated text, today or in a week, counts as an answer, and no second time as a comparison."""
    start("shadow")
    environment = Environment(store)
    for _ in range(3):
        environment.ask(1)
    environment.read()
    counts = totals(store)
    assert (counts.of("now", "answers"), counts.of("now", "cached")) == (3, 2)
    assert counts.of("next", "compared") == 1
    assert sum(n for name, n in counts.arms["now"].items() if name.startswith("ms_")) == 1


def test_the_cache_does_not_mix_arms(store: Store, start: Start) -> None:
    """Each arm gives one text its own answer, whoever asked for it before."""
    arms = [
        {"name": "now", "head": "first"},
        {"name": "next", "head": "first", "min_probability": 1.0},
    ]
    start("split", arms=arms, stages=[0.5], subject="field")
    environment = Environment(store)
    for number in range(40):
        answer = environment.ask(1, subject=f"s{number}")
        abstains = answer["predictions"][0]["heads"]["first"].get("abstained", False)
        assert abstains == (answer["experiment"]["arm"] == "next")


def test_a_split_assigns_each_subject_once(store: Store, start: Start) -> None:
    """A subject has one arm in all environments, and the arms get about their shares."""
    start("split", stages=[0.3], subject="header:x-customer")
    environments = [Environment(store, clock=itertools.count().__next__) for _ in range(2)]
    arms = [
        [environment.arm(i, headers={"x-customer": f"c{i}"}) for i in range(200)]
        for environment in environments
    ]
    assert arms[0] == arms[1]
    assert 30 < arms[0].count("next") < 90


@pytest.mark.parametrize("subject", ["caller", "field", "header:x-customer"])
def test_a_request_without_a_subject_stays_out(store: Store, start: Start, subject: str) -> None:
    """A missing and a blank subject are answered by the deployment's default, and counted as such."""
    start("split", stages=[1.0], subject=subject)
    environment = Environment(store)
    assert environment.arm(1) is None
    assert environment.arm(2, principal=" ", headers={"x-customer": ""}, subject=" ") is None
    environment.read()
    assert totals(store).of("now", "without_subject") == 2


def test_one_subject_for_all_requests_has_one_arm(store: Store, start: Start) -> None:
    """All its requests go to one arm, and count as one subject."""
    start("split", stages=[0.5], subject="caller")
    environment = Environment(store)
    arms = {environment.arm(i, principal="all") for i in range(20)}
    environment.read()
    (arm,) = arms
    assert totals(store).of(str(arm), "subjects") == 1


@pytest.mark.parametrize(
    "fields", [{"heads": ["first"]}, {"model": "topics"}, {"heads": ["auto"]}], ids=["head", "model", "auto"]
)
def test_an_explicit_request_is_never_part(store: Store, start: Start, fields: dict[str, Any]) -> None:
    """A request that names heads or a model is answered by these."""
    start("split", stages=[1.0])
    environment = Environment(store)
    assert environment.arm(1, **fields) is None
    environment.read()
    assert Control(store).counts(Control(store).current()) == []  # type: ignore[arg-type]


def test_batches_and_pings_stay_out(store: Store, start: Start) -> None:
    """Items of a Distributed Map and pings are answered by the deployment's default, and not counted."""
    start("split", stages=[1.0])
    environment = Environment(store)
    event = {"Items": [{"id": 1, "row": "text"}]}
    answer = answer_batch(event, environment.api, "batch", lambda: 30.0)
    assert set(answer["Results"][0]["heads"]) == {"first"}
    answer_ping({"hold_ms": 0}, environment.api, "ping", lambda: 30.0)
    sql = msgspec.json.encode({"data": [[0, "text"]]})
    environment.api.answer(Request("POST", "/v1/sql/snowflake/topic", body=sql))
    environment.read()
    assert Control(store).counts(Control(store).current()) == []  # type: ignore[arg-type]


def test_an_arm_that_the_deployment_lacks_ends_the_experiment_there(store: Store, start: Start) -> None:
    """An unknown model or head means no experiment here; the log says which arm."""
    for arm in ({"name": "next", "model": "gone"}, {"name": "next", "head": "gone"}):
        start("split", arms=[{"name": "now"}, arm], stages=[1.0])
        environment = Environment(store)
        assert environment.arm() is None
        assert "The arm next names the" in environment.log[0]
        Control(store).stop()


def test_environments_with_other_models_count_apart(store: Store, start: Start) -> None:
    """During a deployment, answers of two versions of a model are never added up."""
    arms = [{"name": "now"}, {"name": "next", "model": "retrained"}]
    start("shadow", arms=arms)
    old = served(tiny_predictor(), other_model())
    new = served(tiny_predictor(), tiny_predictor(name="retrained", settled_margin=0.5))
    for models in (old, new):
        environment = Environment(store, models)
        environment.ask(1)
        environment.read()
    run = Control(store).current()
    assert run is not None
    assert [stage.of("now", "answers") for stage in Control(store).counts(run)] == [1, 1]


def test_environments_at_another_stage_count_apart(store: Store, start: Start) -> None:
    """An environment that still reads the earlier document counts for the earlier stage."""
    run = start("split", stages=[0.5, 1.0])
    late, early = Environment(store), None
    control = Control(store)
    assert control.replace(run, run.changed(0, "running", 1, "the criteria hold"))
    early = Environment(store)
    late.ask(1)
    early.ask(2)
    for environment in (late, early):
        environment.read()
    assert [stage.stage for stage in control.counts(run)] == [0, 1]


class Broken(Exception):
    """A defect of a model."""


def breaks(*arguments: Any) -> NoReturn:
    """Fails as a broken model does."""
    raise Broken


def test_the_first_arm_answers_for_a_broken_one(
    store: Store, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request is answered though its arm breaks; the error counts for the arm."""
    start("split", arms=[{"name": "now"}, {"name": "next", "model": "retrained"}], stages=[1.0])
    broken = other_model()
    monkeypatch.setattr(broken, "predict", breaks)
    environment = Environment(store, served(tiny_predictor(), broken))
    assert environment.arm(1) == "now"
    environment.read()
    counts = totals(store)
    assert (counts.of("next", "answers"), counts.of("next", "errors"), counts.of("now", "answers")) == (
        1,
        1,
        0,
    )


@pytest.mark.parametrize("error", [Broken, MemoryError])
def test_a_shadow_that_fails_changes_no_answer(
    store: Store, start: Start, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken shadow, and one that needs too much memory, are counted; the answer is as ever."""

    def fails(*arguments: Any) -> NoReturn:
        raise error

    start("shadow", arms=[{"name": "now"}, {"name": "next", "model": "retrained"}])
    broken = other_model()
    monkeypatch.setattr(broken, "predict", fails)
    environment = Environment(store, served(tiny_predictor(), broken))
    assert environment.arm(1) == "now"
    environment.read()
    assert totals(store).of("next", "errors") == 1


def test_a_shadow_that_hangs_delays_no_answer(
    folder: FolderStore, time_of_day: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer leaves within its budget while the shadow still works; then no other shadow begins."""
    ends = threading.Event()

    def hangs(*arguments: Any) -> NoReturn:
        ends.wait()
        raise Broken

    Control(folder, time_of_day).start(
        experiment(arms=[{"name": "now"}, {"name": "next", "model": "retrained"}])
    )
    slow = other_model()
    monkeypatch.setattr(slow, "predict", hangs)
    environment = Environment(folder, served(tiny_predictor(), slow))
    assert environment.arm(1, budget_ms=100) == "now"
    assert environment.arm(2) == "now"  # no deadline, and yet it does not wait
    ends.set()
    environment.read()
    assert totals(folder).of("next", "skipped") == 2


def test_a_shadow_without_time_is_skipped(folder: FolderStore, time_of_day: Time) -> None:
    """A budget that is shorter than the shadow's expected time leaves the shadow out."""
    Control(folder, time_of_day).start(experiment())
    environment = Environment(folder)
    environment.post(1, budget_ms=1)
    environment.read()
    assert totals(folder).of("next", "compared") == 0


def test_a_table_that_fails_changes_no_answer(store: Store, start: Start) -> None:
    """Counts wait in memory while the store fails, and none is lost or doubled when it works again."""
    start("split", stages=[1.0])
    environment = Environment(store)

    def fails(*arguments: Any, **named: Any) -> Any:
        raise StoreFails("DynamoDB: InternalServerError")

    works, environment.keeper._store.write = store.write, fails  # type: ignore[method-assign]
    environment.ask(1)
    environment.read()
    environment.ask(2)
    environment.keeper._store.write = works  # type: ignore[method-assign]
    environment.read()
    environment.read()
    assert totals(store).of("next", "answers") == 2


def test_counts_of_each_answer_are_stored_with_it(store: Store, start: Start) -> None:
    """With `counts: answer`, the table has a count before its caller has the answer."""
    start("split", stages=[1.0], counts="answer")
    environment = Environment(store, clock=lambda: 0.0)
    for number in range(3):
        environment.ask(number)
        assert totals(store).of("next", "answers") == number + 1


def test_a_promoted_arm_answers_everything(store: Store, start: Start) -> None:
    """After the promotion, requests without a subject get the winner, too; nothing is counted."""
    start("split", stages=[0.1], subject="field")
    Control(store).promote()
    environment = Environment(store)
    assert {environment.arm(i) for i in range(5)} == {"next"}
    Control(store).stop()
    environment.read()
    assert environment.arm(9) is None


def test_two_experiments_at_once_are_refused(store: Store, start: Start) -> None:
    """A second start names the first one; after a stop it works."""
    start("shadow")
    with pytest.raises(Exception, match="a deployment has one at a time"):
        start("split")
    Control(store).stop()
    start("split")


def test_of_a_promotion_and_a_stop_at_once_one_is_made(store: Store, start: Start) -> None:
    """Both read the same revision: the second write is refused and says what happened."""
    start("split")
    slow, quick = Control(store), Control(store)
    write = store.write

    def overtaken(partition: str, item: Item, deadline: Deadline, replaces: int | None = None) -> bool:
        store.write = write  # type: ignore[method-assign]
        quick.stop()
        return write(partition, item, deadline, replaces)

    store.write = overtaken  # type: ignore[method-assign]
    with pytest.raises(Exception, match="it is now stopped, and this command has no effect"):
        slow.promote()
    run = Control(store).current()
    assert run is not None and run.state == "stopped"


def test_a_change_whose_answer_was_lost_is_recognised(store: Store, start: Start) -> None:
    """A write that was made is reported as made, though the store says that its condition fails."""
    start("split")
    write = store.write

    def twice(partition: str, item: Item, deadline: Deadline, replaces: int | None = None) -> bool:
        write(partition, item, deadline, replaces)
        return write(partition, item, deadline, replaces)

    store.write = twice  # type: ignore[method-assign]
    assert Control(store).promote().state == "promoted"


def test_ids_carry_both_answers_of_a_shadow(store: Store, start: Start) -> None:
    """A label can be counted for both arms, though nothing about the answer is stored."""
    start("shadow")
    environment = Environment(store)
    answer = environment.ask(1)["predictions"][0]["heads"]["first"]
    read = Signer(KEY).read(answer["id"], "")
    assert read is not None and read.trial is not None
    assert (read.trial.arm, read.trial.label, read.trial.is_compared) == ("now", answer["label"], True)


def test_clocks_that_differ_change_no_assignment(store: Store, start: Start) -> None:
    """An environment whose clock is a day late assigns as all others."""
    start("split", stages=[0.5], subject="field")
    late = Environment(store, clock=itertools.count(-86_400).__next__)
    right = Environment(store)
    subjects = [f"s{i}" for i in range(30)]
    assert [late.arm(1, subject=s) for s in subjects] == [right.arm(1, subject=s) for s in subjects]


def test_a_server_reads_although_answers_write(folder: FolderStore, time_of_day: Time) -> None:
    """A thread's reading waits for a write that an answer makes at this moment, and is not left out."""
    environment = Environment(folder)
    Control(folder, time_of_day).start(experiment("split", counts="answer"))
    with environment.keeper._turn:
        reader = threading.Thread(target=environment.keeper.set_up)
        reader.start()
    reader.join()
    assert environment.arm(1) == "next"


@pytest.mark.parametrize("is_running", [True, False], ids=["experiment", "none"])
def test_a_request_of_an_experiment_is_not_rushed(
    folder: FolderStore, monkeypatch: pytest.MonkeyPatch, is_running: bool
) -> None:
    """A rushed answer says little about its arm; other requests for `auto` may be rushed."""
    environment = Environment(folder)
    if is_running:
        arms = [{"name": "now", "head": AUTO}, {"name": "next", "head": AUTO, "min_probability": 0.1}]
        Control(folder).start(experiment("split", arms=arms))
        environment.read()
    may_rush: list[bool] = []
    predict = Predictor.predict

    def note(self: Predictor, texts: Any, heads: Any, use_cache: bool, deadline: Deadline) -> Any:
        may_rush.append(deadline.may_rush)
        return predict(self, texts, heads, use_cache, deadline)

    monkeypatch.setattr(Predictor, "predict", note)
    monkeypatch.setattr(environment.api, "_settings", Settings(overload="rush"))
    heads: dict[str, Any] = {} if is_running else {"heads": [AUTO]}
    environment.ask(**heads)
    assert may_rush == [not is_running]
