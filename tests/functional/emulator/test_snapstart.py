"""SnapStart in the emulator: environments of published versions are restored, and the log says so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psutil
import pytest

from coldframe.capacity.prices import PRICES
from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.environments.spawn import can_freeze
from coldframe_local.emulator.lambda_service.lambda_types import InvalidParameterValueException
from coldframe_local.emulator.lambda_service.settings import LogFormat, LoggingConfig
from coldframe_local.emulator.template.template import load_template
from tests.conftest import ROOT
from tests.support.emulation import FakeClock, answer, function, invoke, is_alive, until

pytestmark = pytest.mark.anyio

ASSUMED_MS = 20.0
HOUR_S = 3600.0


@asynccontextmanager
async def serving(lines: list[str], **changes: Any) -> AsyncIterator[LambdaService]:
    """The function `f` with SnapStart, published as `live`; its clock stands still."""
    settings = {"handler": "snapstart_handlers.hooks", "snapstart": True, "restore_ms": ASSUMED_MS}
    clock = changes.pop("clock", FakeClock())
    async with LambdaService(lines.append, clock=clock) as service:
        service.create_function(function(runtime="python3.13", **{**settings, **changes}))
        service.functions.put_alias("f", "live", service.functions.publish("f"))
        await until(lambda: any("INIT_REPORT" in line or "initReport" in line for line in lines))
        lines.clear()
        yield service


def kinds(lines: list[str]) -> list[str]:
    return [line.split(" ")[0] for line in lines]


async def test_restore_has_its_lines_and_no_init_duration(lines: list[str]) -> None:
    """RESTORE_START, RESTORE_REPORT, and a REPORT that bills what the hooks took; a warm call has none."""
    async with serving(lines) as service:
        cold, warm = await invoke(service), await invoke(service)
    assert kinds(lines) == [
        "RESTORE_START", "RESTORE_REPORT", "START", "END", "REPORT", "START", "END", "REPORT",
    ]  # fmt: skip
    assert cold.cold
    assert cold.init_ms is None
    assert cold.restore_ms is not None
    assert cold.restore_ms >= ASSUMED_MS
    assert cold.billed_ms >= cold.billed_restore_ms >= cold.restore_ms - ASSUMED_MS
    lasted = f"Restore Duration: {cold.restore_ms:.2f} ms"
    assert lines[1] == f"RESTORE_REPORT {lasted}"
    assert lines[4].endswith(f"\t{lasted}\tBilled Restore Duration: {cold.billed_restore_ms} ms")
    assert (warm.restore_ms, warm.billed_restore_ms) == (None, 0)


async def test_version_is_loaded_when_it_is_published(lines: list[str]) -> None:
    """Its init phase is in the log, and no invocation waits for it."""
    async with LambdaService(lines.append) as service:
        service.create_function(function(snapstart=True, runtime="python3.13"))
        lines.clear()
        service.functions.publish("f")
        await until(lambda: len(lines) == 2)
        assert kinds(lines) == ["INIT_START", "INIT_REPORT"]
        assert not service.snapshot().environments


@pytest.mark.skipif(not can_freeze(), reason="needs util-linux's setpriv")
async def test_snapshot_stands_still_until_it_is_restored(lines: list[str]) -> None:
    """Nothing of the function runs behind its snapshot."""
    others = set(psutil.Process().children())  # servers of other tests
    async with serving(lines) as service:
        [waiting] = set(psutil.Process().children()) - others
        await until(lambda: waiting.status() == psutil.STATUS_STOPPED)
        assert (await invoke(service)).restore_ms is not None


async def test_burst_is_restored_too(lines: list[str]) -> None:
    """One process was loaded ahead; the others load for their restores, and each serves one request."""
    async with serving(lines) as service:
        ended = await asyncio.gather(*(invoke(service) for _ in range(4)))
        pids = {view.pid for view in service.snapshot().environments}
    assert len(pids) == 4
    assert all(one.restore_ms is not None and one.cold for one in ended)
    assert kinds(lines).count("RESTORE_REPORT") == 4
    await until(lambda: not any(is_alive(pid) for pid in pids if pid))


async def test_hooks_run_as_on_lambda(lines: list[str]) -> None:
    """Before the snapshot and after the restore, in a process that knows it was started from a snapshot."""
    async with serving(lines) as service:
        told = answer(await invoke(service))
    assert told["ran"] == ["before snapshot", "after restore"]
    assert told["environ"]["AWS_LAMBDA_INITIALIZATION_TYPE"] == "snap-start"
    assert "AWS_LAMBDA_LOG_STREAM_NAME" not in told["environ"]


async def test_successor_of_a_crashed_environment_runs_a_full_init(lines: list[str]) -> None:
    """The one after it is restored again."""
    async with serving(lines) as service:
        await invoke(service, {"do": "leave"})
        await until(lambda: not service.snapshot().environments)
        full = await invoke(service)
        assert full.init_ms is not None
        assert full.restore_ms is None
        # Nothing was restored, but the client of the runtime runs its hooks as always.
        assert answer(full)["ran"] == ["before snapshot", "after restore"]
        service.recycle("f")
        await until(lambda: not service.snapshot().environments)
        assert (await invoke(service)).restore_ms is not None


async def test_hook_that_fails_fails_the_restore_and_its_invocation(lines: list[str]) -> None:
    """RESTORE_REPORT says why, and the caller gets the hook's error."""
    async with serving(lines, environ={"FAILING": "1"}) as service:
        failed = await invoke(service)
        assert (failed.outcome.status, failed.outcome.error_type) == ("error", "Runtime.AfterRestoreError")
        assert b"no such secret" in failed.outcome.payload
        assert not service.snapshot().environments
    report = next(line for line in lines if line.startswith("RESTORE_REPORT"))
    assert report.endswith("\tStatus: error\tError Type: Runtime.AfterRestoreError")


