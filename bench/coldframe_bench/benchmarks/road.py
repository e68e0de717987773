"""The road: the files, functions and lines of ours that one request runs through, and its deepest call.

Each kind of request is answered in a fresh process of its own, which has answered others before; only the
cold one is the first. Counts, not times: they are the same on every machine and in every run.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from coldframe_bench.benchmarks.cold.first_requests import Chosen, Subject, choose_texts, event_of
from coldframe_bench.loader.samples import SampleFailed, run_program
from coldframe_bench.records.budgets import RoadBudget, load_budgets
from coldframe_bench.records.tables import table
from coldframe_bench.targets.machine import Check
from coldframe_local.paths import ROOT

ENCODER = "encoder"
HIT = "cache hit"
COLD = "cold, estimator"
EMBEDDINGS = "embeddings"
_PREDICT, _EMBED = "/v1/predict", "/v1/embeddings"


class Road(Struct, frozen=True):
    """Code that a request ran through. files: each with its first function, in the order entered."""

    files: list[tuple[str, str]]
    functions: int
    lines: int
    depth: int


@dataclass(frozen=True)
class Trip:
    """Events of one process; the last one is followed. told: what its answer must hold to be of this kind."""

    events: list[dict[str, Any]]
    told: tuple[str, ...]


def run(check: Check) -> None:
    """Prints all roads. Ends with status 1 where one is over its budget."""
    roads, limits = measure(check.model_dir), load_budgets()
    print(road_table(roads, limits.road, limits.road_goal), end="")
    if exceeded := over_budget(roads, limits.road):
        sys.exit("\n".join(f"Over budget: {line}" for line in exceeded))


def measure(model_dir: Path, root: Path = ROOT) -> dict[str, Road]:
    """The road of each kind of request, in the tree at `root`. Raises SampleFailed."""
    subject = Subject(model_dir, root)
    trips = _trips(choose_texts(subject))
    return {kind: _follow(kind, trip, subject) for kind, trip in trips.items()}


def road_table(roads: Mapping[str, Road], budgets: Mapping[str, RoadBudget], goal: RoadBudget) -> str:
    """One line for each kind of request, the goal, then the files of each kind in the order entered."""
    rows = [
        (
            kind,
            f"{len(road.files)} (≤ {budgets[kind].files})",
            str(road.functions),
            str(road.lines),
            f"{road.depth} (≤ {budgets[kind].depth})",
        )
        for kind, road in roads.items()
    ]
    rows.append(("the goal of each", str(goal.files), "", "", str(goal.depth)))
    head = "request | files | functions | lines | depth"
    return table(head, rows) + "".join(_files_of(kind, road) for kind, road in roads.items())


def over_budget(roads: Mapping[str, Road], budgets: Mapping[str, RoadBudget]) -> list[str]:
    """Requests that exceed their budget of files or depth, and where to look."""
    return [
        f"{kind}: {value} {what}, budget {budget}. Merge what is one thought, or raise the budget in"
        " bench/budgets.toml and say why."
        for kind, road in roads.items()
        for what, value, budget in (
            ("files", len(road.files), budgets[kind].files),
            ("calls deep", road.depth, budgets[kind].depth),
        )
        if value > budget
    ]


def _files_of(kind: str, road: Road) -> str:
    lines = [f"  {number:2} {file}  {entered}\n" for number, (file, entered) in enumerate(road.files, 1)]
    return f"\n{kind}, in the order entered\n{''.join(lines)}"


def _trips(chosen: Chosen) -> dict[str, Trip]:
    """An unsure text, with the cache off, loads what it needs; the cache then has no entry for it yet."""
    sure, unsure = {"text": chosen.sure}, {"text": chosen.unsure}
    load = [_event(_PREDICT, unsure | {"cache": False}), _event(_PREDICT, sure)]
    ask = _event(_PREDICT, unsure)
    return {
        ENCODER: Trip([*load, ask], ('"by":"ensemble"', '"start":"warm"', '"miss":1')),
        HIT: Trip([*load, ask, ask], ('"by":"ensemble"', '"start":"warm"', '"l1":1')),
        COLD: Trip([_event(_PREDICT, sure)], ('"by":"estimator"', '"start":"cold"')),
        EMBEDDINGS: Trip(
            [*load, _event(_EMBED, {"input": chosen.sure}), _event(_EMBED, {"input": chosen.unsure})],
            ('"object":"embedding"',),
        ),
    }


def _event(path: str, body: Mapping[str, object]) -> dict[str, Any]:
    event = event_of(body)
    event["requestContext"]["http"]["path"] = path
    return event | {"rawPath": path}


def _follow(kind: str, trip: Trip, subject: Subject) -> Road:
    program = [str(ROOT / "bench" / "coldframe_bench" / "targets" / "walked.py"), str(subject.root)]
    report = json.loads(run_program(program, trip.events, subject.environ(), subject.root))
    body = report["answer"]["body"]
    if missing := [sign for sign in trip.told if sign not in body]:
        raise SampleFailed(f"{kind}: the answer has no {missing[0]}, found {body[:300]}")
    return msgspec.convert(report["walked"], Road)
