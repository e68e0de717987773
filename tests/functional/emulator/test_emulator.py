"""The emulator from outside: HTTP in, real environments with AWS's runtime client, HTTP out."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
from itertools import islice
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from coldframe.capacity.idle_expiry import IdleExpiry
from coldframe.capacity.switches import Switches
from coldframe.server.listening import CannotListen
from coldframe_local.emulator.front.emulator import Emulator
from tests.support.emulation import HERE, FakeClock, is_alive, reports, running_pids, until
from tests.support.running import SERVE, LogLines, client_of, emulator_process, options, serving

pytestmark = [pytest.mark.waits, pytest.mark.anyio]


async def test_two_requests_in_a_row_share_one_environment(lines: LogLines) -> None:
    """The first request starts an environment, the second one finds it warm."""
    async with serving(lines) as client:
        first = (await client.get("/echo")).json()
        second = (await client.get("/echo")).json()
    assert (first["start"], second["start"]) == ("cold", "warm")
    assert first["pid"] == second["pid"]


async def test_concurrent_requests_get_an_environment_each(lines: LogLines, tmp_path: Path) -> None:
    """Requests at the same time never share an environment, and all of them start cold."""
    async with serving(lines, environ={"GATE": str(tmp_path)}) as client, asyncio.TaskGroup() as group:
        requests = [group.create_task(client.get("/gate")) for _ in range(3)]
        await until(lambda: len(running_pids(tmp_path)) == 3)
        (tmp_path / "open").touch()
    answers = [request.result().json() for request in requests]
    assert {answer["start"] for answer in answers} == {"cold"}
    assert len({answer["pid"] for answer in answers}) == 3


async def test_request_beyond_the_limit_is_throttled(lines: LogLines, tmp_path: Path) -> None:
    """With every environment busy the next request is refused at once, and served once one is free."""
    async with serving(lines, environ={"GATE": str(tmp_path)}, max_environments=2) as client:
        async with asyncio.TaskGroup() as group:
            requests = [group.create_task(client.get("/gate")) for _ in range(2)]
            await until(lambda: len(running_pids(tmp_path)) == 2)
            refused = await client.get("/echo")
            (tmp_path / "open").touch()
        served = await client.get("/echo")
    assert refused.status_code == 429
    assert refused.headers["x-amzn-errortype"] == "TooManyRequestsException"
    assert refused.headers["content-type"] == "application/problem+json"
    assert (
        refused.json().items()
        >= {
            "Reason": "ConcurrentInvocationLimitExceeded",
            "Type": "User",
            "message": "Rate Exceeded.",
            "status": 429,
        }.items()
    )
    assert "--concurrency" in refused.json()["detail"]
    assert [request.result().status_code for request in requests] == [200, 200]
    assert served.json()["start"] == "warm"


async def test_small_account_throttles_with_its_own_reason(lines: LogLines, tmp_path: Path) -> None:
    """An account of one has nothing to reserve: the second request at once is over the account's limit."""
    async with (
        serving(lines, environ={"GATE": str(tmp_path)}, account_concurrency=1) as client,
        asyncio.TaskGroup() as group,
    ):
        request = group.create_task(client.get("/gate"))
        await until(lambda: len(running_pids(tmp_path)) == 1)
        refused = await client.get("/echo")
        (tmp_path / "open").touch()
    assert request.result().status_code == 200
    assert (refused.status_code, refused.json()["Reason"]) == (429, "ConcurrentInvocationLimitExceeded")
    assert "account_concurrency" in refused.json()["detail"]


