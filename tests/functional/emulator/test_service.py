"""The emulated Lambda service, on real environments with AWS's runtime client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from coldframe.capacity.admission import Limits, Throttle, ThrottleReason
from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.environments.pool import EnvironmentPool
from coldframe_local.emulator.lambda_service.environments.spawn import can_freeze
from coldframe_local.emulator.lambda_service.lambda_types import (
    EnvironmentView,
    InvalidParameterValueException,
    Invoked,
    ProvisionedConcurrencyConfigNotFoundException,
    ResourceConflictException,
    ResourceNotFoundException,
)
from tests.support.emulation import (
    PATIENCE_S,
    FakeClock,
    answer,
    function,
    invoke,
    is_alive,
    reports,
    running_pids,
    until,
)

pytestmark = [pytest.mark.waits, pytest.mark.anyio]


@asynccontextmanager
async def serving(lines: list[str], clock: Any = None, **changes: Any) -> AsyncIterator[LambdaService]:
    """A service with the function `f`, whose version 1 is published as `live`."""
    of_the_service = ("account_concurrency", "machine_environments", "init_cores", "keep_alive_s")
    settings = {name: changes.pop(name) for name in of_the_service if name in changes}
    if clock is not None:
        settings["clock"] = clock
    async with LambdaService(lines.append, **settings) as service:
        service.create_function(function(**changes))
        service.functions.put_alias("f", "live", service.functions.publish("f"))
        yield service


def environments(service: LambdaService) -> list[EnvironmentView]:
    return list(service.snapshot().environments)


async def provision(service: LambdaService, count: int, qualifier: str = "live") -> None:
    """Provisioned concurrency that is up."""
    service.concurrency.put_provisioned("f", qualifier, count)
    await until(lambda: service.concurrency.get_provisioned("f", qualifier).status == "READY")


# Provisioned concurrency.


async def test_provisioned_environments_are_initialised_before_any_invocation(lines: list[str]) -> None:
    """IN_PROGRESS, then READY with as many environments as asked for; the first answer is not cold."""
    async with serving(lines) as service:
        config = service.concurrency.put_provisioned("f", "live", 2)
        assert (config.status, config.requested, config.allocated) == ("IN_PROGRESS", 2, 0)
        await until(lambda: service.concurrency.get_provisioned("f", "live").status == "READY")
        config = service.concurrency.get_provisioned("f", "live")
        before = {view.pid for view in environments(service)}
        invoked = await invoke(service)
    assert (config.allocated, config.available, config.version) == (2, 2, "1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+0000", config.last_modified)
    assert answer(invoked)["pid"] in before
    assert (invoked.provisioned, invoked.cold, invoked.init_ms) == (True, False, None)


async def test_provisioned_environment_knows_what_it_is_and_does_not_bill_its_init(lines: list[str]) -> None:
    """AWS_LAMBDA_INITIALIZATION_TYPE says so; INIT_REPORT has the init, REPORT only the invocation."""
    async with serving(lines) as service:
        await provision(service, 1)
        environ = answer(await invoke(service))["environ"]
    assert environ["AWS_LAMBDA_INITIALIZATION_TYPE"] == "provisioned-concurrency"
    assert environ["AWS_LAMBDA_FUNCTION_VERSION"] == "1"
    assert re.fullmatch(r"INIT_REPORT Init Duration: [\d.]+ ms\tPhase: init", lines[0])
    (report,) = reports(lines)
    assert "Init Duration" not in report
    numbers = dict(re.findall(r"((?:Billed )?Duration): ([\d.]+) ms", report))
    assert float(numbers["Billed Duration"]) < float(numbers["Duration"]) + 1.01


async def test_emulator_allocates_provisioned_environments_at_their_rate(lines: list[str]) -> None:
    """The second one begins when the rate allows it, and both come up; a pool that closes waits for none."""
    limits = Limits(allocation_burst=1, allocation_per_s=5.0)
    pool = EnvironmentPool(function(), limits, lines.append, asyncio.Semaphore(2))
    pool.set_provisioned("1", 2)
    await asyncio.sleep(0)
    begun = [environment_id for environment_id, _ in pool.environments()]
    await until(lambda: pool.state.provisioned["1"].allocated == 2)
    pool.set_provisioned("1", 500)
    await pool.close()
    assert begun == [0]
    assert not list(pool.environments())


async def test_spillover_starts_on_demand_once_every_provisioned_environment_is_busy(
    lines: list[str], tmp_path: Path
) -> None:
    """Of three at once two are provisioned; the third one starts cold, on demand, and is counted."""
    async with serving(lines, handler="handlers.gate", environ={"GATE": str(tmp_path)}) as service:
        await provision(service, 2)
        async with asyncio.TaskGroup() as group:
            invocations = [group.create_task(invoke(service)) for _ in range(3)]
            await until(lambda: len(running_pids(tmp_path)) == 3)
            busy = service.snapshot().functions[0]
            (tmp_path / "open").touch()
        counted = service.snapshot().functions[0]
    results = sorted((task.result() for task in invocations), key=lambda invoked: invoked.spillover)
    assert [(one.provisioned, one.cold, one.spillover) for one in results] == [
        (True, False, False),
        (True, False, False),
        (False, True, True),
    ]
    assert (busy.concurrent_executions, busy.provisioned_utilization) == (3, 1.0)
    assert (counted.spillover_invocations, counted.provisioned_invocations) == (1, 2)
    types = {answer(one)["environ"]["AWS_LAMBDA_INITIALIZATION_TYPE"] for one in results}
    assert types == {"on-demand", "provisioned-concurrency"}


async def test_killed_provisioned_environment_is_replaced(lines: list[str]) -> None:
    """The count comes back by itself, with another process."""
    async with serving(lines) as service:
        await provision(service, 1)
        (killed,) = environments(service)
        assert killed.pid is not None
        os.kill(killed.pid, signal.SIGKILL)
        await until(lambda: [view.id for view in environments(service)] == [1])
        await until(lambda: service.concurrency.get_provisioned("f", "live").status == "READY")
        invoked = await invoke(service)
    assert invoked.provisioned
    assert answer(invoked)["pid"] != killed.pid


async def test_provisioned_init_that_fails_is_reported_and_given_up(lines: list[str], tmp_path: Path) -> None:
    """FAILED with AWS's reason, after three attempts; invocations go on demand meanwhile."""
    (tmp_path / "broken.py").write_text("raise LookupError('at import')")
    async with serving(lines, handler="broken.handler", task_root=tmp_path) as service:
        service.concurrency.put_provisioned("f", "live", 1)
        await until(lambda: service.concurrency.get_provisioned("f", "live").status == "FAILED")
        config = service.concurrency.get_provisioned("f", "live")
        await until(lambda: not environments(service))
        invoked = await invoke(service)
    assert config.status_reason == "FUNCTION_ERROR_INIT_FAILURE"
    assert sum("Phase: init\tStatus: error\tError Type: LookupError" in line for line in lines) == 4
    assert invoked.outcome.error_type == "LookupError"
    assert json.loads(invoked.outcome.payload)["errorMessage"] == "at import"


