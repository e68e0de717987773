"""Simulations of a hosted function: on what the emulator has recorded, on samples, and on traffic made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe.errors import ColdframeError
from coldframe_local import planner as planning
from coldframe_local.emulator.lambda_service.account.hosted import HostedFunction
from coldframe_local.emulator.lambda_service.settings import RESTORE_MS
from coldframe_local.emulator.lambda_service.telemetry.recording import Recorded
from coldframe_local.planner.scenarios.prices import MONTH_S, load_prices
from coldframe_local.planner.scenarios.scenario import Scenario
from coldframe_local.planner.scenarios.timings import Measured, Timings, published
from coldframe_local.planner.traces.made import made
from coldframe_local.planner.traces.read import read_trace
from coldframe_local.planner.traces.trace import Trace, as_trace
from coldframe_local.planner.what_if import Lever, Outcome, Setting, simulated

if TYPE_CHECKING:
    from coldframe_local.emulator.lambda_service.account.service import LambdaService
    from coldframe_local.emulator.options import EmulatorOptions

RECORDED = "recorded"
_SAMPLES = Path(planning.__path__[0]) / "samples"
# Rate, hours, shape: a few requests a minute, some a second with bursts of fifty, and many a second.
_MADE = {
    "5 a minute": (5 / 60, 24.0, "constant"),
    "1 a second by day and night": (1.0, 24.0, "diurnal"),
    "5 a second, bursts of 50": (5.0, 2.0, "bursts"),
    "200 a second": (200.0, 0.1, "constant"),
}
_REGION = "us-east-1"  # as the emulator's own bill


class NoTraffic(ColdframeError):
    """There is nothing to simulate."""


class Simulations:
    """Simulations of one emulator's functions. The result of `prepared` needs no event loop."""

    def __init__(self, service: LambdaService, options: EmulatorOptions) -> None:
        self._service = service
        self._options = options

    def traces(self) -> list[str]:
        """The traffic that there is to choose."""
        return [RECORDED, *sorted(path.stem for path in _SAMPLES.glob("*.csv")), *_MADE]

    def levers(self) -> list[str]:
        """Settings that a user can change."""
        return [str(lever) for lever in Lever]

    def prepared(
        self, name: str, traffic: str, lever: str, level: int, memory_mb: int
    ) -> Callable[[], dict[str, Any]]:
        """Simulation that needs nothing more of the service, so another thread may run it.

        Raises NoTraffic, and ResourceNotFoundException for a function that is not there.
        """
        if lever not in self.levers():
            raise NoTraffic(f"The lever is {lever!r}, expected one of {', '.join(self.levers())}.")
        function = self._service.functions.hosted(name)
        recorded = function.recording.by_arrival()
        uptime_s = self._service.uptime_s()
        trace = self._trace(traffic, recorded, uptime_s)
        measured, base = _measured(recorded, function), self._scenario(function)
        settings, here = function.settings, None
        if traffic == RECORDED and function.recording.is_complete:
            here = _live(recorded, function.metrics.bill.usd(self._service.now()), uptime_s)
        now = _present(function)
        candidate = Setting(Lever(lever), level, memory_mb)

        def simulate() -> dict[str, Any]:
            prices = load_prices().region(_REGION)
            of = [
                simulated(trace, measured, settings.memory_mb, base, one, prices, settings.architecture)
                for one in (now, candidate)
            ]
            return {
                "now": asdict(now),
                "span_s": trace.span_s,
                "measured": here and asdict(here),
                "as_it_is": asdict(of[0]),
                "what_if": asdict(of[1]),
                "durations": "the trace" if trace.durations_s is not None else measured.source,
            }

        return simulate

    def _trace(self, name: str, recorded: list[Recorded], uptime_s: float) -> Trace:
        if name == RECORDED:
            return _recorded_trace(recorded, uptime_s)
        if name in _MADE:
            rps, hours, shape = _MADE[name]
            return made(rps, hours, shape, seed=self._options.seed)
        if name not in self.traces():
            raise NoTraffic(f"There is no traffic {name!r}, only {', '.join(self.traces())}.")
        return read_trace(_SAMPLES / f"{name}.csv")

    def _scenario(self, function: HostedFunction) -> Scenario:
        """The emulator's own rules, in which this machine's limit is one of the account."""
        options = self._options
        concurrency = options.account_concurrency
        if function.reserved is None and options.max_environments is not None:
            concurrency = min(concurrency, options.max_environments)
        fixed = IdleExpiry(options.keep_alive_s, options.keep_alive_s)
        return Scenario(
            function.settings.memory_mb,
            reserved=function.reserved,
            account_concurrency=concurrency,
            idle_expiry=options.idle_expiry or fixed,
            max_age_s=options.max_age_s,
            switches=options.switches,
            seed=options.seed,
        )


def _present(function: HostedFunction) -> Setting:
    provisioned = sum(config.requested for config in function.provisioned.values())
    lever = Lever.PROVISIONED if provisioned else Lever.ON_DEMAND
    if function.settings.snapstart:
        lever = Lever.SNAPSTART
    return Setting(lever, provisioned, function.settings.memory_mb)


def _recorded_trace(recorded: list[Recorded], uptime_s: float) -> Trace:
    """Throttled requests have no duration of their own: they get the median of the others."""
    if not recorded:
        raise NoTraffic("Nothing has been recorded yet: send some requests, or choose other traffic.")
    lasted_ms = [one.duration_ms for one in recorded if not one.throttled]
    usual_ms = float(np.median(lasted_ms)) if lasted_ms else published(RESTORE_MS).usual_ms()
    durations_s = [(usual_ms if one.throttled else one.duration_ms) / 1e3 for one in recorded]
    inits_s = [one.init_ms / 1e3 for one in recorded if one.init_ms]
    span_s = max(uptime_s, recorded[-1].arrived_s)
    arrivals_s = [one.arrived_s for one in recorded]
    return as_trace(arrivals_s, ["function"], durations_s, span_s=span_s, inits_s=inits_s)


def _measured(recorded: list[Recorded], function: HostedFunction) -> Measured:
    """Times measured here; Coldframe's own published figures where nothing was measured."""
    warm_s = tuple(one.duration_ms / 1e3 for one in recorded if not one.throttled and not one.cold)
    inits_s = tuple(one.init_ms / 1e3 for one in recorded if one.init_ms)
    restores_s = tuple(one.restore_ms / 1e3 for one in recorded if one.restore_ms)
    own = published(RESTORE_MS)
    other = own.at(function.settings.memory_mb)
    timings = Timings(warm_s or other.durations_s, inits_s or other.inits_s, restores_s or other.restores_s)
    source = "what was measured here" if warm_s else own.source
    return Measured({function.settings.memory_mb: timings}, source)


def _live(recorded: list[Recorded], cost_usd: float, uptime_s: float) -> Outcome | None:
    """Times that the emulator measured, in the simulator's form: without the network."""
    if not recorded:
        return None
    admitted = [one for one in recorded if not one.throttled]
    waited_ms = [one.init_ms + one.restore_ms + one.duration_ms for one in admitted]
    p50_ms, p99_ms = (
        (float(value) for value in np.percentile(waited_ms, (50, 99), method="inverted_cdf"))
        if waited_ms
        else (None, None)
    )
    return Outcome(
        len(recorded),
        sum(one.cold for one in admitted) / len(admitted) if admitted else 0.0,
        1 - len(admitted) / len(recorded),
        p50_ms,
        p99_ms,
        cost_usd / uptime_s * MONTH_S,
    )
