"""Decisions about a run: by one environment a minute, from the counts of all."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from coldframe.experiments.control import Control
from coldframe.experiments.document import Run
from coldframe.experiments.judging import Judge, decision_on, knowledge_of, latest_models
from coldframe.experiments.labels import LabelCounter
from coldframe.experiments.stores import COUNTS, FolderStore, Item
from coldframe.feedback.ids import Signer
from coldframe.feedback.marks import Marker
from coldframe.timing import NO_DEADLINE
from tests.conftest import served, tiny_predictor
from tests.unit.coldframe.experiments.conftest import KEY, Environment, Time, experiment, other_model, totals

NO_CRITERION_BUT_ERRORS = {"least_gain": None, "max_errors": 0.5, "min_answers": 20}


class Trial:
    """An environment whose minute passes when a test says so."""

    def __init__(self, store: FolderStore, now: Time, kind: str = "split", **fields: Any) -> None:
        self.store, self.now = store, now
        self.control = Control(store, now)
        self.control.start(experiment(kind, **fields))
        self.environment = Environment(store, judge=Judge(store, now))
        self.environment.api._marker = Marker(Signer(KEY), 1.0, now)
        self.sent = 0

    def answer(self, requests: int, **fields: Any) -> list[dict[str, Any]]:
        """Answers to new texts."""
        self.sent += requests
        return [self.environment.ask(self.sent + i, **fields) for i in range(requests)]

    def minute(self) -> Run:
        """The run after a minute with a decision, which is read at the next one."""
        self.now.now_s += 61
        self.environment.read()
        self.environment.read()
        run = self.control.current()
        assert run is not None
        return run

    def label(self, answer: dict[str, Any], is_right: bool) -> None:
        """Sends the right label of an answer: its own, or another one."""
        head = next(iter(answer["predictions"][0]["heads"].values()))
        labels = self.environment.models.default.manifest.labels
        right = head["label"] if is_right else next(name for name in labels if name != head["label"])
        read = Signer(KEY).read(head["id"], "")
        assert read is not None
        LabelCounter(self.store).add(read, right)


def test_stages_advance_when_the_criteria_hold(folder: FolderStore, time_of_day: Time) -> None:
    """With enough answers and few errors, the share grows stage by stage to all requests."""
    trial = Trial(folder, time_of_day, stages=[0.5, 1.0], criteria=NO_CRITERION_BUT_ERRORS)
    assert trial.minute().stage == 0  # too few answers
    trial.answer(80)
    run = trial.minute()
    assert (run.state, run.stage) == ("running", 1)
    assert "advances to 100 %" in run.steps[-1].reason
    trial.answer(40)
    run = trial.minute()
    assert (run.state, run.winner) == ("promoted", "next")
    assert trial.environment.arm(10_000) == "next"


def test_a_failed_criterion_sends_the_traffic_back(folder: FolderStore, time_of_day: Time) -> None:
    """An arm that is often wrong loses its traffic by itself; the run says why."""
    trial = Trial(folder, time_of_day, stages=[0.5], criteria={"min_answers": 1000})
    for answer in trial.answer(120):
        trial.label(answer, is_right=answer["experiment"]["arm"] == "now")
    run = trial.minute()
    assert run.state == "sent-back"
    assert "sent back: its accuracy minus the baseline's is" in run.steps[-1].reason
    assert trial.environment.arm(10_000) is None


def test_a_breaking_arm_is_sent_back(
    folder: FolderStore, time_of_day: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors alone send an arm back, before any label has come."""
    arms = [{"name": "now"}, {"name": "next", "model": "retrained"}]
    trial = Trial(folder, time_of_day, arms=arms, stages=[0.5])
    broken = other_model()
    monkeypatch.setattr(broken, "predict", lambda *_: 1 / 0)
    trial.environment = Environment(folder, served(tiny_predictor(), broken), Judge(folder, time_of_day))
    trial.answer(60)
    run = trial.minute()
    assert run.state == "sent-back" and "of its answers fail" in run.steps[-1].reason


def test_pairs_of_a_shadow_are_compared(folder: FolderStore, time_of_day: Time) -> None:
    """A shadow's pairs, agreement and labels reach the sentence about it."""
    trial = Trial(folder, time_of_day, "shadow")
    for answer in trial.answer(30):
        trial.label(answer, is_right=True)
    run = trial.minute()
    stages = latest_models(run, trial.control.counts(run))
    assert "not yet known" in knowledge_of(run, stages)
    assert totals(folder).labels == {"now/right": 30, "ties": 30}


