"""Control of an experiment: start, promote, stop, and its counts so far.

Each change is one conditional write: of two changes at once, one is made and the other is refused.
"""

import os
import time

import msgspec
from msgspec import Struct

from coldframe.experiments.document import (
    BadExperiment,
    Experiment,
    Run,
    Step,
    read_run,
)
from coldframe.experiments.stores import COUNTS, CURRENT, DOCUMENT, Item, Store, add_up
from coldframe.experiments.tally import read_counts
from coldframe.timing import Clock, Deadline

PATIENCE_S = 30.0


class StageCounts(Struct):
    """Counts of all environments with one lineup. labels: sums of right labels."""

    lineup: str
    stage: int
    shares: list[float]
    versions: list[str]
    environments: int
    arms: dict[str, dict[str, int]]
    labels: dict[str, int]

    def of(self, arm: str, name: str) -> int:
        """One number of an arm."""
        return self.arms.get(arm, {}).get(name, 0)


class Control:
    """Commands about the one experiment of a store. Raises BadExperiment and StoreFails."""

    def __init__(self, store: Store, now: Clock = time.time, patience_s: float = PATIENCE_S) -> None:
        """now: seconds since 1970. patience_s: limit of one read or write, with its repetitions."""
        self._store = store
        self._now = now
        self._patience_s = patience_s

    def current(self) -> Run | None:
        """The run of the document, active or ended; None without a document that can be read."""
        return self._present()[0]

    def start(self, experiment: Experiment) -> Run:
        """Starts an experiment. Refused while another one is running or promoted."""
        present, revision = self._present()
        if present is not None and present.is_active:
            name, state = present.experiment.name, present.state
            raise BadExperiment(
                f"The experiment {name} is {state}, and a deployment has one at a time."
                " Run `coldframe experiment stop` first."
            )
        run = Run(
            experiment=experiment,
            run=os.urandom(8).hex(),
            key=os.urandom(16).hex(),
            revision=revision + 1,
            steps=[Step(int(self._now()), "running", 0, "started")],
        )
        return self._write(run, revision)

    def promote(self, arm: str = "") -> Run:
        """Gives all requests to an arm. arm: its name; empty: the second one of two."""
        run, revision = self._active("promoted")
        names = [one.name for one in run.experiment.arms]
        if not arm and len(names) > 2:
            raise BadExperiment(
                f"The experiment has {len(names)} arms. Name one with --arm: {', '.join(names)}."
            )
        winner = arm or names[1]
        if winner not in names:
            raise BadExperiment(f"The experiment has no arm of this name. Name one of: {', '.join(names)}.")
        return self._write(
            run.changed(self._now(), "promoted", run.stage, "promoted by hand", winner), revision
        )

    def stop(self) -> Run:
        """Gives all requests to the first arm again."""
        run, revision = self._active("stopped")
        return self._write(run.changed(self._now(), "stopped", run.stage, "stopped by hand"), revision)

    def replace(self, run: Run, changed: Run) -> bool:
        """Replaces a run that nobody has changed meanwhile."""
        deadline = Deadline(self._patience_s)
        item = Item(DOCUMENT, msgspec.json.encode(changed), changed.revision)
        return self._store.write(CURRENT, item, deadline, replaces=run.revision)

    def counts(self, run: Run) -> list[StageCounts]:
        """Counts of a run by stage and versions of models."""
        return read_stages(self._store, run, Deadline(self._patience_s))

    def _present(self) -> tuple[Run | None, int]:
        item = self._store.read(CURRENT, DOCUMENT, Deadline(self._patience_s))
        return (read_run(item.value), item.revision) if item else (None, 0)

    def _active(self, state: str) -> tuple[Run, int]:
        run, revision = self._present()
        if run is None:
            raise BadExperiment("There is no experiment. Run `coldframe experiment start FILE`.")
        if not run.is_active or run.state == state:
            raise BadExperiment(
                f"The experiment {run.experiment.name} is {run.state} already ({run.steps[-1].reason})."
                " Run `coldframe experiment status` to see it."
            )
        return run, revision

    def _write(self, run: Run, revision: int) -> Run:
        """Writes a change; a write whose answer was lost is recognised by its content."""
        item = Item(DOCUMENT, msgspec.json.encode(run), run.revision)
        if self._store.write(CURRENT, item, Deadline(self._patience_s), replaces=revision):
            return run
        present, _ = self._present()
        if present == run:
            return run
        state = "gone" if present is None else present.state
        raise BadExperiment(
            f"The experiment was changed at the same time: it is now {state}, and this command has no effect."
            " Run `coldframe experiment status`, then repeat the command if it is still wanted."
        )


def read_stages(store: Store, run: Run, deadline: Deadline) -> list[StageCounts]:
    """Counts of a run, the earlier stages first; of one stage, the lineup with the most answers last."""
    stages: dict[str, StageCounts] = {}
    for item in store.items(run.run, COUNTS, deadline):
        lineup = item.name.split("/")[1]
        for counts in read_counts([item.value]):
            stage = stages.setdefault(
                lineup, StageCounts(lineup, counts.stage, counts.shares, counts.versions, 0, {}, {})
            )
            stage.environments += 1
            for arm, numbers in counts.arms.items():
                stage.arms[arm] = add_up(stage.arms.get(arm, {}), numbers)
    for lineup, stage in stages.items():
        stage.labels = store.label_counts(run.run, lineup, deadline)
    return sorted(stages.values(), key=lambda stage: (stage.stage, _answers(stage)))


def _answers(stage: StageCounts) -> int:
    return sum(numbers.get("answers", 0) for numbers in stage.arms.values())
