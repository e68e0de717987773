"""Statistics of experiments: false promotions, time until a worse arm is stopped, and regret of bandits.

    COLDFRAME_DATA=FOLDER PYTHONPATH=bench:local:layers/model:layers/shared/python .venv-build/bin/python -m \
        coldframe_bench.studies.experiments bench/results/experiments.jsonl.gz

All figures are simulated with seeds, by the functions that decide in the service. The bandits' arms are the
heads of the example model on the test split of 20 Newsgroups. The raw file holds numbers alone.
"""

import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coldframe.betting import Outcomes
from coldframe.experiments.criteria import MISMATCH_ALPHA
from coldframe.experiments.evidence import (
    PRIOR_LABELS,
    PairCounts,
    SplitCounts,
    gain_in_pairs,
    gain_in_split,
)
from coldframe.progress import Progress
from coldframe_bench.records.quantiles import median
from coldframe_bench.records.raw_files import Fact, RawFile, Results
from coldframe_bench.records.tables import Row, table
from coldframe_bench.studies.bandit_replay import METHODS, SCENES, Answers, replay
from coldframe_bench.targets.machine import describe_run
from coldframe_local.paths import MODELS

_SEED = 27
_ALPHA, _POWER = 0.05, 0.8
_PROMOTIONS, _STOPS, _REPLAYS = 10_000, 1_000, 10
_ACCURACY, _LOSS = 0.8, 0.03
_LOOKS = 4_000  # labels until which equal arms are watched, with a look after each
_LONGEST = 4  # times the labels of a test with one look, until which a worse arm is watched
_CHUNK = 1_000  # simulations at once
_SKEW = 2.0  # times as often as for the baseline, labels come for the candidate
PROMOTED, STOPPED, FIXED, REGRET = "promoted at", "stopped at", "fixed size", "regret"
HELD, SKEWED = "held at", "promoted by skewed labels at"
_SINGLE, _MOVING = "the best single arm", "the best arm in each part"
_HELD = math.log(1 / MISMATCH_ALPHA)
_GOALS = {PROMOTED: 0.05, SKEWED: 0.05, HELD: MISMATCH_ALPHA, STOPPED: 2.0, REGRET: 0.05}

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Trial(NamedTuple):
    """Labelled answers of two arms.

    nothing: no answers. kinds: one answer of each kind. equal, worse: probabilities of the kinds with equal
    arms, and with a candidate that is worse. fixed: labels that a test with one look needs to find that.
    share: of the candidate, whose kinds are the first two; 0 where both arms answer.
    """

    name: str
    nothing: Outcomes
    kinds: list[Outcomes]
    equal: list[float]
    worse: list[float]
    fixed: int
    share: float = 0.0


def trials() -> list[Trial]:
    """Texts that both arms answer, by how often their answers differ; and split traffic, by the share."""
    return [*(_paired(share) for share in (0.1, 0.2)), *(_split(share) for share in (0.5, 0.1))]


def _paired(discordant: float) -> Trial:
    half, loss = discordant / 2, _LOSS / 2
    kinds = (PairCounts(1, 0, 0), PairCounts(0, 1, 0), PairCounts(0, 0, 1))
    fixed = _fixed_size(math.sqrt(discordant), math.sqrt(discordant - _LOSS**2))
    return Trial(
        f"both arms answer, {discordant:.0%} discordant",
        gain_in_pairs(PairCounts()),
        [gain_in_pairs(pairs) for pairs in kinds],
        [half, half, 1 - discordant],
        [half - loss, half + loss, 1 - discordant],
        fixed,
    )


def _split(share: float) -> Trial:
    kinds = [SplitCounts(share, *(int(kind == place) for place in range(4))) for kind in range(4)]

    def chances(accuracy: float) -> list[float]:
        own = [share * accuracy, share * (1 - accuracy)]
        return [*own, (1 - share) * _ACCURACY, (1 - share) * (1 - _ACCURACY)]

    def spread(one: float, other: float) -> float:
        return math.sqrt(one * (1 - one) / share + other * (1 - other) / (1 - share))

    low = _ACCURACY - _LOSS
    middle = share * low + (1 - share) * _ACCURACY
    fixed = _fixed_size(spread(middle, middle), spread(low, _ACCURACY))
    name = f"split traffic, candidate {share:.0%}"
    nothing = gain_in_split([SplitCounts(share)])
    each = [gain_in_split([kind]) for kind in kinds]
    return Trial(name, nothing, each, chances(_ACCURACY), chances(low), fixed, share)