def test_labels_of_one_arm_change_no_stage(folder: FolderStore, time_of_day: Time) -> None:
    """Labels for the second arm alone leave its share as it is, and the sentence says why."""
    criteria = {"max_errors": None, "min_answers": 1}
    trial = Trial(folder, time_of_day, stages=[0.5, 1.0], criteria=criteria)
    for answer in trial.answer(60):
        if answer["experiment"]["arm"] == "next":
            trial.label(answer, is_right=True)
    run = trial.minute()
    assert run.stage == 0
    stages = latest_models(run, trial.control.counts(run))
    assert "has 100 % of the labels instead of 50 %" in knowledge_of(run, stages)
    assert "until labels are sent for the drawn answers" in decision_on(run, stages).reason


def test_one_environment_decides_in_a_minute(folder: FolderStore, time_of_day: Time) -> None:
    """A second environment leaves the decision to the first one, and a wrong clock blocks nobody for long."""
    trial = Trial(folder, time_of_day, stages=[0.5, 1.0], criteria=NO_CRITERION_BUT_ERRORS)
    judge, lineup = Judge(folder, time_of_day), trial.environment.keeper.lineup
    assert lineup is not None
    ahead = Time()
    ahead.now_s += 86_400  # its clock is a day ahead
    assert Judge(folder, ahead)._has_turn(lineup.run, NO_DEADLINE)
    assert judge._has_turn(lineup.run, NO_DEADLINE)
    assert not judge._has_turn(lineup.run, NO_DEADLINE)


def test_a_command_that_comes_first_wins_over_a_decision(folder: FolderStore, time_of_day: Time) -> None:
    """An environment that decides about a document which a person has changed changes nothing."""
    trial = Trial(folder, time_of_day, stages=[0.5, 1.0], criteria=NO_CRITERION_BUT_ERRORS)
    trial.answer(80)
    trial.environment.read()
    lineup = trial.environment.keeper.lineup
    assert lineup is not None
    trial.control.stop()
    time_of_day.now_s += 61
    Judge(folder, time_of_day)(lineup, NO_DEADLINE)
    run = trial.control.current()
    assert run is not None and run.state == "stopped"


def test_a_person_decides_where_the_experiment_says_so(folder: FolderStore, time_of_day: Time) -> None:
    """Without `automatic`, stages stay as they are, and the decision is only shown."""
    trial = Trial(folder, time_of_day, stages=[0.5, 1.0], criteria=NO_CRITERION_BUT_ERRORS, automatic=False)
    trial.answer(80)
    run = trial.minute()
    assert run.stage == 0
    stages = latest_models(run, trial.control.counts(run))
    assert decision_on(run, stages).action == "advance"


def test_damaged_counts_are_left_out(folder: FolderStore, time_of_day: Time) -> None:
    """An item that is no count changes no decision."""
    trial = Trial(folder, time_of_day, stages=[0.5], criteria=NO_CRITERION_BUT_ERRORS)
    run = trial.control.current()
    assert run is not None
    folder.write(run.run, Item(f"{COUNTS}a/b", b'"text"', 1), NO_DEADLINE)
    assert trial.minute().state == "running"


def test_only_labels_that_chance_chose_count(folder: FolderStore, time_of_day: Time) -> None:
    """A complaint about an answer says nothing about the arm that nobody saw."""
    trial = Trial(folder, time_of_day, "shadow")
    (answer,) = trial.answer(1)
    head = next(iter(answer["predictions"][0]["heads"].values()))
    read = Signer(KEY).read(head["id"], "")
    assert read is not None
    LabelCounter(folder).add(msgspec.structs.replace(read, is_drawn=False), head["label"])
    trial.minute()
    assert totals(folder).labels == {}


@pytest.mark.parametrize("method", ["thompson", "exp3"])
def test_a_bandit_s_shares_follow_the_labels(folder: FolderStore, time_of_day: Time, method: str) -> None:
    """The arm that is right gets nearly all requests, though its labels come late and twice."""
    trial = Trial(folder, time_of_day, "bandit", method=method)
    late = trial.answer(60)
    assert trial.minute().arm_shares() == [0.5, 0.5]  # no label has come
    for answer in late * 2:  # each label is sent twice
        trial.label(answer, is_right=answer["experiment"]["arm"] == "next")
    trial.answer(1)
    shares = trial.minute().arm_shares()
    assert shares[1] > 0.9 and shares[0] >= 0.02 - 1e-9
    assert sum(totals(folder).labels[f"{arm}"] for arm in ("now/wrong", "next/right")) == 60


def test_a_bandit_forgets(folder: FolderStore, time_of_day: Time) -> None:
    """Weeks later, old labels leave the shares nearly even."""
    trial = Trial(folder, time_of_day, "bandit")
    for answer in trial.answer(60):
        trial.label(answer, is_right=answer["experiment"]["arm"] == "next")
    trial.answer(1)
    before = trial.minute().arm_shares()
    time_of_day.now_s += 40 * 86_400
    trial.answer(1)
    assert abs(trial.minute().arm_shares()[0] - 0.5) < 0.05 < abs(before[0] - 0.5)