async def test_less_provisioned_concurrency_stops_idle_environments_first(
    lines: list[str], tmp_path: Path
) -> None:
    """A busy one finishes its invocation, and only then stops."""
    async with serving(lines, handler="handlers.gate", environ={"GATE": str(tmp_path)}) as service:
        await provision(service, 3)
        async with asyncio.TaskGroup() as group:
            invocation = group.create_task(invoke(service))
            await until(lambda: len(running_pids(tmp_path)) == 1)
            service.concurrency.delete_provisioned("f", "live")
            await until(lambda: len(environments(service)) == 1)
            (tmp_path / "open").touch()
        await until(lambda: not environments(service))
    assert answer(invocation.result())["pid"] == running_pids(tmp_path)[0]
    assert not is_alive(running_pids(tmp_path)[0])


async def test_provisioned_concurrency_moves_with_its_alias(lines: list[str]) -> None:
    """When `live` points to a new version, its environments are those of the new one."""
    async with serving(lines) as service:
        await provision(service, 1)
        service.recycle("f")
        service.functions.put_alias("f", "live", service.functions.publish("f"))
        await until(lambda: service.concurrency.get_provisioned("f", "live").status == "READY")
        invoked = await invoke(service)
        versions = {view.version for view in environments(service)}
    assert (invoked.executed_version, invoked.provisioned) == ("2", True)
    assert answer(invoked)["environ"]["AWS_LAMBDA_FUNCTION_VERSION"] == "2"
    assert versions == {"2"}


