"""Summary that the emulator prints at its end: each function's counters, times and cost."""

from __future__ import annotations

from collections.abc import Iterator

from coldframe_local.emulator.lambda_service.lambda_types import FunctionView, Percentiles, Snapshot
from coldframe_local.planner.scenarios.candidates import few_for_p99


def summary(snapshot: Snapshot) -> Iterator[str]:
    """Lines of text; none for functions that got no request."""
    for function in snapshot.functions:
        if function.arrivals or function.provisioned:
            yield from _function_summary(function, snapshot.uptime_s)


def _function_summary(function: FunctionView, uptime_s: float) -> Iterator[str]:
    warm = function.invocations - function.cold_starts
    yield f"{function.name}, {function.memory_size_mb} MB, in {uptime_s:.0f} s:"
    yield (
        f"  {function.invocations} invocations: {function.cold_starts} cold, {warm} warm,"
        f" {function.errors} errors; {function.throttles} throttled;"
        f" at most {function.most_concurrent_executions} at once"
    )
    if function.provisioned_invocations or function.provisioned:
        yield (
            f"  {function.provisioned_invocations} in provisioned environments,"
            f" {function.spillover_invocations} spilled over"
        )
    if function.invocations:
        yield f"  from arrival to answer: {_times(function.latency_ms)}"
        yield f"  duration: {_times(function.duration_ms)}"
    if function.init_ms.p50:
        yield f"  init: {_times(function.init_ms)}"
    yield f"  cost on AWS: {function.cost_usd:.8f} USD"


def _times(of: Percentiles) -> str:
    times = f"p50 {of.p50:.1f} ms, p95 {of.p95:.1f} ms, p99 {of.p99:.1f} ms"
    return times + few_for_p99(of.count)
