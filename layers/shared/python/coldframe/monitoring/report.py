"""Report of the monitor: each model and head, with its drift, its accuracy, and the labels behind it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from operator import add
from typing import Any, TypeAlias

from msgspec import Struct

from coldframe.monitoring.accuracy import (
    Estimate,
    LabelledAnswer,
    RiskBound,
    bound_risk,
    estimate_accuracy,
)
from coldframe.monitoring.drift import ALARM_EVIDENCE, Slot, Week, find_drift
from coldframe.monitoring.reading import Label
from coldframe.monitoring.reference import Reference
from coldframe.monitoring.sketch import Counts, Sketch, distinct

Key: TypeAlias = tuple[str, str]
"""Version of a model, and head."""

_FEW_TEXTS = 100


class Report(Struct, frozen=True):
    """One model and head.

    model: version. start_s, end_s: first and last moment. expected_accuracy: on validation rows, None without
    a reference. risk: from random labels alone. complaints, wrong_complaints: labels that were not drawn at
    random; no other figure rests on them.
    """

    model: str
    head: str
    texts: int
    environments: int
    start_s: float
    end_s: float
    drifted: bool
    weeks: list[Week]
    accuracy: Estimate
    expected_accuracy: float | None
    risk: RiskBound | None
    complaints: int
    wrong_complaints: int
    notes: list[str]


def make_reports(
    sketches: Sequence[Sketch],
    labels: Sequence[Label],
    references: Mapping[Key, Reference],
    baseline: Sequence[Sketch] = (),
    slot: Slot = "hour",
) -> list[Report]:
    """A report of each model and head that answered, in the order of their first answers.

    baseline: sketches of a good time. Where a model and head have some, drift is a shift from these.
    """
    usual = sketches_by_key(baseline, references)
    return [
        _report(key, rows, labels, references.get(key), usual.get(key), slot)
        for key, rows in sketches_by_key(sketches, references).items()
    ]


def sketches_by_key(
    sketches: Iterable[Sketch], references: Mapping[Key, Reference]
) -> dict[Key, list[Sketch]]:
    """Distinct sketches of each model and head. One that has other labels than its model is forged."""
    rows: dict[Key, list[Sketch]] = {}
    for sketch in distinct(sketches):
        key = sketch.model, sketch.head
        reference, same = references.get(key), rows.get(key)
        model = reference.counts if reference else same[0].counts if same else sketch.counts
        if sketch.counts.has_shape(model):
            rows.setdefault(key, []).append(sketch)
    return rows


def _report(
    key: Key,
    sketches: Sequence[Sketch],
    labels: Sequence[Label],
    reference: Reference | None,
    baseline: Sequence[Sketch] | None,
    slot: Slot,
) -> Report:
    counts = _total(sketches)
    accuracy = estimate_accuracy(counts, reference)
    if accuracy is None:
        raise ValueError("A sketch without answers has no report. Leave it out.")
    usual = _total(baseline) if baseline else reference.counts if reference else None
    weeks = find_drift(usual, sketches, slot)
    own = [label for label in labels if (label.model, label.head) == key]
    drawn = [LabelledAnswer(label.probability, label.right) for label in own if label.drawn == "random"]
    complaints = [label for label in own if label.drawn == "complaint"]
    return Report(
        *key,
        texts=counts.texts,
        environments=len({sketch.environment for sketch in sketches}),
        start_s=min(sketch.start_s for sketch in sketches),
        end_s=max(sketch.end_s for sketch in sketches),
        drifted=any(week.drifted for week in weeks),
        weeks=weeks,
        accuracy=accuracy,
        expected_accuracy=_mean(reference.rows.right) if reference else None,
        risk=bound_risk(accuracy.cbpe, drawn) if drawn else None,
        complaints=len(complaints),
        wrong_complaints=sum(not label.right for label in complaints),
        notes=_notes(counts, reference, baseline),
    )


def _total(sketches: Iterable[Sketch]) -> Counts:
    return reduce(add, (sketch.counts for sketch in sketches))


def _mean(values: Sequence[int]) -> float | None:
    return sum(values) / len(values) if values else None


def _notes(counts: Counts, reference: Reference | None, baseline: Sequence[Sketch] | None) -> list[str]:
    notes = []
    if reference is None:
        notes.append("This model has no reference: the accuracy is not corrected. Train the model again.")
    if reference is None and not baseline:
        notes.append(
            "Without a reference, each text is compared with earlier ones. Name a good time: --baseline."
        )
    if counts.texts < _FEW_TEXTS:
        notes.append(f"{counts.texts} texts are few: wait for {_FEW_TEXTS} before you act on these figures.")
    return notes


def text_lines(report: Report) -> Iterator[str]:
    """Lines of a report for people."""
    span = f"{_time(report.start_s)} to {_time(report.end_s)} UTC"
    traffic = f"{report.texts:,} texts, environments: {report.environments}, {span}"
    yield f"{report.model[:19]} {report.head}: {traffic}"
    accuracy, expected = report.accuracy, report.expected_accuracy
    beside = "" if expected is None else f"; {expected:.1%} on validation rows"
    yield f"  accuracy, estimated without labels: {accuracy.best:.1%} ± {accuracy.margin:.1%}{beside}"
    if risk := report.risk:
        interval = f"{1 - risk.high:.1%} to {1 - risk.low:.1%}"
        yield f"  accuracy by {risk.labels:,} random labels: {1 - risk.risk:.1%} (95% interval {interval})"
    if report.complaints:
        wrong = f"{report.wrong_complaints:,} of the answers were wrong; no other figure rests on them"
        yield f"  complaints: {report.complaints:,}; {wrong}"
    for week in report.weeks:
        yield _week_line(week)
    for note in report.notes:
        yield f"  {note}"


def _week_line(week: Week) -> str:
    name = f"week of {_time(week.start_s)[:10]}, {week.texts:,} texts"
    if not week.drifted:
        return f"  {name}: no drift (evidence {week.evidence:.1f}; an alarm needs {ALARM_EVIDENCE:.0f})"
    shifts = [
        f"{shift.quantity} since {_time(shift.since_s)}, distance {shift.distance:.2f}"
        for shift in week.shifts
        if shift.evidence >= ALARM_EVIDENCE
    ]
    return f"  {name}: DRIFT (evidence {week.evidence:.1f}): {'; '.join(shifts)}"


def _time(moment_s: float) -> str:
    return datetime.fromtimestamp(moment_s, UTC).strftime("%Y-%m-%d %H:%M")


def metrics_line(report: Report, namespace: str, moment_s: float | None = None) -> dict[str, Any]:
    """The report in CloudWatch's Embedded Metric Format, without dimensions and by model.

    namespace: of CloudWatch's metrics. moment_s: time of the metrics, in seconds since 1970; None: the last
    sketch's.
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    """
    values = {
        "monitored_texts": report.texts,
        "estimated_accuracy": report.accuracy.best,
        "drift_evidence": max((week.evidence for week in report.weeks), default=0.0),
        "drifted": int(report.drifted),
    }
    if report.risk:
        values |= {"lowest_risk": report.risk.low, "highest_risk": report.risk.high}
    directive = {
        "Namespace": namespace,
        "Dimensions": [[], ["Model"]],
        "Metrics": [{"Name": name, "Unit": "None"} for name in values],
    }
    about = {
        "Timestamp": int(1e3 * (report.end_s if moment_s is None else moment_s)),
        "CloudWatchMetrics": [directive],
    }
    return {"_aws": about, "Model": report.model, "Head": report.head, **values}