def _fixed_size(equal: float, worse: float) -> int:
    """Labels of a one-sided test with one look. equal, worse: standard deviation of one label's gain."""
    normal = NormalDist()
    return math.ceil(((normal.inv_cdf(1 - _ALPHA) * equal + normal.inv_cdf(_POWER) * worse) / _LOSS) ** 2)


def crossings(trial: Trial, chances: list[float], runs: int, looks: int, is_gain: bool) -> Ints:
    """The look at which the evidence is enough, (runs,); 0 where it never is, with a look after each label.

    is_gain: evidence that the candidate is better, as for a promotion; otherwise that it is worse.
    """
    dice = np.random.default_rng(_SEED)
    parts = [min(_CHUNK, runs - start) for start in range(0, runs, _CHUNK)]
    bar = Progress(parts, desc=trial.name, unit="part")
    return np.concatenate([_crossings(trial, chances, part, looks, is_gain, dice) for part in bar])


def _crossings(
    trial: Trial, chances: list[float], runs: int, looks: int, is_gain: bool, dice: np.random.Generator
) -> Ints:
    begin, factors = bets(trial, is_gain)
    limits, every = np.cumsum(chances)[:-1], np.ones(len(begin))
    capital = np.tile(begin, (runs, 1))
    alive, crossed, shares = np.arange(runs), np.zeros(runs, dtype=np.int64), Shares(trial.share, runs)
    for look in range(1, looks + 1):
        kinds = np.searchsorted(limits, dice.random(len(alive)), side="right")
        capital *= factors[kinds]
        shares.add(kinds < 2)
        is_enough = np.log(capital @ every) >= np.maximum(0.0, shares.log_mismatch) + math.log(1 / _ALPHA)
        goes_on = ~is_enough & (shares.log_mismatch < _HELD)  # a candidate that is held decides nothing more
        if not goes_on.all():
            crossed[alive[is_enough]] = look
            alive, capital = alive[goes_on], capital[goes_on]
            shares.keep(goes_on)
    return crossed


class Shares:
    """Arms of the labels so far. log_mismatch: evidence that they do not follow the shares, (runs,)."""

    def __init__(self, share: float, runs: int) -> None:
        """share: of the candidate; 0: both arms answer each text, and nothing can mismatch."""
        self._share = share
        self._own, self._labels = np.zeros(runs), 0
        self.log_mismatch = np.zeros(runs)

    def add(self, is_own: Bools) -> None:
        """Adds a label in each run. is_own: of the candidate, (runs,)."""
        if self._share:
            seen = np.where(is_own, self._own, self._labels - self._own)
            part = np.where(is_own, self._share, 1 - self._share)
            self.log_mismatch += np.log((PRIOR_LABELS * part + seen) / ((PRIOR_LABELS + self._labels) * part))
            self._own += is_own
            self._labels += 1

    def keep(self, runs: Bools) -> None:
        """Forgets all other runs."""
        self._own, self.log_mismatch = self._own[runs], self.log_mismatch[runs]


def holds(share: float, runs: int, looks: int) -> Ints:
    """The look at which the shares of the labels hold a candidate, (runs,); 0 where they never do.

    share: of the candidate; its labels come as they should, with a look after each.
    """
    dice, shares = np.random.default_rng(_SEED), Shares(share, runs)
    held = np.zeros(runs, dtype=np.int64)
    for look in range(1, looks + 1):
        shares.add(dice.random(runs) < share)
        held[(held == 0) & (shares.log_mismatch >= _HELD)] = look
    return held


def bets(trial: Trial, is_gain: bool) -> tuple[Floats, Floats]:
    """Capital of each bet before the first label, (bets,), and its factor by kind, (kinds, bets)."""
    nothing, *kinds = (
        np.array((outcomes if is_gain else outcomes.opposite()).log_capitals(0.0))
        for outcomes in (trial.nothing, *trial.kinds)
    )
    return np.exp(nothing), np.exp(np.array(kinds) - nothing)


def skewed(trial: Trial) -> list[float]:
    """Probabilities of the kinds of labels with equal arms, if labels come more often for the candidate."""
    weights = [chance * (_SKEW if kind < 2 else 1.0) for kind, chance in enumerate(trial.equal)]
    return [weight / sum(weights) for weight in weights]


