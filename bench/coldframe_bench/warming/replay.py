"""Policies side by side on the functions of a trace, by FeMux's cost."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from coldframe import __version__
from coldframe_bench.warming.contest import BOUND, OURS, VARIANT, Contest
from coldframe_bench.warming.demand import Demand
from coldframe_bench.warming.rum import RATIOS, Ratio, Score, score

_LEARNT_SLOTS = 120
_MB_PER_GB = 1024


@dataclass(frozen=True)
class Line:
    """One policy on one function, by one ratio."""

    trace: str
    function: str
    ratio: str
    policy: str
    memory_gb: float
    slots: int
    score: Score


def scored_from(slots: int) -> int:
    """The first slot that counts: policies learn before it. Two hours of minutes, or a quarter of all."""
    return min(_LEARNT_SLOTS, slots // 4)


def replay(
    trace: str,
    demands: Iterable[Demand],
    memory_mb: float | None,
    ratios: Sequence[Ratio] = RATIOS,
) -> Iterator[Line]:
    """A line for each policy, function and ratio. memory_mb: of an environment; None: as the trace says."""
    for demand in demands:
        memory_gb = (memory_mb or demand.memory_mb or _MB_PER_GB) / _MB_PER_GB
        contest = Contest(demand, memory_gb)
        first = scored_from(len(demand.peaks))
        for ratio in ratios:
            for policy, levels in contest.held(ratio).items():
                result = score(demand.peaks[first:], levels[first:], ratio, memory_gb, demand.slot_s)
                slots = len(demand.peaks) - first
                yield Line(trace, demand.name, ratio.name, policy, memory_gb, slots, result)


def totals(lines: Iterable[Line]) -> dict[tuple[str, str], Score]:
    """The sum over all functions, by policy and ratio."""
    sums: dict[tuple[str, str], Score] = {}
    for line in lines:
        key = line.policy, line.ratio
        sums[key] = sums.get(key, Score()) + line.score
    return sums


def table(lines: Sequence[Line]) -> str:
    """A row for each policy, RUM and share of cold starts at each ratio; then ours against the best."""
    sums = totals(lines)
    policies = list(dict.fromkeys(policy for policy, _ in sums))
    ratios = list(dict.fromkeys(ratio for _, ratio in sums))
    width = max(map(len, policies))
    head = f"{'':{width}}" + "".join(f"{ratio:>13}{'cold':>8} " for ratio in ratios)
    rows = [
        f"{policy:{width}}" + "".join(_cell(sums[policy, ratio]) for ratio in ratios) for policy in policies
    ]
    rivals = [policy for policy in policies if policy not in (OURS, BOUND)]
    published = [policy for policy in rivals if not policy.endswith(VARIANT)]
    for name, among in (("ours / best published", published), ("ours / best of all", rivals)):
        shares = (sums[OURS, ratio].rum / _least(sums, among, ratio) for ratio in ratios)
        rows.append(f"{name:{width}}" + "".join(f"{share:12.2f}{'':10}" for share in shares))
    return "\n".join([head, *rows])


def _least(sums: dict[tuple[str, str], Score], policies: Iterable[str], ratio: str) -> float:
    return max(min(sums[policy, ratio].rum for policy in policies), 1e-12)


def _cell(total: Score) -> str:
    return f"{total.rum:12,.1f}{total.cold_share:9.1%} "


def write_raw(path: Path, options: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> None:
    """Writes JSON lines: first the run, then one line for each policy, function and ratio.

    A file that ends in .gz is compressed, the same lines to the same bytes.
    """
    run = {"type": "run", "benchmark": "warm", "version": __version__, "options": dict(options)}
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in (run, *lines))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
