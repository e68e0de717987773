"""An experiment as environments read it: arms, shares, subject and criteria, and the state of its run.

A document that cannot be read means that there is no experiment; nothing here fails a request.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from coldframe.digests import blake2b
from coldframe.errors import ColdframeError

Kind = Literal["shadow", "split", "bandit"]
State = Literal["running", "promoted", "stopped", "sent-back"]
CountMode = Literal["minute", "answer"]
Method = Literal["thompson", "exp3"]

HEADER = "header:"
MOST_STEPS = 50
_NAME = r"^[a-z0-9][a-z0-9._-]{0,39}$"
_SUBJECT = r"^(caller|field|request|header:[a-z0-9-]{1,64})$"

Name = Annotated[str, Meta(pattern=_NAME)]
Share = Annotated[float, Meta(gt=0, le=1)]


class BadExperiment(ColdframeError):
    """An experiment that cannot be started. The text says what to change."""


class Arm(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One way to answer a request.

    model: empty: the deployment's default. head: empty: the model's default. min_probability: below it, the
    arm abstains; None: the model's own.
    """

    name: Name
    model: str = ""
    head: str = ""
    min_probability: Annotated[float, Meta(ge=0, le=1)] | None = None


class Acceptance(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Acceptance criteria of the second arm; null leaves one out.

    alpha: chance of a wrong decision, whatever the number of looks. min_answers: of the second arm, in each
    stage. least_gain: accuracy by feedback minus the first arm's. min_agreement: share of texts with equal
    labels, in a shadow. max_errors: share of failed answers. max_p99_ratio: p99 over the first arm's.
    """

    alpha: Annotated[float, Meta(gt=0, lt=1)] = 0.05
    min_answers: Annotated[int, Meta(ge=1)] = 100
    least_gain: Annotated[float, Meta(ge=-1, le=1)] | None = 0.0
    min_agreement: Annotated[float, Meta(ge=0, le=1)] | None = None
    max_errors: Annotated[float, Meta(ge=0, le=1)] | None = 0.01
    max_p99_ratio: Annotated[float, Meta(gt=0)] | None = None


class Experiment(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Experiment, as its author writes it.

    arms: the first one answers whenever the experiment does not apply.
    subject: all requests of one subject are answered by one arm.
    stages: shares of the second arm, in order; for a shadow, the share of subjects that it answers, too.
    counts: when an environment writes its counts. automatic: stages, or shares, change by
    themselves. method: of a bandit.
    """

    name: Name
    kind: Kind
    arms: Annotated[list[Arm], Meta(min_length=2, max_length=8)]
    subject: Annotated[str, Meta(pattern=_SUBJECT)] = "request"
    stages: Annotated[list[Share], Meta(min_length=1, max_length=20)] = field(default_factory=lambda: [1.0])
    criteria: Acceptance = Acceptance()
    counts: CountMode = "minute"
    automatic: bool = True
    method: Method = "thompson"

    def __post_init__(self) -> None:
        names = [arm.name for arm in self.arms]
        if len(set(names)) < len(names):
            raise ValueError("Two arms have one name. Give each arm a name of its own.")
        if self.kind != "bandit" and len(self.arms) != 2:
            raise ValueError(
                f"A {self.kind} has two arms, found {len(self.arms)}. Use the kind bandit for more."
            )
        if self.kind == "shadow" and self.criteria.max_p99_ratio is not None:
            raise ValueError("A shadow's times are not those of an answer. Leave out max_p99_ratio.")
        if self.kind != "shadow" and self.criteria.min_agreement is not None:
            raise ValueError("Only the arms of a shadow answer the same texts. Leave out min_agreement.")
        if sorted(set(self.stages)) != self.stages:
            raise ValueError("The shares of the stages do not grow. List them from small to large.")


class Step(Struct, frozen=True):
    """One change of a run, and its reason."""

    moment_s: int
    state: State
    stage: int
    reason: str


class Run(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An experiment that was started: the document that environments read.

    run: its name in the store. key: of the hash that assigns subjects. revision: grows with each change.
    winner: answers everything once the run is promoted. shares: of a bandit's arms.
    """

    experiment: Experiment
    run: Annotated[str, Meta(pattern=r"^[0-9a-f]{16}$")]
    key: Annotated[str, Meta(min_length=16)]
    revision: Annotated[int, Meta(ge=1)] = 1
    state: State = "running"
    stage: Annotated[int, Meta(ge=0)] = 0
    winner: str = ""
    shares: list[float] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.stage >= len(self.experiment.stages):
            raise ValueError("The run is at a stage that its experiment does not have.")
        if self.shares and (
            len(self.shares) != len(self.experiment.arms)
            or not math.isclose(sum(self.shares), 1, abs_tol=1e-6)
        ):
            raise ValueError("The shares do not fit the arms.")

    @property
    def share(self) -> float:
        """The second arm's share at the present stage."""
        return self.experiment.stages[self.stage]

    @property
    def is_active(self) -> bool:
        """Whether any request is assigned."""
        return self.state in ("running", "promoted")

    def arm_shares(self) -> list[float]:
        """The share of each arm among the subjects that it answers; a shadow answers nobody."""
        arms = self.experiment.arms
        if self.state == "promoted":
            return [float(arm.name == self.winner) for arm in arms]
        if self.state != "running":
            return [1.0, *(0.0 for _ in arms[1:])]
        if self.experiment.kind == "bandit":
            return self.shares or [1 / len(arms)] * len(arms)
        return [1 - self.share, self.share]

    def changed(self, moment_s: float, state: State, stage: int, reason: str, winner: str = "") -> "Run":
        """The next revision of this run."""
        step = Step(int(moment_s), state, stage, reason)
        return msgspec.structs.replace(
            self,
            revision=self.revision + 1,
            state=state,
            stage=stage,
            winner=winner or self.winner,
            steps=[*self.steps, step][-MOST_STEPS:],
        )


_EXPERIMENTS = msgspec.json.Decoder(Experiment)
_RUNS = msgspec.json.Decoder(Run)


def read_experiment(content: bytes) -> Experiment:
    """The experiment of a file. Raises BadExperiment."""
    try:
        return _EXPERIMENTS.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise BadExperiment(f"The experiment cannot be used. {exc}. Correct the file.") from exc


def read_run(content: bytes) -> Run | None:
    """The run of a document; None for a document that cannot be read."""
    try:
        return _RUNS.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def lineup_of(run: str, stage: int, versions: Sequence[str]) -> str:
    """Name of counts that may be added up: one run and stage, and one version of each arm's model.

    An environment with other models, or at another stage, counts elsewhere.
    """
    digest = blake2b(digest_size=8)
    for part in (run, str(stage), *versions):
        digest.update(len(part).to_bytes(4, "big") + part.encode())
    return digest.hexdigest()