async def test_killed_environment_answers_502_and_is_replaced(lines: LogLines, tmp_path: Path) -> None:
    """kill -9 in the middle of an invocation costs its caller a 502, and nobody else anything."""
    async with serving(lines, environ={"GATE": str(tmp_path)}) as client, asyncio.TaskGroup() as group:
        request = group.create_task(client.get("/gate"))
        await until(lambda: len(running_pids(tmp_path)) == 1)
        killed = running_pids(tmp_path)[0]
        os.kill(killed, signal.SIGKILL)
        response = await request
        following = await client.get("/echo")
    assert response.status_code == 502
    assert response.json()["message"] == "Internal Server Error"
    assert following.json()["start"] == "cold"
    assert following.json()["pid"] != killed
    assert any(line.endswith("Error: Runtime exited with error: signal: killed") for line in lines)
    assert reports(lines)[0].endswith("Status: error\tError Type: Runtime.ExitError")


async def test_environment_killed_while_idle_costs_nothing(lines: LogLines) -> None:
    """An idle environment that dies is forgotten: the next request starts another one."""
    async with Emulator(options(lines)) as emulator, client_of(emulator.url) as client:
        killed = (await client.get("/echo")).json()["pid"]
        os.kill(killed, signal.SIGKILL)
        await until(lambda: not emulator.service.snapshot().environments)
        following = await client.get("/echo")
    assert following.status_code == 200
    assert following.json()["start"] == "cold"


async def test_function_that_ends_its_process_answers_502(lines: LogLines) -> None:
    """An exit in the middle of an invocation is logged with its status."""
    async with serving(lines) as client:
        response = await client.get("/leave")
    assert response.status_code == 502
    assert any(line.endswith("Error: Runtime exited with error: exit status 3") for line in lines)


async def test_function_that_raises_answers_502_and_stays_warm(lines: LogLines) -> None:
    """An exception is logged by the runtime client; the environment lives on."""
    async with serving(lines) as client:
        response = await client.get("/fail")
        following = await client.get("/echo")
    assert response.status_code == 502
    assert response.json()["message"] == "Internal Server Error"
    assert "[ERROR] LookupError: no such key" in lines
    assert following.status_code == 200
    assert sum("Init Duration" in report for report in reports(lines)) == 1


@pytest.mark.parametrize(
    ("source", "error_type"),
    [
        ("import no_such_module_anywhere", "Runtime.ImportModuleError"),
        ("raise LookupError('at import')", "LookupError"),
        ("def handler(:", "Runtime.UserCodeSyntaxError"),
        ("other = None", "Runtime.HandlerNotFound"),
        ("import os; os._exit(7)", "Runtime.ExitError"),
    ],
)
async def test_init_error_answers_502_and_is_logged(
    lines: LogLines, tmp_path: Path, source: str, error_type: str
) -> None:
    """A module that does not load fails its init phase, and again inside each invocation."""
    (tmp_path / "broken.py").write_text(source)
    async with serving(lines, handler="broken.handler", task_root=tmp_path) as client:
        responses = [await client.get("/") for _ in range(2)]
    assert [response.status_code for response in responses] == [502, 502]
    told = [line for line in lines if re.match(r"(INIT_REPORT|START|END|REPORT) ", line)]
    status = f"\tStatus: error\tError Type: {error_type}"
    for first, again, start, end, report in (told[:5], told[5:]):
        assert re.fullmatch(r"INIT_REPORT Init Duration: [\d.]+ ms\tPhase: init" + status, first)
        assert re.fullmatch(r"INIT_REPORT Init Duration: [\d.]+ ms\tPhase: invoke" + status, again)
        assert (start[:5], end[:3]) == ("START", "END")
        assert report.endswith(status)
        assert "Init Duration" not in report


async def test_missing_task_root_is_named(lines: LogLines, tmp_path: Path) -> None:
    """A function whose folder is not there cannot start, and the log says which folder."""
    async with serving(lines, task_root=tmp_path / "nowhere") as client:
        response = await client.get("/")
    assert response.status_code == 502
    assert any(str(tmp_path / "nowhere") in line for line in lines)


