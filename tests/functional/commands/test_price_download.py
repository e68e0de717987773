"""The download of a price list, from a real server that misbehaves."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from coldframe_local.commands.prices import download
from coldframe_local.planner.scenarios.prices import PricesUnusable


@contextmanager
def serving(status: int, body: bytes, length: int) -> Iterator[str]:
    """Address of a server that promises `length` bytes and sends `body`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/index.json"
        finally:
            server.shutdown()
            thread.join()


def test_a_whole_file_is_returned() -> None:
    """All bytes arrive as they were sent."""
    with serving(200, b"{}" * 100_000, 200_000) as url:
        assert download(url) == b"{}" * 100_000


@pytest.mark.parametrize(
    ("status", "length", "words"),
    [(200, 10, "IncompleteRead"), (503, 2, "answers 503"), (404, 2, "answers 404")],
)
def test_half_a_file_is_an_error(status: int, length: int, words: str) -> None:
    """A connection that ends early, and another status than 200, are errors that name the address."""
    with serving(status, b"{}", length) as url, pytest.raises(PricesUnusable, match=words) as error:
        download(url, pause_s=0.0)
    assert url in str(error.value)
