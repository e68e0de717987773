"""Events during a simulation, as they are written on the command line."""

from __future__ import annotations

import math

import click

from local.planner.scenarios.scenario import ALL
from local.planner.simulator.provisioning import PROVISION, RECYCLE, RESERVE
from local.planner.simulator.simulator import Change

_EXPECTED = "provisioned=N, reserved=N, reserved=none or deploy"


def changes(arguments: tuple[tuple[float, str], ...]) -> tuple[Change, ...]:
    """(seconds from the start, what) for every function and version. Raises click.UsageError."""
    return tuple(_change(at_s, what) for at_s, what in arguments)


def versions(arguments: tuple[str, ...]) -> tuple[tuple[str, float], ...]:
    """NAME=SHARE of each version, its share of all weights. Raises click.UsageError."""
    shares = []
    for one in arguments:
        name, _, share = one.partition("=")
        try:
            shares.append((name, float(share)))
        except ValueError as exc:
            raise click.UsageError(f"--version {one!r}: expected NAME=SHARE, such as canary=0.1.") from exc
    unusable = any(not name or not 0 <= share < math.inf for name, share in shares)
    if unusable or (shares and not any(share for _, share in shares)):
        raise click.UsageError("--version: each has a name, and a share of 0 or more; not all are 0.")
    if len(dict(shares)) < len(shares):
        raise click.UsageError("--version: two versions have the same name. Name each once.")
    return tuple(shares)


def _change(at_s: float, what: str) -> Change:
    name, _, value = what.partition("=")
    if what == "deploy":
        return Change(at_s, RECYCLE, ALL)
    if what == "reserved=none":
        return Change(at_s, RESERVE, ALL, -1)
    kind = {"provisioned": PROVISION, "reserved": RESERVE}.get(name)
    if kind is None or not value.isdecimal():
        raise click.UsageError(f"--at {at_s:g} {what!r}: expected {_EXPECTED}.")
    return Change(at_s, kind, ALL, int(value))