async def test_provisioned_init_may_take_longer_than_the_init_limit(lines: list[str], tmp_path: Path) -> None:
    """The ten seconds (here none) are for on-demand environments."""
    (tmp_path / "app.py").write_text("def handler(event, context): return 'up'")
    changes: dict[str, Any] = {"handler": "app.handler", "task_root": tmp_path, "init_limit_s": 0.0}
    async with serving(lines, **changes) as service:
        await provision(service, 1)
        invoked = await invoke(service)
    assert (answer(invoked), invoked.provisioned) == ("up", True)


# The init phase.


async def test_init_over_its_limit_is_run_again_inside_the_invocation(
    lines: list[str], tmp_path: Path
) -> None:
    """Another process loads the function under its timeout; the duration has that init phase in it."""
    source = """
import os, pathlib, time
pathlib.Path(f"init-{os.getpid()}").touch()
if len(list(pathlib.Path().glob("init-*"))) == 1:
    time.sleep(3600)
time.sleep(0.2)
def handler(event, context): return context.get_remaining_time_in_millis()
"""
    (tmp_path / "slow.py").write_text(source)
    changes: dict[str, Any] = {"handler": "slow.handler", "task_root": tmp_path, "init_limit_s": 1.0}
    async with serving(lines, **changes) as service:
        invoked = await invoke(service)
        pids = [int(path.name.removeprefix("init-")) for path in tmp_path.glob("init-*")]
        survivors = [pid for pid in pids if is_alive(pid)]
        again = await invoke(service)
    assert 0 < answer(invoked) < 28_800  # what its timeout of 29 s leaves after that init phase
    assert invoked.cold
    assert invoked.init_ms is None
    assert invoked.duration_ms > 200
    assert (len(pids), len(survivors)) == (2, 1)
    assert re.fullmatch(r"INIT_REPORT Init Duration: [\d.]+ ms\tPhase: init\tStatus: timeout", lines[0])
    assert [line.split(" ")[0] for line in lines[1:4]] == ["START", "END", "REPORT"]
    assert "Init Duration" not in lines[3]
    assert (again.cold, answer(again) > 28_800) == (False, True)


async def test_init_that_is_too_slow_twice_is_a_timeout(lines: list[str], tmp_path: Path) -> None:
    """The second attempt ends with the function's timeout, and is told as Lambda tells it."""
    (tmp_path / "stuck.py").write_text("import time; time.sleep(3600)")
    changes: dict[str, Any] = {"handler": "stuck.handler", "task_root": tmp_path}
    async with serving(lines, **changes, init_limit_s=0.1, timeout_s=0.3) as service:
        invoked = await invoke(service)
        assert environments(service) == []
    patterns = [
        r"INIT_REPORT Init Duration: [\d.]+ ms\tPhase: init\tStatus: timeout",
        r"INIT_REPORT Init Duration: [\d.]+ ms\tPhase: invoke\tStatus: timeout",
        r"START RequestId: [0-9a-f-]{36} Version: 1",
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [0-9a-f-]{36} Task timed out after 0\.30 seconds",
        r"END RequestId: [0-9a-f-]{36}",
        r"REPORT .*\tStatus: timeout",
    ]
    assert len(lines) == len(patterns)
    for pattern, line in zip(patterns, lines, strict=True):
        assert re.fullmatch(pattern, line), line
    assert invoked.outcome.status == "timeout"
    assert json.loads(invoked.outcome.payload) == {
        "errorType": "Sandbox.Timedout",
        "errorMessage": f"RequestId: {invoked.request_id} Error: Task timed out after 0.30 seconds",
    }


