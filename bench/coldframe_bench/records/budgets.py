"""`bench/budgets.toml`: what a cold start and the road of a request may take, and what is aimed at."""

from pathlib import Path

import msgspec
from msgspec import Struct

from coldframe_local.paths import ROOT

BUDGETS = ROOT / "bench" / "budgets.toml"


class SeriesBudget(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of one series: medians over the floor's median, and counts as they are."""

    total: float
    stages: dict[str, float]
    imports: dict[str, float]
    calls: dict[str, int]


class RoadBudget(Struct, frozen=True, forbid_unknown_fields=True):
    """Upper bounds of what one kind of request runs through: files of ours, and calls inside each other."""

    files: int
    depth: int


class Budgets(Struct, frozen=True, forbid_unknown_fields=True):
    """The file. goals: totals aimed at, reached or not. road_goal: bounds aimed at for every kind of request.

    unlisted_import: limit of any other package.
    """

    unlisted_import: float
    goals: dict[str, float]
    series: dict[str, SeriesBudget]
    road: dict[str, RoadBudget]
    road_goal: RoadBudget


def load_budgets(path: Path = BUDGETS) -> Budgets:
    """Raises msgspec.MsgspecError, which names the field that is wrong."""
    return msgspec.toml.decode(path.read_bytes(), type=Budgets)
