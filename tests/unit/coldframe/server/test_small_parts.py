"""Request ids, the log, settings, and what is imported first."""

import json
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.config import Settings, load_settings
from coldframe.errors import BadSetting
from coldframe.scheduling.limits import Limits
from coldframe.server.asgi_app import request_id
from coldframe.server.log import Log
from coldframe.server.settings import SERVER_NAMES, load_server_settings, read_port
from coldframe.setting_facts import OF_SERVER, SERVER_FLAGS, SERVER_RANGES, SERVER_TEXTS


@given(st.text())
def test_a_request_id_can_stand_in_a_log(sent: str) -> None:
    """Whatever a caller sends: the name is short, of plain characters, and the caller's own if that is so."""
    name = request_id(sent)
    assert 0 < len(name) <= 128 and name.isascii() and name.isprintable() and " " not in name
    assert request_id(name) == name


def test_no_request_id_is_a_new_one() -> None:
    """Two requests without a name get two."""
    assert request_id(None) != request_id(None)


def test_lines_of_many_threads_stay_whole() -> None:
    """Sixteen threads, a thousand lines each: every line is there, and is one."""
    written: list[str] = []
    log = Log(written.append)

    def write(thread: int) -> None:
        for number in range(500):
            log(json.dumps([thread, number]))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close(60)
    lines = [tuple(json.loads(line)) for line in "".join(written).splitlines()]
    assert sorted(lines) == [(thread, number) for thread in range(16) for number in range(500)]


def test_a_log_that_nobody_reads_holds_up_nobody() -> None:
    """The reader stalls: lines over the limit are lost, and their number is told once it reads again."""
    written: list[str] = []
    reads = threading.Event()

    def stall(text: str) -> None:
        reads.wait()
        written.append(text)

    log = Log(stall)
    for number in range(12_000):
        log(json.dumps({"event": "line", "number": number}))
    reads.set()
    log.close(60)
    lines = [json.loads(line) for line in "".join(written).splitlines()]
    lost = sum(line["lines"] for line in lines if line["event"] == "log-lines-lost")
    assert lost > 0
    assert lost + sum(line["event"] == "line" for line in lines) == 12_000


def test_a_log_that_cannot_be_written_fails_nobody() -> None:
    """A full disk: no error reaches the request."""

    def fail(_: str) -> None:
        raise OSError("disk full")

    log = Log(fail)
    log("a line")
    log.close(60)


def test_settings_of_the_server_are_known_to_functions() -> None:
    """A function lets them be; their ranges are in one place; the defaults promise what a scheduler does."""
    assert {f"COLDFRAME_{name.upper()}" for name in SERVER_NAMES} == OF_SERVER
    assert SERVER_RANGES.keys() | {*SERVER_TEXTS, *SERVER_FLAGS} == SERVER_NAMES
    assert load_settings({"COLDFRAME_WORKERS": "3"}) == Settings()
    limits = load_server_settings({"COLDFRAME_WORKERS": "3"}).limits()
    assert limits == Limits(workers=3)


@pytest.mark.parametrize("value", ["-1", "65536", "http", "80 ", "٨٠", "1e3"])
def test_what_is_no_port(value: str) -> None:
    """The error names the variable and the value."""
    with pytest.raises(BadSetting, match="PORT="):
        read_port({"PORT": value})


def test_ports() -> None:
    """PORT, empty or not, or its default."""
    assert [read_port({}), read_port({"PORT": ""}), read_port({"PORT": "0"})] == [8080, 8080, 0]


def test_endpoint_of_a_web_function() -> None:
    """Its port comes before PORT, and its host stands where no other host is set."""
    environ = {"AWS_LAMBDA_HTTP_ENDPOINT": "0.0.0.0:3000", "PORT": "9000"}
    assert (load_server_settings(environ).host, read_port(environ)) == ("0.0.0.0", 3000)  # noqa: S104
    assert load_server_settings({**environ, "COLDFRAME_HOST": "127.0.0.1"}).host == "127.0.0.1"
    assert load_server_settings({}).host == ""
    with pytest.raises(BadSetting, match="AWS_LAMBDA_HTTP_ENDPOINT='here' is not a port"):
        read_port({"AWS_LAMBDA_HTTP_ENDPOINT": "here"})