async def test_init_error_that_goes_away_costs_only_time(lines: list[str], tmp_path: Path) -> None:
    """An init phase that fails once is run again inside the invocation, which is then answered."""
    source = """
import pathlib
mark = pathlib.Path("mark")
if not mark.exists():
    mark.touch()
    raise LookupError("once")
def handler(event, context): return "up"
"""
    (tmp_path / "once.py").write_text(source)
    async with serving(lines, handler="once.handler", task_root=tmp_path) as service:
        invoked = await invoke(service)
    assert answer(invoked) == "up"
    assert sum(line.startswith("INIT_REPORT ") for line in lines) == 1


# Memory.


@pytest.mark.parametrize("wait", [True, False])
async def test_environment_over_its_memory_is_killed(lines: list[str], wait: bool) -> None:
    """While it works, or before its answer counts: Lambda's log lines, and all of its memory used."""
    async with serving(lines, handler="handlers.allocate", memory_mb=128) as service:
        invoked = await invoke(service, {"mb": 200, "wait": wait})
        following = await invoke(service, {"mb": 1})
    assert invoked.outcome.error_type == "Runtime.ExitError"
    assert invoked.max_memory_mb == 128
    start = lines.index(f"START RequestId: {invoked.request_id} Version: 1")
    assert lines[start + 1 : start + 4] == [
        f"RequestId: {invoked.request_id} Error: Runtime exited with error: signal: killed",
        "Runtime.ExitError",
        f"END RequestId: {invoked.request_id}",
    ]
    assert "\tMemory Size: 128 MB\tMax Memory Used: 128 MB\t" in lines[start + 4]
    assert lines[start + 4].endswith("Status: error\tError Type: Runtime.ExitError")
    assert (answer(following), following.cold) == (1024 * 1024, True)


async def test_memory_that_is_mapped_and_not_touched_does_not_count(lines: list[str], tmp_path: Path) -> None:
    """A function may map far more than its memory, as native libraries do."""
    source = "import mmap\nheld = mmap.mmap(-1, 2**32)\ndef handler(event, context): return len(held)"
    (tmp_path / "mapped.py").write_text(source)
    async with serving(lines, handler="mapped.handler", task_root=tmp_path, memory_mb=128) as service:
        invoked = await invoke(service)
    assert answer(invoked) == 2**32
    assert 0 < invoked.max_memory_mb < 128


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's prlimit")
async def test_environment_may_have_as_many_files_as_on_lambda(lines: list[str]) -> None:
    """1,024, whatever the emulator itself may have."""
    async with serving(lines, handler="handlers.files") as service:
        assert answer(await invoke(service)) == [1024, 1024]


# CPU.


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's clocks of other processes")
async def test_cpu_is_in_proportion_to_memory(lines: list[str]) -> None:
    """442 MB are a quarter of a CPU: a busy environment is stopped in between, and runs on."""
    async with serving(lines, handler="handlers.burn", memory_mb=442, cpu_from_memory=True) as service:
        await invoke(service, {"cpu_s": 0.0001})
        (view,) = environments(service)
        status = Path(f"/proc/{view.pid}/status")
        burning = asyncio.create_task(invoke(service, {"cpu_s": 0.3}))
        await until(lambda: "State:\tT" in status.read_text() and not burning.done())
        used_s = answer(await burning)
        again = await invoke(service, {"cpu_s": 0.0001})
    assert used_s >= 0.3
    assert not again.cold