async def test_timeout_kills_the_environment(lines: LogLines, tmp_path: Path) -> None:
    """A function that takes too long answers 503, its process is gone, and the next one is new."""
    async with serving(lines, environ={"GATE": str(tmp_path)}, timeout_s=1.0) as client:
        response = await client.get("/gate")
        (pid,) = running_pids(tmp_path)
        await until(lambda: not is_alive(pid))
        following = await client.get("/echo")
    assert response.status_code == 503
    assert response.json().items() >= {"message": "Service Unavailable", "status": 503}.items()
    assert any(line.endswith("Task timed out after 1.00 seconds") for line in lines)
    assert reports(lines)[0].endswith("\tStatus: timeout")
    assert following.json()["start"] == "cold"


async def test_init_is_not_counted_against_the_timeout(lines: LogLines, tmp_path: Path) -> None:
    """A cold start longer than the function's timeout still serves its request."""
    source = "import time; time.sleep(1.2)\ndef handler(event, context): return 'late'"
    (tmp_path / "late.py").write_text(source)
    async with serving(lines, handler="late.handler", task_root=tmp_path, timeout_s=1.0) as client:
        response = await client.get("/")
    assert response.text == "late"


async def test_each_idle_environment_has_a_time_of_its_own(lines: LogLines) -> None:
    """The draws of the seed, in the order in which environments were started: a simulation has the same."""
    clock, expiry = FakeClock(), IdleExpiry(100.0, 900.0)
    first_s, second_s = islice(expiry.draws(7), 2)
    async with serving(lines, clock, idle_expiry=expiry, seed=7) as client:
        assert (await client.post("/echo")).json()["start"] == "cold"
        clock.now_s = first_s - 0.01
        assert (await client.post("/echo")).json()["start"] == "warm"
        clock.now_s += first_s
        assert (await client.post("/echo")).json()["start"] == "cold"
        clock.now_s += second_s - 0.01
        assert (await client.post("/echo")).json()["start"] == "warm"


async def test_environment_lives_for_its_age_at_most(lines: LogLines) -> None:
    """However busy it is; without a limit it stays."""
    for max_age_s, expected in ((1000.0, "cold"), (None, "warm")):
        clock = FakeClock()
        async with serving(lines, clock, keep_alive_s=600.0, max_age_s=max_age_s) as client:
            for clock.now_s in (0.0, 400.0, 800.0):
                await client.post("/echo")
            clock.now_s = 1000.0
            assert (await client.post("/echo")).json()["start"] == expected


async def test_rates_can_be_switched_off(lines: LogLines) -> None:
    """An account of one environment admits ten requests of a second, and any number without the rule."""
    for switches, throttled in ((Switches(), 1), (Switches(request_rate=False), 0)):
        async with serving(lines, FakeClock(), account_concurrency=1, switches=switches) as client:
            statuses = [(await client.post("/echo")).status_code for _ in range(11)]
        assert statuses.count(429) == throttled


async def test_idle_environment_expires_after_keep_alive(lines: LogLines) -> None:
    """An environment idle for the keep-alive time is stopped, and the next request starts cold."""
    clock = FakeClock()
    async with serving(lines, clock, keep_alive_s=600.0) as client:
        first = (await client.get("/echo")).json()
        clock.now_s += 599.0
        kept = (await client.get("/echo")).json()
        clock.now_s += 600.0
        fresh = (await client.get("/echo")).json()
        await until(lambda: not is_alive(first["pid"]))
    assert (kept["start"], kept["pid"]) == ("warm", first["pid"])
    assert fresh["start"] == "cold"


async def test_idle_environment_expires_without_a_request(lines: LogLines) -> None:
    """Nobody has to ask: a timer stops an environment that is idle for too long."""
    async with serving(lines, keep_alive_s=0.05) as client:
        pid = (await client.get("/echo")).json()["pid"]
        await until(lambda: not is_alive(pid))


