"""Report on a run, for people: arms with their counts and intervals, the decision, and one sentence."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from coldframe.experiments.control import Control, StageCounts
from coldframe.experiments.document import Run, Step
from coldframe.experiments.evidence import share_of
from coldframe.experiments.judging import decision_on, knowledge_of, latest_models
from coldframe.experiments.labels import RIGHT, WRONG
from coldframe.experiments.tally import quantile_ms
from coldframe.timing import time_of_day

_NONE = "No environment has counted an answer yet. Environments read an experiment within a minute."
_COLUMNS = ("arm", "share", "answers", "errors", "abstained", "skipped", "p99 ms", "accuracy by feedback")


class ArmReport(Struct, frozen=True):
    """Counts of an arm at the present stage.

    share: of the requests; a shadow answers its share beside the first arm. skipped: texts that a shadow had
    no time for. p99_ms: of computed answers. right: of `labelled` answers; accuracy_interval: holds at every
    look.
    """

    name: str
    share: float
    answers: int
    errors: int
    abstained: int
    skipped: int
    without_subject: int
    p99_ms: float | None
    right: int
    labelled: int
    accuracy_interval: tuple[float, float] | None


class Report(Struct, frozen=True):
    """A run. sentence: what is known. decision: what the criteria say now. steps: its changes so far."""

    experiment: str
    kind: str
    run: str
    state: str
    stage: int
    stages: list[float]
    environments: int
    arms: list[ArmReport]
    agreement: float | None
    sentence: str
    decision: str
    steps: list[Step]


def present_report(control: Control) -> Report | None:
    """The report on a store's experiment, active or ended; None without one. Raises StoreFails."""
    run = control.current()
    return None if run is None else report_on(run, control.counts(run))


def report_on(run: Run, counts: Sequence[StageCounts]) -> Report:
    """The report. counts: of all stages and models."""
    stages = latest_models(run, counts)
    present = next((stage for stage in stages if stage.stage == run.stage), None)
    shares = _shares(run)
    arms = [
        _arm(run, arm.name, share, present) for arm, share in zip(run.experiment.arms, shares, strict=True)
    ]
    compared = present.of(run.experiment.arms[1].name, "compared") if present else 0
    agreed = present.of(run.experiment.arms[1].name, "agreed") if present else 0
    is_decided = run.experiment.kind != "bandit" and present is not None
    return Report(
        experiment=run.experiment.name,
        kind=run.experiment.kind,
        run=run.run,
        state=run.state,
        stage=run.stage,
        stages=run.experiment.stages,
        environments=present.environments if present else 0,
        arms=arms,
        agreement=agreed / compared if compared else None,
        sentence=_sentence(run, stages, shares) if present else _NONE,
        decision=decision_on(run, stages).reason if is_decided and run.state == "running" else "",
        steps=run.steps,
    )


def text_lines(report: Report) -> Iterator[str]:
    """The report in lines."""
    place = f"stage {report.stage + 1} of {len(report.stages)}"
    yield f"{report.experiment} ({report.kind}) is {report.state} at {place}."
    yield f"{report.environments} environments have counted answers of this stage."
    yield ""
    rows = [_COLUMNS, *(_cells(arm) for arm in report.arms)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield ""
    if report.agreement is not None:
        yield f"The arms agree on {100 * report.agreement:.1f} % of the texts that both answered."
    if missing := sum(arm.without_subject for arm in report.arms):
        yield f"{missing:,} requests had no subject, and were answered outside of the experiment."
    yield report.sentence
    if report.decision and report.decision != report.sentence:
        yield report.decision
    for step in report.steps:
        yield f"{time_of_day(step.moment_s)[:19]}Z  {step.state}, stage {step.stage + 1}: {step.reason}"


def _shares(run: Run) -> list[float]:
    """Share of the requests that each arm answers. A shadow answers beside the first arm."""
    is_shadow = run.experiment.kind == "shadow" and run.state == "running"
    return [1.0, run.share] if is_shadow else run.arm_shares()


def _sentence(run: Run, stages: Sequence[StageCounts], shares: Sequence[float]) -> str:
    if run.experiment.kind != "bandit":
        return knowledge_of(run, stages)
    share, name = max(zip(shares, (arm.name for arm in run.experiment.arms), strict=True))
    return f"The arm {name} has the largest share, {100 * share:.0f} %, by the labels so far."


def _cells(arm: ArmReport) -> tuple[str, ...]:
    interval = ""
    if arm.accuracy_interval is not None:
        low, high = arm.accuracy_interval
        interval = f"{arm.right:,} of {arm.labelled:,} ({100 * low:.1f} to {100 * high:.1f} %)"
    return (
        arm.name,
        f"{100 * arm.share:.4g} %",
        f"{arm.answers:,}",
        f"{arm.errors:,}",
        f"{arm.abstained:,}",
        f"{arm.skipped:,}",
        "" if arm.p99_ms is None else f"{arm.p99_ms:.3g}",
        interval,
    )


def _arm(run: Run, name: str, share: float, present: StageCounts | None) -> ArmReport:
    numbers = {} if present is None else present.arms.get(name, {})
    labels = {} if present is None else present.labels
    right, wrong = labels.get(f"{name}/{RIGHT}", 0), labels.get(f"{name}/{WRONG}", 0)
    alpha = run.experiment.criteria.alpha
    interval = share_of(right, wrong).interval(alpha) if right + wrong else None
    return ArmReport(
        name=name,
        share=share,
        answers=numbers.get("answers", 0) - numbers.get("skipped", 0),
        errors=numbers.get("errors", 0),
        abstained=numbers.get("abstained", 0),
        skipped=numbers.get("skipped", 0),
        without_subject=numbers.get("without_subject", 0),
        p99_ms=quantile_ms(numbers, 0.99),
        right=right,
        labelled=right + wrong,
        accuracy_interval=interval and (interval.low, interval.high),
    )