def simulate(answers: Answers) -> Iterator[Fact]:
    """Facts of all simulations."""
    for trial in trials():
        yield Fact(FIXED, trial.name, trial.fixed)
        for look in crossings(trial, trial.equal, _PROMOTIONS, _LOOKS, is_gain=True):
            yield Fact(PROMOTED, trial.name, float(look))
        for look in crossings(trial, trial.worse, _STOPS, _LONGEST * trial.fixed, is_gain=False):
            yield Fact(STOPPED, trial.name, float(look))
        if trial.share:
            for look in crossings(trial, skewed(trial), _PROMOTIONS, _LOOKS, is_gain=True):
                yield Fact(SKEWED, trial.name, float(look))
            for look in holds(trial.share, _PROMOTIONS, _LOOKS):
                yield Fact(HELD, trial.name, float(look))
    for scene in SCENES:
        for method in METHODS:
            for seed in Progress(range(_REPLAYS), desc=f"{scene}, {method}", unit="replay"):
                regret = replay(answers, scene, method, seed)
                yield Fact(REGRET, f"{method}, {scene}: {_SINGLE}", regret.to_single)
                yield Fact(REGRET, f"{method}, {scene}: {_MOVING}", regret.to_moving)


def experiments_table(results: Results) -> str:
    """Results beside the goals, as a Markdown table."""
    rows = [row for name in (PROMOTED, SKEWED, HELD, STOPPED, REGRET) for row in _rows(results, name)]
    return table(("what", "case", "result", "goal"), rows)


def _rows(results: Results, name: str) -> Iterator[Row]:
    facts = [fact for fact in results.of(Fact) if fact.name == name]
    for subject in dict.fromkeys(fact.subject for fact in facts):
        if not subject.endswith(_MOVING):  # it has no row of its own
            yield _ROWS[name](results, subject, results.facts(name, subject))


def _promoted(results: Results, subject: str, looks: list[float]) -> Row:
    return _share_row("equal arms: promoted", subject, looks, _GOALS[PROMOTED])


def _skewed(results: Results, subject: str, looks: list[float]) -> Row:
    what = f"equal arms, {_SKEW:g} × the labels for the candidate: promoted"
    return _share_row(what, subject, looks, _GOALS[SKEWED])


def _held(results: Results, subject: str, looks: list[float]) -> Row:
    return _share_row("labels in the arms' shares: held", subject, looks, _GOALS[HELD])


def _share_row(what: str, subject: str, looks: list[float], goal: float) -> Row:
    """Share of the runs that ended at a look: those whose look is 0 did not."""
    share = sum(look > 0 for look in looks) / len(looks)
    what = f"{what} at one of {_LOOKS:,} looks, {len(looks):,} runs"
    return (what, subject, f"{share:.2%}", _verdict(share, goal, f"≤ {100 * goal:g} %"))


def _stopped(results: Results, subject: str, looks: list[float]) -> Row:
    (fixed,) = results.facts(FIXED, subject)
    middle = float(np.median([look or math.inf for look in looks]))
    what = f"3 points worse: labels until stopped, median of {len(looks):,} runs"
    result = f"{middle:,.0f}: {middle / fixed:.2f} × the {fixed:,.0f} of a test with one look"
    return (what, subject, result, _verdict(middle / fixed, _GOALS[STOPPED], "≤ 2 ×"))


def _regret(results: Results, subject: str, regrets: list[float]) -> Row:
    case = subject.removesuffix(f": {_SINGLE}")
    single, moving = median(regrets).value, median(results.facts(REGRET, f"{case}: {_MOVING}")).value
    what = f"bandit: regret to the best single arm, median of {len(regrets)} replays"
    result = f"{single:.1%}; {moving:.1%} to {_MOVING}"
    return (what, case, result, _verdict(single, _GOALS[REGRET], "≤ 5 %"))


def _verdict(value: float, goal: float, text: str) -> str:
    return f"{text}: {'met' if value <= goal else '**missed**'}"


_ROWS: dict[str, Callable[[Results, str, list[float]], Row]] = {
    PROMOTED: _promoted,
    SKEWED: _skewed,
    HELD: _held,
    STOPPED: _stopped,
    REGRET: _regret,
}


def main(out: Path) -> None:
    """Writes the raw file, and prints the table."""
    from coldframe_bench.studies.head_answers import head_answers

    options = {"alpha": _ALPHA, "power": _POWER, "accuracy": _ACCURACY, "loss": _LOSS, "looks": _LOOKS}
    run = describe_run("experiments", MODELS, _SEED, options)
    facts = list(simulate(head_answers()))
    with RawFile(out, run) as raw:
        raw.write(*facts)
    print(experiments_table(Results(out, run, list(facts))))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
