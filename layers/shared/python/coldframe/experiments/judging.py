"""Decisions of the environments about a run: one of them decides each minute, by the counts of all.

The change is one conditional write, so a person's command that comes first wins.
"""

from collections.abc import Mapping, Sequence

import msgspec

from coldframe.experiments.arms import Lineup
from coldframe.experiments.bandit import Bandit, Method
from coldframe.experiments.control import StageCounts, read_stages
from coldframe.experiments.criteria import ArmCounts, Counts, Criteria
from coldframe.experiments.criteria import StageCounts as Stage
from coldframe.experiments.decision import Action, Decision, decide, status
from coldframe.experiments.document import Run
from coldframe.experiments.evidence import PairCounts
from coldframe.experiments.labels import GAINED, LOST, PERIOD_S, RIGHT, TIES, WRONG, read_rewards
from coldframe.experiments.stores import CURRENT, DOCUMENT, JUDGE, Item, Store
from coldframe.experiments.tally import times_of
from coldframe.timing import Clock, Deadline

_EVERY_S = 60
_LEAST_CHANGE = 0.005  # of a share, below which nothing is written
_FUTURE_S = 300
"""Another environment's clock may be this far ahead; a moment later than that is a wrong clock's."""


class Judge:
    """Decides about the run of a lineup, if no other environment has done so in the last minute.

    now: seconds since 1970. Raises StoreFails.
    """

    def __init__(self, store: Store, now: Clock) -> None:
        self._store = store
        self._now = now

    def __call__(self, lineup: Lineup, deadline: Deadline) -> None:
        """Reads the counts, and writes the next stage or the way back where the criteria say so."""
        run = lineup.run
        if not run.experiment.automatic or not self._has_turn(run, deadline):
            return
        if run.experiment.kind == "bandit":
            labels = self._store.label_counts(run.run, lineup.name, deadline)
            changed = with_shares(run, labels, self._now())
        else:
            stages = read_stages(self._store, run, deadline)
            decision = decision_on(run, same_models(run, stages, lineup.versions))
            changed = _changed(run, decision, self._now())
        if changed is not None:
            item = Item(DOCUMENT, msgspec.json.encode(changed), changed.revision)
            self._store.write(CURRENT, item, deadline, replaces=run.revision)

    def _has_turn(self, run: Run, deadline: Deadline) -> bool:
        """Whether this environment decides in this minute: the first one that writes so."""
        last, now_s = self._store.read(run.run, JUDGE, deadline), int(self._now())
        if last is not None and now_s - _EVERY_S < int(last.value) < now_s + _FUTURE_S:
            return False
        revision = last.revision if last else 0
        item = Item(JUDGE, str(now_s).encode(), revision + 1)
        return self._store.write(run.run, item, deadline, replaces=revision)


def with_shares(run: Run, labels: Mapping[str, int], now_s: float) -> Run | None:
    """The run with the shares that a bandit's rewards ask for; None where they are much the same.

    labels: sums of the labels' counts.
    """
    names = [arm.name for arm in run.experiment.arms]
    rewards = read_rewards(labels, names)
    bandit = Bandit(Method(run.experiment.method))
    shares = bandit.shares(rewards, len(names), int(now_s) // PERIOD_S)
    pairs = zip(shares, run.arm_shares(), strict=True)
    if all(abs(share - present) < _LEAST_CHANGE for share, present in pairs):
        return None
    return msgspec.structs.replace(run, revision=run.revision + 1, shares=shares)


def same_models(run: Run, stages: Sequence[StageCounts], versions: Sequence[str]) -> list[StageCounts]:
    """Counts of the stages up to the present one, by environments with these versions of the models."""
    return [stage for stage in stages if stage.versions == versions and stage.stage <= run.stage]


def latest_models(run: Run, stages: Sequence[StageCounts]) -> list[StageCounts]:
    """Counts by environments with the models that gave the most answers at the present stage."""
    present = [stage for stage in stages if stage.stage == run.stage] or list(stages)
    return same_models(run, stages, present[-1].versions) if present else []


def decision_on(run: Run, stages: Sequence[StageCounts]) -> Decision:
    """The decision about the second arm."""
    criteria = Criteria(**msgspec.structs.asdict(run.experiment.criteria))
    shares = run.experiment.stages
    return decide(criteria, counts_of(run, stages), shares)


def knowledge_of(run: Run, stages: Sequence[StageCounts]) -> str:
    """Knowledge about the second arm in one sentence."""
    return status(counts_of(run, stages), run.experiment.criteria.alpha)


def counts_of(run: Run, stages: Sequence[StageCounts]) -> Counts:
    """Counts in the form of the statistics. stages: with one set of models."""
    by_stage = {stage.stage: stage for stage in stages}
    parts = [_stage(run, number, by_stage.get(number)) for number in range(run.stage + 1)]
    if run.experiment.kind != "shadow":
        return Counts(parts)
    labels = [stage.labels for stage in stages]
    pairs = PairCounts(*(sum(one.get(name, 0) for one in labels) for name in (GAINED, LOST, TIES)))
    shadow = run.experiment.arms[1].name
    compared, agreed = (sum(stage.of(shadow, name) for stage in stages) for name in ("compared", "agreed"))
    return Counts(parts, pairs, compared, agreed)


def _stage(run: Run, number: int, stage: StageCounts | None) -> Stage:
    baseline, candidate = (_arm(run, arm.name, stage) for arm in run.experiment.arms)
    return Stage(run.experiment.stages[number], baseline, candidate)


def _arm(run: Run, arm: str, stage: StageCounts | None) -> ArmCounts:
    if stage is None:
        return ArmCounts()
    numbers: Mapping[str, int] = stage.arms.get(arm, {})
    return ArmCounts(
        answers=numbers.get("answers", 0) - numbers.get("skipped", 0),
        errors=numbers.get("errors", 0),
        right=stage.labels.get(f"{arm}/{RIGHT}", 0),
        wrong=stage.labels.get(f"{arm}/{WRONG}", 0),
        times=times_of(numbers),
        subjects=numbers.get("subjects", 0),
    )


def _changed(run: Run, decision: Decision, now_s: float) -> Run | None:
    """The run after a decision; None if it stays."""
    if decision.action is Action.SEND_BACK:
        return run.changed(now_s, "sent-back", run.stage, decision.reason)
    if decision.action is Action.ADVANCE:
        return run.changed(now_s, "running", run.stage + 1, decision.reason)
    if decision.action is Action.FINISH and run.experiment.kind == "split":
        return run.changed(now_s, "promoted", run.stage, decision.reason, run.experiment.arms[1].name)
    return None
