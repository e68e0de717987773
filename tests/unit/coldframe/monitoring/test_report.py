"""The monitor's report: what it reads, and what it says of each model and head."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from coldframe.monitoring.reading import Label, read_labels, read_sketches
from coldframe.monitoring.recorder import Answer, count_answer
from coldframe.monitoring.reference import Reference, load_reference, make_reference, write_reference
from coldframe.monitoring.report import Report, make_reports, metrics_line, text_lines
from coldframe.monitoring.sketch import Counts, Sketch, empty_counts

LABELS = ["a", "b", "c"]
DAY_S = 86_400.0
DICE = random.Random(1)


def counts_of(number: int, probability: float) -> Counts:
    """Counts over answers that differ in label, length and score."""
    counts = empty_counts(3)
    for _ in range(number):
        count_answer(counts, answer(probability), 3, None)
    return counts


def answer(probability: float) -> Answer:
    return Answer(DICE.randrange(3), probability, DICE.randrange(20, 70), 0, DICE.random())


def sketch(model: str, sequence: int, counts: Counts, environment: str = "e", day: float = 0.0) -> Sketch:
    end_s = (day + sequence / 24) * DAY_S
    return Sketch(model, "auto", environment, sequence, end_s - 60, end_s, counts)


def reference(model: str, probability: float = 0.9) -> Reference:
    rows = ((row := answer(probability), (row.label + (text % 10 == 0)) % 3) for text in range(600))
    return replace_model(make_reference("auto", LABELS, "sha256:encoder", 384, rows), model)


def replace_model(one: Reference, model: str) -> Reference:
    return Reference(model, one.head, one.labels, one.counts, one.rows)


QUIET = [sketch("new", number, counts_of(50, 0.9)) for number in range(1, 25)]
SHIFTED = [sketch("new", number, counts_of(50, 0.4), environment="g", day=1) for number in range(1, 13)]


def reports_of(sketches: list[Sketch], *labels: Label) -> dict[str, Report]:
    key = ("new", "auto")
    return {report.model: report for report in make_reports(sketches, labels, {key: reference("new")})}


def test_a_shift_is_reported_with_its_start() -> None:
    """The report names the drifted quantity, its start, and an estimate of the accuracy."""
    quiet, shifted = reports_of(QUIET)["new"], reports_of([*QUIET, *SHIFTED])["new"]
    assert (quiet.drifted, shifted.drifted) == (False, True)
    assert quiet.accuracy.best == pytest.approx(0.9, abs=0.01)
    assert quiet.expected_accuracy == pytest.approx(0.9, abs=0.01)
    assert shifted.accuracy.best < 0.8
    assert "DRIFT" in "\n".join(text_lines(shifted))
    assert "confidence since 1970-01-02 0" in "\n".join(text_lines(shifted))


def test_two_versions_behind_one_alias_are_judged_apart() -> None:
    """Each version has its own report, also when a new model comes in the middle of a week."""
    old = [sketch("old", number, counts_of(50, 0.6), environment="f") for number in range(1, 25)]
    reports = reports_of([*QUIET, *old])
    assert {model: report.texts for model, report in reports.items()} == {"new": 1200, "old": 1200}
    assert not any(report.drifted for report in reports.values())
    assert reports["old"].expected_accuracy is None
    assert any("no reference" in note for note in reports["old"].notes)


def test_no_traffic_and_ten_texts() -> None:
    """Without sketches there is no report; ten texts have one that says that they are few."""
    assert make_reports([], [], {}) == []
    report = reports_of([sketch("new", 1, counts_of(10, 0.4))])["new"]
    assert not report.drifted
    assert report.notes == ["10 texts are few: wait for 100 before you act on these figures."]


def test_a_baseline_takes_the_place_of_the_reference() -> None:
    """Texts like those of the baseline are no drift, even if training had others."""
    key = ("new", "auto")
    baseline = [replace(one, environment="before") for one in SHIFTED]
    (report,) = make_reports(SHIFTED, [], {key: reference("new")}, baseline)
    assert not report.drifted
    (report,) = make_reports(SHIFTED, [], {key: reference("new")})
    assert report.drifted


def test_complaints_stay_apart_from_random_labels() -> None:
    """Only random labels bound the risk; complaints are counted, and change no other figure."""
    drawn = [Label("new", "auto", 0.9, number % 10 > 0, "random") for number in range(100)]
    complaints = [Label("new", "auto", 0.9, False, "complaint") for _ in range(50)]
    others = [Label("old", "auto", 0.9, False, "random") for _ in range(50)]
    report = reports_of(QUIET, *drawn, *complaints, *others)["new"]
    bare = reports_of(QUIET, *drawn)["new"]
    assert report.risk == bare.risk
    assert report.risk is not None
    assert report.risk.labels == 100
    assert report.risk.low < 0.1 < report.risk.high
    assert (report.complaints, report.wrong_complaints) == (50, 50)
    assert reports_of(QUIET, *complaints)["new"].risk is None


def test_metrics_are_embedded_metric_format() -> None:
    """A metrics line names its metrics, dimensions and time; every metric has a number."""
    line = metrics_line(reports_of([*QUIET, *SHIFTED])["new"], "Coldframe")
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert directive["Dimensions"] == [[], ["Model"]]
    assert {metric["Name"] for metric in directive["Metrics"]} <= line.keys()
    assert (line["Model"], line["Head"], line["drifted"]) == ("new", "auto", 1)
    assert line["_aws"]["Timestamp"] == int(1.5 * DAY_S) * 1000


def test_sketches_are_read_from_log_lines() -> None:
    """Lines of other kinds are skipped, text before the JSON too; broken sketches are counted."""
    good = json.dumps({"event": "request", "sketch": QUIET[0].as_json()})
    short = QUIET[0].as_json() | {"counts": {**QUIET[0].as_json()["counts"], "length": [1]}}
    lines = [good, f"2026-11-24T03:00 stream {good}", "START", '{"event": "sketch"}', "", '{"sketch": 1',
             json.dumps({"sketch": 1}), json.dumps({"sketch": short})]  # fmt: skip
    log = read_sketches(lines)
    assert log.sketches == [QUIET[0], QUIET[0]]
    assert log.unreadable == 2


@given(
    st.sampled_from(sorted(QUIET[0].as_json())), st.none() | st.integers() | st.floats() | st.text(max_size=9)
)
def test_no_field_ends_the_reading(field: str, value: object) -> None:
    """Whatever a sketch has in a field, reading its line raises nothing."""
    log = read_sketches([json.dumps({"sketch": QUIET[0].as_json() | {field: value}})])
    assert len(log.sketches) + log.unreadable in (0, 1)


def test_sketches_of_other_labels_are_left_out() -> None:
    """A sketch with another number of labels than its model is left out."""
    forged = Sketch("new", "auto", "f", 1, 0.0, 1.0, empty_counts(5))
    assert reports_of([*QUIET, forged])["new"].texts == 1200


def test_labels_name_their_faulty_line() -> None:
    """Labels are read line by line; a faulty one is named with its line."""
    line = '{"model": "m", "head": "auto", "probability": 0.5, "right": true, "drawn": "random"}'
    assert read_labels([line, ""]) == [Label("m", "auto", 0.5, True, "random")]
    for broken in (line.replace("random", "mine"), line.replace("0.5", "7"), "{"):
        with pytest.raises(ValueError, match=r"Line 2 .*Correct or remove the line\."):
            read_labels([line, broken])


def test_a_reference_is_read_as_written(tmp_path: Path) -> None:
    """A reference comes back from its file; a folder without one has none."""
    assert load_reference(tmp_path) is None
    one = reference("new")
    write_reference(one, tmp_path)
    assert load_reference(tmp_path) == one
    assert len(one.rows.right) == one.counts.texts == 600


def test_a_reference_has_at_most_4000_rows() -> None:
    """All answers count, and evenly spread ones are kept as rows."""
    rows = [(Answer(0, 0.9, 10, 0, 0.5), number % 2) for number in range(10_001)]
    one = make_reference("auto", LABELS, "sha256:encoder", 384, rows)
    assert one.counts.texts == 10_001
    assert len(one.rows.right) == 3334


def test_sketches_from_before_the_fragments_are_read_without_them() -> None:
    """An older sketch counts all but fragments; one whose fragments are other texts is unreadable."""
    value = sketch("new", 1, counts_of(50, 0.9)).as_json()
    counts = value["counts"]
    older = {**value, "counts": {name: sums for name, sums in counts.items() if name != "fragments"}}
    forged = {**value, "counts": {**counts, "fragments": [49, *counts["fragments"][1:]]}}
    log = read_sketches(json.dumps({"sketch": one}) for one in (older, forged))
    (read,) = log.sketches
    assert (read.counts.texts, sum(read.counts.fragments), log.unreadable) == (50, 0, 1)
    assert (read.counts + counts_of(50, 0.9)).texts == 100
