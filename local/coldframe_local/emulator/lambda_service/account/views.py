"""Views of a function and of an environment at one moment."""

from __future__ import annotations

import time

from coldframe_local.emulator.lambda_service.account.hosted import HostedFunction
from coldframe_local.emulator.lambda_service.environments.environment import ExecutionEnvironment
from coldframe_local.emulator.lambda_service.lambda_types import (
    EnvironmentView,
    FunctionView,
    ProvisionedConcurrencyConfig,
)


def function_view(
    function: HostedFunction,
    provisioned: tuple[ProvisionedConcurrencyConfig, ...],
    machine_environments: int | None,
    now: float,
) -> FunctionView:
    """machine_environments: of a function without a reservation. now: by the clock of the metrics."""
    settings, metrics = function.settings, function.metrics
    return FunctionView(
        name=settings.name,
        memory_size_mb=settings.memory_mb,
        timeout_s=settings.timeout_s,
        reserved_concurrency=function.reserved,
        machine_environments=machine_environments if function.reserved is None else None,
        aliases=tuple(function.aliases),
        provisioned=provisioned,
        concurrent_executions=metrics.state().in_flight,
        most_concurrent_executions=metrics.most_concurrent,
        arrivals=metrics.arrivals,
        invocations=metrics.invocations,
        errors=metrics.errors,
        throttles=metrics.throttles,
        cold_starts=metrics.cold_starts,
        provisioned_invocations=metrics.provisioned_invocations,
        spillover_invocations=metrics.spillover_invocations,
        provisioned_utilization=metrics.provisioned_utilization,
        arrivals_per_s=metrics.arrival_rate.per_s(now),
        throttles_per_s=metrics.throttle_rate.per_s(now),
        latency_ms=metrics.latency_ms.percentiles(),
        duration_ms=metrics.duration_ms.percentiles(),
        init_ms=metrics.init_ms.percentiles(),
        cost_usd=metrics.bill.usd(now),
    )


def environment_view(
    function: str, environment_id: int, environment: ExecutionEnvironment
) -> EnvironmentView:
    """function: its name."""
    now = time.perf_counter()
    began = environment.invocation_started_s
    return EnvironmentView(
        function=function,
        version=environment.function.version,
        id=environment_id,
        pid=environment.pid,
        state=environment.state,
        provisioned=environment.provisioned,
        age_s=now - environment.started_s,
        invocations=environment.invocations,
        invocation_age_s=None if began is None else now - began,
        memory_mb=environment.max_memory_mb,
    )