async def test_request_reaches_the_function_as_an_event(lines: LogLines) -> None:
    """Method, path, query, headers and body arrive as a payload 2.0 event."""
    async with serving(lines) as client:
        response = await client.put(
            "/echo?a=1&a=2", content='{"text": "é"}', headers={"content-type": "application/json", "x-a": "1"}
        )
    event = response.json()["event"]
    assert event["version"] == "2.0"
    assert event["requestContext"]["http"]["method"] == "PUT"
    assert event["requestContext"]["http"]["sourceIp"] == "127.0.0.1"
    assert (event["rawPath"], event["rawQueryString"]) == ("/echo", "a=1&a=2")
    assert event["headers"]["x-a"] == "1"
    assert event["body"] == '{"text": "é"}'


async def test_full_response_reaches_the_client(lines: LogLines) -> None:
    """Status, headers, cookies and binary body of the function's response are sent."""
    async with serving(lines) as client:
        response = await client.get("/shaped")
    assert response.status_code == 201
    assert response.content == b"\xff\x00"
    assert response.headers["x-kind"] == "seedling"
    assert response.headers.get_list("set-cookie") == ["a=1", "b=2; HttpOnly"]


async def test_malformed_response_answers_502(lines: LogLines) -> None:
    """A result that is not an HTTP response is the function's error, and the log says why."""
    async with serving(lines) as client:
        response = await client.get("/malformed")
    assert response.status_code == 502
    assert any("`statusCode` is not a number" in line for line in lines)


