"""Objectives: the cheapest arm that reaches a stated accuracy, time and price, and the reason.

An arm is a head of a served model, `auto` included. Accuracy is the point estimate of the model's report, on
its test split; of a head with several forms of texts, the lowest. Times are measured here: the encoder's
speed, and the tokens of this request's texts. Imported only where a request states an objective. Source of
the idea: INFaaS, Romero et al. 2021.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import UnsetType

from coldframe.errors import Invalid
from coldframe.model.files import AUTO, ENSEMBLE
from coldframe.model.tokenizer import normalise_all
from coldframe.pipeline.predictor import Predictor
from coldframe.schemas import Choice, Objective, PredictRequest
from coldframe.timing import Deadline

_TEXTS = 1e6
_HOUR_MS = 3.6e6


class Arm(NamedTuple):
    """A head of a model. accuracy: share of right answers on the test split.

    text_ms: time for one of the request's texts, on average. request_ms: time for all of them.
    """

    predictor: Predictor
    head: str
    accuracy: float
    text_ms: float
    request_ms: float


def check_objective(body: PredictRequest, objective: Objective) -> None:
    """Raises Invalid for an objective that says nothing, or that another field contradicts."""
    if not isinstance(body.heads, UnsetType):
        raise Invalid("Found both `heads` and `objective`, expected one of them. Leave out `heads`.")
    if not isinstance(body.budget_ms, UnsetType):
        raise Invalid("Found `budget_ms` beside `objective`. Write it into the objective.")
    if all(isinstance(bound, UnsetType) for bound in _bounds(objective)):
        raise Invalid("The objective is empty. Send `accuracy`, `budget_ms` or `usd_per_million` in it.")


def choose_arm(
    predictors: Sequence[Predictor],
    texts: Sequence[str],
    objective: Objective,
    usd_per_hour: float,
    deadline: Deadline,
) -> tuple[Arm, Choice]:
    """The cheapest arm that reaches the objective; of equally cheap ones the most accurate, then the first.

    Raises Invalid where no arm does, naming the best one, and the errors of `Deadline.check`.
    """
    arms = [arm for predictor in predictors for arm in arms_of(predictor, texts, deadline)]
    reaching = [arm for arm in arms if reaches(arm, objective, usd_per_hour)]
    if not arms:
        raise Invalid("No served model has a report of its accuracy. Send `heads` in place of `objective`.")
    if not reaching:
        best = max(arms, key=lambda arm: (arm.accuracy, -arm.text_ms))
        raise Invalid(
            f"No head reaches the objective. The best is {_named(best, usd_per_hour)}. Ask for less."
        )
    chosen = min(reaching, key=lambda arm: (arm.text_ms, -arm.accuracy))
    reason = (
        f"{len(reaching)} of {len(arms)} heads reach the objective; this is the cheapest, then most accurate"
    )
    return chosen, Choice(
        model=chosen.predictor.manifest.name,
        head=chosen.head,
        accuracy=chosen.accuracy,
        expected_ms=round(chosen.request_ms, 3),
        usd_per_million=round(usd_per_million(chosen, usd_per_hour), 4),
        because=reason,
    )


def arms_of(predictor: Predictor, texts: Sequence[str], deadline: Deadline) -> Iterator[Arm]:
    """The arms of a model with a measured accuracy, `auto` first."""
    manifest = predictor.manifest
    windows = predictor.tokenizer.cut(normalise_all(texts, deadline), deadline)
    tokens = sum(len(row) for text in windows for row in text)
    encode_ms = predictor.model.encoder.expected_s(tokens) * 1e3
    if figures := manifest.figures:
        auto_ms = encode_ms * (1 - figures.estimator_share)
        yield Arm(predictor, AUTO, figures.accuracy, auto_ms / len(texts), auto_ms)
    for head, facts in manifest.named_heads.items():
        if facts.accuracy:
            accuracy = min(facts.accuracy.values())  # of the forms of its texts
            head_ms = _members_ms(predictor, len(texts)) if head == ENSEMBLE else 0.0
            yield Arm(predictor, head, accuracy, (encode_ms + head_ms) / len(texts), encode_ms + head_ms)


def _members_ms(predictor: Predictor, texts: int) -> float:
    """Time of the members of `ensemble` after the encoder. Other heads' own time is not counted."""
    weights = predictor.manifest.ensemble.weights if predictor.manifest.ensemble else {}
    heads = dict.fromkeys(predictor.manifest.estimator.partner if name == AUTO else name for name in weights)
    return sum(predictor.model.heads.expected_s(head, texts) for head in heads) * 1e3


def reaches(arm: Arm, objective: Objective, usd_per_hour: float) -> bool:
    """Whether an arm keeps every bound of the objective."""
    accuracy, budget_ms, usd = _bounds(objective)
    return (
        (isinstance(accuracy, UnsetType) or arm.accuracy >= accuracy)
        and (isinstance(budget_ms, UnsetType) or arm.request_ms <= budget_ms)
        and (isinstance(usd, UnsetType) or usd_per_million(arm, usd_per_hour) <= usd)
    )


def usd_per_million(arm: Arm, usd_per_hour: float) -> float:
    """Price of a million texts like the request's, while this environment works."""
    return arm.text_ms * _TEXTS * usd_per_hour / _HOUR_MS


def _bounds(
    objective: Objective,
) -> tuple[float | UnsetType, int | UnsetType, float | UnsetType]:
    return objective.accuracy, objective.budget_ms, objective.usd_per_million


def _named(arm: Arm, usd_per_hour: float) -> str:
    return (
        f"`{arm.head}` of the model `{arm.predictor.manifest.name}`: accuracy {arm.accuracy:.3f},"
        f" {arm.request_ms:.1f} ms, {usd_per_million(arm, usd_per_hour):.3g} USD per million texts"
    )