async def test_only_published_versions_have_a_snapshot(lines: list[str]) -> None:
    """$LATEST runs its init phase, and tells its function so."""
    async with serving(lines) as service:
        latest = await invoke(service, qualifier=None)
    assert latest.init_ms is not None
    assert answer(latest)["environ"]["AWS_LAMBDA_INITIALIZATION_TYPE"] == "on-demand"
    assert kinds(lines)[0] == "INIT_START"


async def test_snapshots_and_restores_are_billed_by_memory(lines: list[str]) -> None:
    """One version for an hour, and one restore, beside what the invocation itself costs."""
    clock = FakeClock()
    async with serving(lines, memory_mb=1024, clock=clock) as service:
        cold = await invoke(service)
        clock.now_s = HOUR_S
        (view,) = service.snapshot().functions
    prices = PRICES["x86_64"]
    call_usd = prices.request_usd + cold.billed_ms / 1000 * prices.on_demand_gb_s_usd
    kept_usd = HOUR_S * prices.snapstart_cache_gb_s_usd
    assert view.cost_usd == pytest.approx(call_usd + prices.snapstart_restore_gb_usd + kept_usd)


async def test_snapstart_excludes_provisioned_concurrency(lines: list[str]) -> None:
    """As on Lambda."""
    async with serving(lines) as service:
        with pytest.raises(InvalidParameterValueException, match="SnapStart"):
            service.concurrency.put_provisioned("f", "live", 1)


async def test_json_log_tells_of_restores(lines: list[str]) -> None:
    """As events of the Telemetry API."""
    async with serving(lines, logging=LoggingConfig(LogFormat.JSON)) as service:
        await invoke(service)
    text = "\n".join(lines)
    for said in ('"platform.restoreStart"', '"platform.restoreReport"', '"billedRestoreDurationMs"'):
        assert said in text


def test_template_switches_it_on() -> None:
    """ColdStartMode=SnapStart of the project's template, for its predict function."""
    for mode, expected in (("SnapStart", True), ("OnDemand", False)):
        loaded = load_template(ROOT / "template.yaml", {"ColdStartMode": mode})
        predict = next(one for one in loaded.functions if one.logical_id == "PredictFunction")
        assert predict.settings.snapstart is expected