async def test_environment_has_the_variables_of_lambda(
    lines: LogLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The function sees Lambda's variables and the project's, and nothing else of the developer's."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not for the function")
    monkeypatch.setenv("DEVELOPERS_OWN", "not for the function")
    monkeypatch.setenv("COLDFRAME_FROM_SHELL", "1")
    async with serving(lines, environ={"COLDFRAME_GIVEN": "2", "_HANDLER": "mine"}, memory_mb=512) as client:
        answer = (await client.get("/echo")).json()
    environ = answer["environ"]
    expected = {
        "_HANDLER": "handlers.route",
        "AWS_LAMBDA_FUNCTION_NAME": "coldframe-predict",
        "AWS_LAMBDA_FUNCTION_VERSION": "1",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": "/aws/lambda/coldframe-predict",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "LAMBDA_TASK_ROOT": str(HERE),
        "TZ": ":UTC",
        "COLDFRAME_FROM_SHELL": "1",
        "COLDFRAME_GIVEN": "2",
    }
    assert expected.items() <= environ.items()
    assert environ["AWS_LAMBDA_RUNTIME_API"].startswith("127.0.0.1:")
    assert environ["AWS_EXECUTION_ENV"].startswith("AWS_Lambda_python3.")
    assert re.fullmatch(r"\d{4}/\d\d/\d\d/\[1\][0-9a-f]{32}", environ["AWS_LAMBDA_LOG_STREAM_NAME"])
    assert environ.keys().isdisjoint({"DEVELOPERS_OWN", "HOME"})
    assert environ["AWS_SECRET_ACCESS_KEY"] == "local"  # for what the emulator answers itself
    assert answer["arn"] == "arn:aws:lambda:us-east-1:123456789012:function:coldframe-predict:live"
    assert 0 < answer["remaining_ms"] <= 29_000


async def test_log_has_start_end_and_report_lines(lines: LogLines) -> None:
    """Each invocation logs START, the function's own lines, END and REPORT, in this order."""
    async with serving(lines, memory_mb=512) as client:
        await client.get("/speak")
        await client.get("/speak")
    invocation = ["START", "first", "second", "END", "REPORT"]
    assert [line.split(" ")[0] for line in lines] == ["INIT_START", *invocation, *invocation]
    cold, warm = reports(lines)
    request_id = r"[0-9a-f-]{36}"
    common = (
        rf"REPORT RequestId: {request_id}\tDuration: [\d.]+ ms\tBilled Duration: \d+ ms"
        r"\tMemory Size: 512 MB\tMax Memory Used: (?P<memory>[1-9]\d*) MB"
    )
    assert re.fullmatch(common + r"\tInit Duration: [\d.]+ ms", cold)
    assert re.fullmatch(common, warm)
    assert re.fullmatch(rf"START RequestId: {request_id} Version: 1", lines[1])


async def test_init_is_billed_with_the_cold_invocation(lines: LogLines) -> None:
    """Billed Duration is the duration and the init together, rounded up to a whole millisecond."""
    async with serving(lines) as client:
        await client.get("/echo")
    numbers = dict(re.findall(r"((?:Billed |Init )?Duration): ([\d.]+) ms", reports(lines)[0]))
    exact = float(numbers["Duration"]) + float(numbers["Init Duration"])
    # The two parts are printed with two decimals, so their sum is known to 0.01 ms.
    assert exact - 0.01 <= float(numbers["Billed Duration"]) < exact + 1.01


async def test_log_never_shows_bodies(lines: LogLines) -> None:
    """What callers send and functions answer stays out of the emulator's log."""
    async with serving(lines) as client:
        await client.post("/echo", content="a secret text", headers={"content-type": "text/plain"})
        await client.post("/malformed", content="a secret text")
    assert not any("secret" in line for line in lines)


async def test_half_a_request_is_not_served(lines: LogLines) -> None:
    """A client that leaves before its body is complete starts nothing."""
    async with Emulator(options(lines)) as emulator, client_of(emulator.url) as client:
        host, port = emulator.url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /fail HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf")
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        await client.get("/echo")
    assert len(reports(lines)) == 1
    assert not any("LookupError" in line for line in lines)


async def test_head_request_has_no_body(lines: LogLines) -> None:
    """HEAD runs the function as GET does; its body is not sent."""
    async with serving(lines) as client:
        response = await client.head("/shaped")
        following = await client.get("/shaped")
    assert (response.status_code, response.content) == (201, b"")
    assert following.content == b"\xff\x00"


async def test_request_over_the_payload_limit_is_refused(lines: LogLines) -> None:
    """A body that cannot fit into Lambda's 6 MB event answers 413 and starts nothing."""
    async with serving(lines) as client:
        for size in (10_000_000, 6 * 1024 * 1024):  # the second one fits, but not with its event around it
            response = await client.post("/echo", content=b"x" * size)
            assert response.status_code == 413
            assert response.json().items() >= {"message": "Request Too Long", "status": 413}.items()
    assert lines == []


async def test_request_near_the_payload_limit_is_served(lines: LogLines) -> None:
    """The largest bodies that fit reach the function whole."""
    async with serving(lines, handler="handlers.size") as client:
        response = await client.post("/", content=b"x" * 6_200_000, headers={"content-type": "text/plain"})
    assert response.json() == 6_200_000


async def test_response_over_the_payload_limit_answers_502(lines: LogLines) -> None:
    """A result over 6 MB is refused by the Runtime API, as the runtime client then logs."""
    async with serving(lines) as client:
        response = await client.get("/big")
        following = await client.get("/echo")
    assert response.status_code == 502
    assert any("Exceeded maximum allowed payload size (6291556 bytes)" in line for line in lines)
    assert following.status_code == 200


async def test_port_in_use_is_named(lines: LogLines) -> None:
    """A taken port is an error that says which one, and what to do."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(CannotListen, match=rf"Port {port} on 127\.0\.0\.1 is in use.*--port \d+"):
            async with Emulator(options(lines, port=port)):
                pass


async def test_leaving_answers_callers_and_stops_every_process(lines: LogLines, tmp_path: Path) -> None:
    """The end of the emulator is a crash for invocations in flight, and the end of all processes."""
    async with asyncio.TaskGroup() as group:
        async with Emulator(options(lines, environ={"GATE": str(tmp_path)})) as emulator:
            client = client_of(emulator.url)
            idle = (await client.get("/echo")).json()["pid"]
            requests = [group.create_task(client.get("/gate")) for _ in range(2)]
            await until(lambda: len(running_pids(tmp_path)) == 2)
        assert [request.status_code for request in [await request for request in requests]] == [502, 502]
        await client.aclose()
    assert not any(is_alive(pid) for pid in [idle, *running_pids(tmp_path)])


async def test_leaving_in_the_middle_of_an_init_stops_its_process(lines: LogLines, tmp_path: Path) -> None:
    """An environment that is still loading its module is stopped like any other."""
    source = "import os, pathlib, time\npathlib.Path(f'running-{os.getpid()}').touch()\ntime.sleep(600)"
    (tmp_path / "slow.py").write_text(source)
    async with asyncio.TaskGroup() as group:
        async with Emulator(options(lines, handler="slow.handler", task_root=tmp_path)) as emulator:
            client = client_of(emulator.url)
            request = group.create_task(client.get("/"))
            await until(lambda: len(running_pids(tmp_path)) == 1)
        assert (await request).status_code == 502
        await client.aclose()
    assert not any(is_alive(pid) for pid in running_pids(tmp_path))


async def test_browser_at_the_printed_address_is_led_to_the_console(lines: LogLines) -> None:
    """Where no function has a page: a browser goes to the console, a program gets the function's own 404."""
    html = {"accept": "text/html,application/xhtml+xml"}
    missing = {"statusCode": 404, "body": "not here"}
    async with serving(lines, handler="handlers.say") as client:
        led = await client.request("GET", "/", json=missing, headers=html)
        told = await client.request("GET", "/", json=missing)
        elsewhere = await client.request("GET", "/x", json=missing, headers=html)
        page = await client.request("GET", "/", json={"statusCode": 200, "body": "a page"}, headers=html)
    assert (led.status_code, led.headers["location"]) == (302, "/_console")
    assert (told.status_code, told.text) == (404, "not here")
    assert (elsewhere.status_code, page.text) == (404, "a page")


# The emulator as a process of its own.


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_signal_ends_the_emulator_and_every_environment(tmp_path: Path, number: signal.Signals) -> None:
    """SIGINT, SIGTERM and SIGHUP answer the callers in flight, stop every process and exit with 0."""
    async with emulator_process(tmp_path) as (process, client):
        idle = (await client.get("/echo")).json()["pid"]
        requests = [asyncio.create_task(client.get("/gate")) for _ in range(2)]
        await until(lambda: len(running_pids(tmp_path)) == 2)
        process.send_signal(number)
        statuses = [(await request).status_code for request in requests]
        returncode = await process.wait()
    assert returncode == 0
    assert statuses == [502, 502]
    assert not any(is_alive(pid) for pid in [idle, *running_pids(tmp_path)])


async def test_emulator_started_by_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    """Where SIGHUP was ignored before, it stays so."""
    before = "import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
    async with emulator_process(tmp_path, before + SERVE) as (process, client):
        process.send_signal(signal.SIGHUP)
        assert (await client.get("/echo")).status_code == 200
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs util-linux's setpriv")
async def test_killed_emulator_takes_busy_environments_along(tmp_path: Path) -> None:
    """Even SIGKILL leaves no environment behind, be it idle or in an invocation that never ends."""
    async with emulator_process(tmp_path) as (process, client):
        idle = (await client.get("/echo")).json()["pid"]
        requests = [asyncio.create_task(client.get("/gate")) for _ in range(2)]
        await until(lambda: len(running_pids(tmp_path)) == 2)
        process.kill()
        for request in requests:
            with pytest.raises(httpx.TransportError):
                await request
        pids = [idle, *running_pids(tmp_path)]
        await until(lambda: not any(is_alive(pid) for pid in pids))


async def test_killed_emulator_s_temporary_files_go_with_the_next_start(tmp_path: Path) -> None:
    """A new emulator removes what killed ones left, and nothing of one that runs or of anybody else."""
    temporary = tmp_path / "temporary"
    (temporary / "coldframe-of-somebody").mkdir(parents=True)
    async with emulator_process(tmp_path, TMPDIR=str(temporary)) as (killed, client):
        await client.get("/echo")
        killed.kill()
        await killed.wait()
    left = {*temporary.iterdir()}
    assert len(left) == 2
    async with emulator_process(tmp_path, TMPDIR=str(temporary)) as (running, client):
        assert [folder.name for folder in temporary.iterdir()] == ["coldframe-of-somebody"]
        await client.get("/echo")
        in_use = {*temporary.rglob("*")}
        async with emulator_process(tmp_path, TMPDIR=str(temporary)) as (other, _):
            assert {*temporary.rglob("*")} == in_use
            other.send_signal(signal.SIGTERM)
            await other.wait()
        running.send_signal(signal.SIGTERM)
        await running.wait()
    assert [folder.name for folder in temporary.iterdir()] == ["coldframe-of-somebody"]


async def test_idle_environments_leave_when_the_runtime_api_is_gone(tmp_path: Path) -> None:
    """Where no parent death signal is to be had, nothing is frozen: idle environments end themselves."""
    async with emulator_process(tmp_path, PATH="") as (process, client):
        assert process.stdout is not None
        notes = [(await process.stdout.readline()).decode() for _ in range(2)]
        pid = (await client.get("/echo")).json()["pid"]
        process.kill()
        await until(lambda: not is_alive(pid))
    assert notes[1].startswith("Environments run on between invocations, which Lambda freezes")


async def test_emulator_says_that_it_listens_and_at_the_end_what_happened(tmp_path: Path) -> None:
    """Standard output is the address, the log lines, and a summary with counts, times and cost."""
    async with emulator_process(tmp_path) as (process, client):
        response = await client.get("/echo")
        process.send_signal(signal.SIGTERM)
        output, _ = await process.communicate()
    assert json.loads(response.content)["start"] == "cold"
    console, *following = output.decode().splitlines()
    logged, summary = following[:4], "\n".join(following[4:])
    assert re.fullmatch(r"Console: http://127\.0\.0\.1:\d+/_console", console)
    assert [line.split()[0] for line in logged] == ["INIT_START", "START", "END", "REPORT"]
    assert re.match(r"coldframe-predict, 1769 MB, in \d+ s:", summary)
    assert "1 invocations: 1 cold, 0 warm, 0 errors; 0 throttled; at most 1 at once" in summary
    assert re.search(r"answer: p50 .* p99 \d+\.\d ms \(the slowest of 1: p99 needs 100\)\n", summary)
    assert re.search(r"cost on AWS: 0\.00\d+ USD", summary)


async def test_metrics_are_those_of_cloudwatch(lines: LogLines) -> None:
    """`/_metrics` counts invocations, errors and throttles, as Prometheus' own parser reads it."""
    async with serving(lines, provisioned_concurrency=1) as client:
        await until(lambda: any(line.startswith("INIT_REPORT") for line in lines))
        for path in ("/echo", "/fail"):
            await client.get(path)
        response = await client.get("/_metrics")
    samples = {
        (sample.name, sample.labels.get("state"), sample.labels.get("le")): sample.value
        for family in text_string_to_metric_families(response.text)
        for sample in family.samples
    }
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    for name, value in {
        "invocations_total": 2,
        "errors_total": 1,
        "throttles_total": 0,
        "provisioned_concurrency_invocations_total": 2,
        "provisioned_concurrency_spillover_invocations_total": 0,
        "concurrent_executions": 0,
        "concurrent_executions_max": 1,
        "provisioned_concurrency_utilization": 0,
        "duration_seconds_count": 2,
        "init_duration_seconds_count": 1,
    }.items():
        assert samples[f"lambda_{name}", None, None] == value, name
    assert samples["lambda_environments", "READY", None] == 1
    assert samples["lambda_duration_seconds_bucket", None, "+Inf"] == 2
    assert samples["lambda_cost_usd_total", None, None] > 0


async def test_metrics_can_only_be_read(lines: LogLines) -> None:
    """Another method and a body are refused, and no function is asked."""
    async with serving(lines) as client:
        statuses = [
            (await client.delete("/_metrics")).status_code,
            (await client.post("/_metrics", content="x")).status_code,
        ]
    assert (statuses, lines) == ([405, 413], [])
