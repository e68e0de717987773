"""Peers and their servers; installing them takes minutes, so here they are small ones of our own."""

import sys
from pathlib import Path

import pytest

from coldframe_bench.loader.open_loop import Load, send_closed
from coldframe_bench.targets.environments import PEERS
from coldframe_bench.targets.peers import load_peers
from coldframe_bench.targets.serving import Server, ServerFailed, descendants, free_port, memory_mb, serve

pytestmark = pytest.mark.measures

SLOW_START = """
import sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    def log_message(self, *given): pass
HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def server(source: str) -> Server:
    """A Python program as a server."""
    port = free_port()
    command = [sys.executable, "-c", source, str(port)]
    return Server(command, Path.cwd(), {}, port, "/predict", '{"text": $TEXT}')


def test_from_start_to_end() -> None:
    """A server is asked until it answers, its memory is counted, and it is gone afterwards."""
    with serve(server(SLOW_START), "a text") as started:
        assert started.cold_ms > 0
        assert memory_mb(started.pid) > 1
        answered = send_closed(Load("t", server(SLOW_START).url, 0, [0.0], [b"{}"]), 1)
        assert answered.records[0].error == "ConnectionRefusedError"  # that one was never started
    assert memory_mb(started.pid) == 0


def test_children_are_ended() -> None:
    """What a server started ends with it."""
    forks = (
        "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'input()'], stdin=subprocess.PIPE)\n"
    )
    with serve(server(forks + SLOW_START), "a text") as started:
        (child,) = descendants(started.pid)
        assert child.is_running()
    assert not Path(f"/proc/{child.pid}/exe").exists()


def test_server_that_ends() -> None:
    """A server that does not start is a named error with the end of its log."""
    with (
        pytest.raises(ServerFailed, match=r"(?s)status 3.*no model here"),
        serve(server("import sys; print('no model here'); sys.exit(3)"), "a text"),
    ):
        pass


def test_all_callers_are_answered() -> None:
    """A closed loop sends every body once, whatever the number of callers."""
    target = server(SLOW_START)
    with serve(target, "a text"):
        answered = send_closed(Load("t", target.url, 0, [0.0] * 25, [b"{}"] * 25), 4)
    assert [record.status for record in answered.records] == [200] * 25


def test_every_peer_is_complete() -> None:
    """Each peer has pinned requirements and a body with a place for the text."""
    peers = load_peers()
    assert len(peers) == 7
    for name, peer in peers.items():
        pins = [
            line for line in (PEERS / name / "requirements.txt").read_text().splitlines() if line[0] != "#"
        ]
        assert all("==" in pin for pin in pins)
        assert "$TEXT" in peer.body


def test_text_is_escaped() -> None:
    """A text with quotes stays one JSON string."""
    assert server("").ask('say "no"') == b'{"text": "say \\"no\\""}'
