"""Arms as an environment serves them: a predictor, a head and a threshold for each."""

from typing import NamedTuple

from msgspec import Struct

from coldframe.errors import BundleError
from coldframe.experiments.document import Arm, Run, lineup_of
from coldframe.pipeline.models import Models
from coldframe.pipeline.predictor import Predictor


class ServedArm(NamedTuple):
    """An arm. least: probability below which it abstains; None: the model's own."""

    name: str
    predictor: Predictor
    head: str
    least: float | None


class Lineup(Struct, frozen=True):
    """A run with the arms of this environment.

    name: of the counts that its answers belong to; versions: of the arms' models.
    """

    run: Run
    name: str
    arms: list[ServedArm]
    versions: list[str]
    shares: list[float]

    @property
    def has_thresholds(self) -> bool:
        """Whether an arm sets a threshold of its own."""
        return any(arm.least is not None for arm in self.arms)


def serve_arms(run: Run, models: Models) -> Lineup | str:
    """The run with this environment's models; or the reason why it cannot be served here."""
    arms = []
    for arm in run.experiment.arms:
        served = _serve(arm, models)
        if isinstance(served, str):
            return served
        arms.append(served)
    versions = [arm.predictor.manifest.version for arm in arms]
    name = lineup_of(run.run, run.stage, versions)
    return Lineup(run, name, arms, versions, run.arm_shares())


def _serve(arm: Arm, models: Models) -> ServedArm | str:
    if arm.model and arm.model not in models.names:
        return f"The arm {arm.name} names the model {arm.model}, which is not served here."
    try:
        predictor = models.get(arm.model) if arm.model else models.default
    except BundleError as exc:
        return f"The model of the arm {arm.name} cannot be used: {type(exc).__name__}."
    head = arm.head or predictor.manifest.default_head
    if head not in predictor.min_probability:
        return f"The arm {arm.name} names the head {head}, which its model does not have."
    return ServedArm(arm.name, predictor, head, arm.min_probability)
