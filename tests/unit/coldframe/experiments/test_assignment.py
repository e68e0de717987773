"""Subjects keep their arms, in every environment and while a candidate's share grows."""

import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.experiments.assignment import choose_arm
from coldframe_local.paths import ROOT, python_path

KEY = b"a key of a deployment"
STAGES = (0.01, 0.1, 0.5, 1.0)

subjects = st.text(min_size=1).filter(lambda text: text.strip())


def shares_at(stage: float, weights: list[float]) -> list[float]:
    """Shares of the baseline and of candidates that divide a stage by their weights."""
    return [1 - stage, *(stage * weight / sum(weights) for weight in weights)]


@given(subjects, st.lists(st.floats(0.01, 1), min_size=1, max_size=4))
def test_a_subject_keeps_its_candidate_while_the_stage_grows(subject: str, weights: list[float]) -> None:
    """Whoever has a candidate at 1 % has it at 10, 50 and 100 %."""
    arms = [choose_arm(KEY, "test", subject, shares_at(stage, weights)) for stage in STAGES]
    after = [arm for arm in arms if arm != 0]
    assert arms == [0] * (len(arms) - len(after)) + after
    assert len(set(after)) == 1


@pytest.mark.parametrize("shares", [[0.99, 0.01], [0.5, 0.5], [0.7, 0.1, 0.0, 0.2], [0.0, 1.0], [1.0, 0.0]])
def test_arms_have_their_shares(shares: list[float]) -> None:
    """The shares of 20,000 subjects are those of the arms, and an arm without a share has no subject."""
    number = 20_000
    counts = Counter(choose_arm(KEY, "test", f"caller {subject}", shares) for subject in range(number))
    for arm, share in enumerate(shares):
        assert abs(counts[arm] - number * share) <= 4 * (number * share * (1 - share)) ** 0.5


def test_experiments_are_independent() -> None:
    """A subject's arms in two experiments, or by two keys, agree as often as chance has it."""
    rows = [f"caller {number}" for number in range(4000)]
    half = [0.5, 0.5]
    first = [choose_arm(KEY, "one", row, half) for row in rows]
    for key, experiment in ((KEY, "two"), (b"another key", "one")):
        second = [choose_arm(key, experiment, row, half) for row in rows]
        assert abs(sum(one == other for one, other in zip(first, second, strict=True)) - 2000) < 130


@pytest.mark.parametrize("subject", [None, "", " ", "\t\n"])
def test_a_missing_subject_has_no_arm(subject: str | None) -> None:
    """A request without a subject is no part of the experiment, whatever the shares."""
    assert choose_arm(KEY, "test", subject, [0.0, 1.0]) is None


def test_names_and_subjects_do_not_run_together() -> None:
    """An experiment `ab` with the subject `c` does not share its hashes with `a` and `bc`."""
    rows = [f"{number}" for number in range(200)]
    one = [choose_arm(KEY, "ab", f"c{row}", [0.5, 0.5]) for row in rows]
    other = [choose_arm(KEY, "a", f"bc{row}", [0.5, 0.5]) for row in rows]
    assert one != other


def test_space_around_a_subject_does_not_count() -> None:
    """A header's space changes no arm; capital letters do, since they can name another caller."""
    rows = [f"Caller {number}" for number in range(200)]
    arms = [choose_arm(KEY, "test", row, [0.5, 0.5]) for row in rows]
    assert [choose_arm(KEY, "test", f" {row}\r", [0.5, 0.5]) for row in rows] == arms
    assert [choose_arm(KEY, "test", row.upper(), [0.5, 0.5]) for row in rows] != arms


def test_another_process_chooses_the_same_arms() -> None:
    """Processes with other hash seeds agree, and so do releases: the arms are written down here."""
    code = (
        "from coldframe.experiments.assignment import choose_arm\n"
        "print(*(choose_arm(b'a key of a deployment', 'test', f'caller {n}', [0.5, 0.3, 0.2])"
        " for n in range(20)), sep='')"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": python_path(ROOT), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert outputs == {"11122101211010200000"}


def test_surrogates_are_subjects() -> None:
    """A header that is not valid Unicode still has an arm."""
    assert choose_arm(KEY, "test", "\udcff", [0.5, 0.5]) in (0, 1)
