"""Options of commands that follow Lambda's rules: each rule has its switch."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from coldframe.capacity import limits
from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe.capacity.switches import Switches

F = TypeVar("F", bound=Callable[..., Any])

_RATES = (
    click.option(
        "--request-rate/--no-request-rate",
        default=True,
        help="At most ten requests a second for each unit of concurrency.  [default: request-rate]",
    ),
    click.option(
        "--scaling-rate/--no-scaling-rate",
        default=True,
        help="In ten seconds 1,000 new environments of a function, and 10,000 requests a second more, at "
        "most.  [default: scaling-rate]",
    ),
    click.option(
        "--allocation-rate/--no-allocation-rate",
        default=True,
        help="At most 6,000 provisioned environments of a function a minute.  [default: allocation-rate]",
    ),
)
_LIFETIMES = (
    click.option(
        "--idle-expiry-min",
        nargs=2,
        default=(5.0, 45.0),
        show_default=True,
        type=click.FloatRange(0),
        metavar="LEAST MOST",
        help="Time that an idle environment is kept, drawn evenly for each. AWS does not publish it.",
    ),
    click.option(
        "--max-age-h",
        default=limits.MAX_AGE.value / 3600,
        show_default=True,
        type=click.FloatRange(0),
        help="Longest life of an environment; 0: no limit. AWS says a few hours.",
    ),
)


def rate_switches(command: F) -> F:
    """Adds a switch for each rate; the command gets them as `switches`."""

    @wraps(command)
    def with_switches(
        *, request_rate: bool, scaling_rate: bool, allocation_rate: bool, **options: Any
    ) -> Any:
        return command(switches=Switches(request_rate, scaling_rate, allocation_rate), **options)

    return _with(_RATES, cast("F", with_switches))


def lifetimes(command: F) -> F:
    """Adds how long environments live; the command gets `idle_expiry` and `max_age_s`."""

    @wraps(command)
    def with_lifetimes(*, idle_expiry_min: tuple[float, float], max_age_h: float, **options: Any) -> Any:
        least, most = idle_expiry_min
        if most < least:
            raise click.UsageError("--idle-expiry-min is LEAST and MOST, in this order.")
        expiry = IdleExpiry(least * 60.0, most * 60.0)
        return command(idle_expiry=expiry, max_age_s=max_age_h * 3600.0 or None, **options)

    return _with(_LIFETIMES, cast("F", with_lifetimes))


def _with(options: tuple[Callable[[F], F], ...], command: F) -> F:
    for option in reversed(options):
        command = option(command)
    return command
