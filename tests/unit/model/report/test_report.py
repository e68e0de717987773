"""The report and its page, from two classes to a thousand."""

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from types import FrameType

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coldframe_training.report import Evaluation, Report, compare, make_report, write_report
from coldframe_training.report.page import render_page
from tests.unit.model.report.evaluations import bare, evaluation, renamed

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Checker(HTMLParser):
    """Whether every element is closed in order, what is loaded, and the words of the page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.loaded: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loaded += [
            value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "action")
        ]
        self.loaded += [
            value or "" for name, value in attrs if name.startswith("on") or "url(" in (value or "")
        ]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def checked(page: str) -> Checker:
    """A page that is well-formed, loads nothing and runs nothing."""
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert page.startswith("<!doctype html>")
    assert checker.open == []
    assert checker.loaded == []
    assert not checker.tags & {"script", "link", "img", "iframe", "object", "embed", "image", "use", "form"}
    assert not re.search(r"https?:|@import|url\(", page)
    return checker


@pytest.mark.parametrize(("k", "n"), [(2, 60), (12, 480), (30, 300), (31, 300), (150, 1200)])
def test_pages_are_whole(k: int, n: int) -> None:
    """Two classes or many, with everything or with what an evaluation must have: a page comes of it."""
    full = evaluation(k, n)
    page = render_page(make_report(full, compare(full, renamed(full, "older", "mlp"))))
    words = " ".join(checked(page).words)
    for title in (
        "Heads side by side",
        "Against older",
        "What abstaining buys",
        "does not know",
        "surest mistakes",
    ):
        assert title in words
    assert ("cannot be read" in words) == (k > 30)
    checked(render_page(make_report(bare(k, n))))


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 99))
def test_few_rows_are_enough(k: int, n: int, seed: int) -> None:
    """Even a single held-out row makes a page."""
    checked(render_page(make_report(evaluation(k, n, seed))))


def test_labels_are_text() -> None:
    """A label that looks like markup is shown, and does nothing."""
    evil = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a & b", "]]>", "\ud800"]
    page = render_page(make_report(replace(evaluation(5, 100), labels=evil, name="<b>&")))
    words = "".join(checked(page).words)
    for label in evil[:4]:
        assert label in words


def test_settings_are_text(tmp_path: Path) -> None:
    """What the caller shows is escaped, too; half of a surrogate pair can be written."""
    given = replace(evaluation(2, 20), settings={"<i>file</i>": "\ud800<script>", "drop": True})
    write_report(make_report(replace(given, settings={"drop": True})), tmp_path)
    page = render_page(make_report(given)).encode("utf-8", errors="xmlcharrefreplace").decode()
    assert "<i>file</i>" in "".join(checked(page).words)


def test_a_class_without_held_out_rows() -> None:
    """A class without rows has neither recall nor F1, counts for nothing, and comes last."""
    report = make_report(evaluation(6, 100, present=4))
    absent = report.classes[4:]
    assert [(found.support, found.recall, found.f1) for found in absent] == [(0, None, None)] * 2
    present = [found.f1 for found in report.classes[:4] if found.f1 is not None]
    assert report.summary.macro_f1.value == pytest.approx(np.mean(present), abs=1e-5)
    page = render_page(report)
    assert "2 classes without held-out rows come last" in page
    table = page[page.index("the hardest first") : page.index("What is taken for what")]
    assert re.findall(r">queue-(\d)<", table)[-2:] == ["4", "5"]


def test_a_thousand_classes() -> None:
    """A thousand classes make a page that can be read."""
    page = render_page(make_report(evaluation(1000, 8000)))
    checked(page)
    assert "970 more classes" in page
    assert len(page) < 1_000_000


def test_work_grows_with_the_rows() -> None:
    """Further classes and rows cost as many calls as the first ones: no pair of classes is visited."""
    few, some, many = (calls_of(partial(page_of, evaluation(k, 8 * k))) for k in (100, 300, 1000))
    assert (many - some) / 700 <= 1.2 * (some - few) / 200


def page_of(given: Evaluation) -> str:
    return render_page(make_report(given))


def calls_of(work: Callable[[], object]) -> int:
    """Calls of functions that `work` makes, of Python and of C: the same on every machine."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def test_files_have_the_same_figures(tmp_path: Path) -> None:
    """The same evaluation makes the same bytes, and both files have the same accuracy."""
    given = evaluation(12, 300)
    report = make_report(given, compare(given, renamed(given, "older", "mlp")))
    write_report(report, tmp_path)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_report(make_report(given, compare(given, renamed(given, "older", "mlp"))), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first
    assert sorted(first) == ["report.html", "report.json"]
    assert msgspec.json.decode(first["report.json"], type=Report) == report
    assert f"{report.summary.accuracy.value:.1%}".encode() in first["report.html"]


def test_mistakes_are_row_numbers() -> None:
    """The surest mistakes are wrong rows, the surest first."""
    given = evaluation(4, 200)
    auto = given.probabilities["auto"]
    places = {int(row): place for place, row in enumerate(given.rows)}
    mistakes = make_report(given).mistakes
    assert mistakes
    assert [m.probability for m in mistakes] == sorted((m.probability for m in mistakes), reverse=True)
    for mistake in mistakes:
        place = places[mistake.row]
        assert mistake.label == given.labels[given.target[place]] != mistake.said
        assert mistake.said == given.labels[int(auto[place].argmax())]


def test_what_the_chosen_threshold_buys() -> None:
    """The page says what the model's own threshold answers, and how right it is with and without."""
    report = make_report(evaluation(4, 200))
    chosen = report.coverage.chosen
    assert chosen is not None
    assert chosen.accuracy is not None
    words = "".join(checked(render_page(report)).words)
    assert f"At the model's own min_probability, 0.6, auto answers {chosen.coverage:.1%} of the rows" in words
    assert f"and {chosen.accuracy.value:.1%}" in words
    assert f"Without abstaining, {report.summary.accuracy.value:.1%} of all answers are" in words
    assert "own min_probability" not in render_page(make_report(bare(4, 200)))


def perfect(given: Evaluation) -> Evaluation:
    """Without a mistake."""
    sure = np.eye(len(given.labels), dtype=np.float32)[given.target]
    return replace(given, probabilities={"auto": sure}, baseline=sure)


def test_a_model_without_mistakes() -> None:
    """Nothing is confused, and no section is there for nothing."""
    report = make_report(perfect(evaluation(3, 40)))
    assert (report.confused, report.mistakes) == ([], [])
    assert "surest mistakes" not in "".join(checked(render_page(report)).words)


def test_a_model_below_its_baseline_is_said_to_be() -> None:
    """The report says either way whether `auto` is below the baseline by more than one standard error."""
    given = evaluation(5, 400)
    assert make_report(given).summary.auto_below_baseline is False
    assert given.baseline is not None
    turned = replace(given, baseline=given.probabilities["auto"], probabilities={"auto": given.baseline})
    report = make_report(turned)
    assert report.summary.auto_below_baseline is True
    assert "right less often than TF-IDF + logistic regression" in report.warnings[0]
    assert report.warnings[0] in render_page(report)
    assert "prefer the baseline" in render_page(report)
    without = make_report(bare(5, 400))
    assert without.summary.auto_below_baseline is None
    assert re.fullmatch(r"tickets: accuracy .*, macro F1 \S+% on 400 held-out rows", without.line)


def test_a_model_below_the_most_frequent_label() -> None:
    """A model that is right no more often than always the most frequent label is called so."""
    given = evaluation(3, 200)
    target = np.zeros(200, dtype=np.int64)
    useless = make_report(replace(given, target=target, trained_on=[90, 5, 5]))
    assert (useless.is_useless, useless.majority) == (True, 1.0)
    assert "most frequent label is right on 100.0%" in useless.warnings[0]
    assert make_report(given).warnings == []


def test_rows_that_nearly_repeat_others() -> None:
    """A tenth of the rows that nearly repeat training rows is a warning, fewer are a figure."""
    given = evaluation(3, 200)
    few, many = (make_report(replace(given, near_copies=rows)) for rows in (19, 20))
    assert few.warnings == []
    assert "10.0% of the held-out rows nearly repeat a training row" in many.warnings[0]
    assert "9.5%" in render_page(few)