@pytest.mark.skipif(not can_freeze(), reason="needs util-linux's setpriv")
async def test_frozen_environment_runs_only_during_invocations(lines: list[str], tmp_path: Path) -> None:
    """A thread that counts on its own stands still between two invocations; leaving ends it all the same."""
    source = """
import threading, time
count = 0
def work():
    global count
    while True:
        count += 1
        time.sleep(0.0001)
threading.Thread(target=work, daemon=True).start()
def handler(event, context):
    before = count
    while count == before:
        time.sleep(0.0001)
    return count
"""
    (tmp_path / "busy.py").write_text(source)
    async with serving(lines, handler="busy.handler", task_root=tmp_path) as service:
        await invoke(service)
        (view,) = environments(service)
        status = Path(f"/proc/{view.pid}/status")
        await until(lambda: "State:\tT" in status.read_text())
        again = await invoke(service)
        await provision(service, 1)
        provisioned = await invoke(service)
        pids = [view.pid for view in environments(service)]
    assert answer(again) > 0
    assert (again.cold, provisioned.provisioned) == (False, True)
    assert answer(provisioned) > 0
    assert not any(is_alive(pid) for pid in pids if pid is not None)


@pytest.mark.skipif(not can_freeze(), reason="needs util-linux's setpriv")
async def test_frozen_environments_are_reused_expired_and_killed(lines: list[str]) -> None:
    """A stopped process serves again with its CPU limited, leaves when it expires, and can be killed."""
    clock = FakeClock()
    settings = {"handler": "handlers.burn", "memory_mb": 442, "cpu_from_memory": True}
    async with serving(lines, clock=clock, keep_alive_s=60.0, **settings) as service:
        first = await invoke(service, {"cpu_s": 0.05})
        pid = environments(service)[0].pid
        assert pid is not None
        await until(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
        again = await invoke(service, {"cpu_s": 0.05})
        clock.now_s += 61.0
        expired = await invoke(service, {"cpu_s": 0.0001})
        await until(lambda: not is_alive(pid))
        killed = environments(service)[0].pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        await until(lambda: not environments(service))
        following = await invoke(service, {"cpu_s": 0.0001})
    assert [one.cold for one in (first, again, expired, following)] == [True, False, True, True]
    assert first.max_memory_mb > 0


async def test_environment_runs_on_where_it_is_not_to_be_frozen(lines: list[str], tmp_path: Path) -> None:
    """`freeze=False`: a thread of the function goes on between invocations."""
    source = """
import threading, time
from pathlib import Path
def work(path):
    while not Path(path + ".go").exists():
        time.sleep(0.001)
    Path(path).touch()
def handler(event, context):
    threading.Thread(target=work, args=(event["path"],), daemon=True).start()
"""
    (tmp_path / "busy.py").write_text(source)
    done, go = tmp_path / "done", tmp_path / "done.go"
    async with serving(lines, handler="busy.handler", task_root=tmp_path, freeze=False) as service:
        await invoke(service, {"path": str(done)})
        go.touch()
        await until(done.exists)


# Versions, aliases, and what is refused.


async def test_qualifier_chooses_the_version_and_is_in_the_arn(lines: list[str]) -> None:
    """$LATEST, a number and an alias are three ways to name a function, each seen by it."""
    async with serving(lines) as service:
        seen = {}
        for qualifier in (None, "$LATEST", "1", "live"):
            invoked = await invoke(service, qualifier=qualifier)
            seen[qualifier] = invoked.executed_version, answer(invoked)["arn"].rpartition(":function:")[2]
        count = len(environments(service))
    assert seen == {
        None: ("$LATEST", "f"),
        "$LATEST": ("$LATEST", "f:$LATEST"),
        "1": ("1", "f:1"),
        "live": ("1", "f:live"),
    }
    assert count == 2  # versions do not share environments, aliases of a version do


async def test_unknown_names_are_not_found(lines: list[str]) -> None:
    """A function, version or alias that is not there, and provisioned concurrency that was never set."""
    async with serving(lines) as service:
        for name, qualifier in (("g", None), ("f", "7"), ("f", "blue")):
            with pytest.raises(ResourceNotFoundException, match=f"Function not found.*{qualifier or name}"):
                await service.invoke(name, qualifier, b"{}")
        with pytest.raises(ResourceNotFoundException):
            service.functions.put_alias("f", "live", "7")
        with pytest.raises(ProvisionedConcurrencyConfigNotFoundException):
            service.concurrency.get_provisioned("f", "live")
        with pytest.raises(ResourceConflictException):
            service.create_function(function())


async def test_settings_that_lambda_refuses(lines: list[str]) -> None:
    """Each with what was found, what was expected and what to do."""
    async with serving(lines, account_concurrency=1000) as service:
        put = service.concurrency.put_provisioned
        with pytest.raises(InvalidParameterValueException, match="unpublished function versions"):
            put("f", "$LATEST", 1)
        with pytest.raises(InvalidParameterValueException, match="is 0, expected at least 1"):
            put("f", "live", 0)
        with pytest.raises(InvalidParameterValueException, match="only 900 of the unreserved"):
            put("f", "live", 901)
        with pytest.raises(InvalidParameterValueException, match=r"minimum value of \[100\].*Reserve 900"):
            service.concurrency.put_reserved("f", 901)
        service.concurrency.put_reserved("f", 2)
        with pytest.raises(InvalidParameterValueException, match="only 2 of the reserved"):
            put("f", "live", 3)
        put("f", "live", 2)
        with pytest.raises(InvalidParameterValueException, match="through live already"):
            put("f", "1", 1)
        with pytest.raises(InvalidParameterValueException, match="less than the 2 provisioned"):
            service.concurrency.put_reserved("f", 1)
        with pytest.raises(InvalidParameterValueException, match="MemorySize of g is 64 MB, expected 128"):
            service.create_function(function(name="g", memory_mb=64))
        settings = service.concurrency.account_settings()
    assert (settings.concurrent_executions, settings.unreserved_concurrent_executions) == (1000, 998)


async def test_all_reserved_concurrency_provisioned_throttles_the_unpublished_version(
    lines: list[str],
) -> None:
    """With as much provisioned as is reserved, `$LATEST` has nothing left."""
    async with serving(lines) as service:
        service.concurrency.put_reserved("f", 1)
        await provision(service, 1)
        refused = await service.invoke("f", "$LATEST", b"{}")
        served = await invoke(service)
    assert refused == Throttle(ThrottleReason("ReservedFunctionConcurrentInvocationLimitExceeded"))
    assert served.provisioned


async def test_functions_share_the_concurrency_of_the_account(lines: list[str], tmp_path: Path) -> None:
    """What one function uses is missing to another one, unless that has reserved some."""
    changes = {"handler": "handlers.gate", "environ": {"GATE": str(tmp_path)}}
    async with serving(lines, account_concurrency=10, **changes) as service:
        service.create_function(function(name="g"))
        async with asyncio.TaskGroup() as group:
            for _ in range(9):
                group.create_task(invoke(service))
            await until(lambda: len(running_pids(tmp_path)) == 9)
            tenth = await service.invoke("g", None, b"{}")
            service.concurrency.put_reserved("g", 1)
            refused = await service.invoke("f", "live", b"{}")
            own = await service.invoke("g", None, b"{}")
            (tmp_path / "open").touch()
    assert isinstance(tenth, Invoked)
    assert isinstance(own, Invoked)
    assert refused == Throttle(ThrottleReason("ConcurrentInvocationLimitExceeded"))


@pytest.mark.parametrize("limit", [40, 50])
async def test_burst_on_a_cold_pool_gives_one_environment_each_or_429_exactly(
    lines: list[str], limit: int
) -> None:
    """50 at once start as many environments as the limit allows, and the rest is throttled."""
    async with serving(lines, handler="handlers.nothing") as service:
        service.concurrency.put_reserved("f", limit)
        async with asyncio.timeout(PATIENCE_S):
            results = await asyncio.gather(*(service.invoke("f", "live", b"{}") for _ in range(50)))
        view = service.snapshot()
    refused = [result for result in results if isinstance(result, Throttle)]
    assert refused == [Throttle(ThrottleReason.RESERVED_CONCURRENCY)] * (50 - limit)
    assert sum(isinstance(result, Invoked) and result.cold for result in results) == limit
    assert len({environment.pid for environment in view.environments}) == limit
    assert view.functions[0].most_concurrent_executions == limit


# Development, and what is to be seen.


async def test_recycled_environments_load_changed_code(lines: list[str], tmp_path: Path) -> None:
    """Idle and provisioned ones are replaced; the next answers are of the new code."""
    app = tmp_path / "app.py"
    app.write_text("def handler(event, context): return 'old'")
    async with serving(lines, handler="app.handler", task_root=tmp_path) as service:
        await provision(service, 1)
        before = [answer(await invoke(service)), answer(await invoke(service, qualifier=None))]
        app.write_text("def handler(event, context): return 'brand new'")
        service.recycle("f")
        await until(lambda: service.concurrency.get_provisioned("f", "live").status == "READY")
        after = [answer(await invoke(service)), answer(await invoke(service, qualifier=None))]
    assert (before, after) == (["old", "old"], ["brand new", "brand new"])


async def test_log_tail_is_the_invocations_own_and_ends_with_its_report(lines: list[str]) -> None:
    """START, what the function wrote, END and REPORT of this invocation, 4 KB at most."""
    async with serving(lines, handler="handlers.speak") as service:
        await invoke(service)
        invoked = await invoke(service)
    tail = invoked.log_tail.decode().splitlines()
    assert [line.split(" ")[0] for line in tail] == ["START", "first", "second", "END", "REPORT"]
    assert all(invoked.request_id in line for line in (tail[0], tail[3], tail[4]))


async def test_snapshot_shows_every_environment(lines: list[str], tmp_path: Path) -> None:
    """State, kind, age, invocations and memory of each, and the counters of the function."""
    async with serving(lines, handler="handlers.gate", environ={"GATE": str(tmp_path)}) as service:
        await provision(service, 1)
        async with asyncio.TaskGroup() as group:
            group.create_task(invoke(service))
            await until(lambda: len(running_pids(tmp_path)) == 1)
            (busy,) = environments(service)
            (tmp_path / "open").touch()
        (idle,) = environments(service)
        counted = service.snapshot().functions[0]
    assert (busy.state, busy.provisioned, busy.pid) == ("INVOKING", True, running_pids(tmp_path)[0])
    assert busy.invocation_age_s is not None
    assert 0 <= busy.invocation_age_s <= busy.age_s
    assert (idle.state, idle.invocations, idle.invocation_age_s) == ("READY", 1, None)
    assert 0 < idle.memory_mb <= 512
    assert (counted.arrivals, counted.invocations, counted.errors, counted.throttles) == (1, 1, 0, 0)
    assert counted.duration_ms.p50 <= counted.latency_ms.p50


async def test_changes_wake_those_who_wait_for_them(lines: list[str]) -> None:
    """A revision only grows; who has seen the latest one waits for the next change."""
    async with serving(lines) as service:
        seen = service.snapshot().revision
        waiting = asyncio.create_task(service.changed(seen))
        await asyncio.sleep(0)
        assert not waiting.done()
        await invoke(service)
        assert await waiting > seen
        assert await service.changed(seen) == service.snapshot().revision


async def test_cost_is_that_of_aws(lines: list[str]) -> None:
    """A request, its billed GB-seconds, and every second of provisioned concurrency, at AWS's prices."""
    clock = FakeClock()
    async with serving(lines, clock, memory_mb=1024, architecture="arm64") as service:
        invoked = await invoke(service, qualifier=None)
        after_one = service.snapshot().functions[0].cost_usd
        await provision(service, 2)
        before = service.snapshot().functions[0].cost_usd
        clock.now_s += 3600
        after_an_hour = service.snapshot().functions[0].cost_usd
    assert after_one == pytest.approx(0.2e-6 + invoked.billed_ms / 1000 * 0.0000133334)
    assert after_an_hour - before == pytest.approx(2 * 3600 * 0.0000033334)
