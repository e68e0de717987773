"""Bodies that cost much more than they weigh: the server stays small, and answers others meanwhile."""

import gzip
import json
import re
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coldframe.server import facts
from tests.support.server_process import PATIENCE_S, ServerProcess, serving

pytestmark = pytest.mark.waits

MEMORY_MB = 1024
"""What the manifests allow."""
ACCENTS = "a" + "\u0301" * 7_900_000
SYLLABLES = "각" * 5_200_000
WIDE = "\U0001f600" + "word " * 3_100_000
HEAD = "POST /v1/predict HTTP/1.1\r\nhost: here\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n"
PREDICT = {"text": "The goalie made forty saves", "heads": ["logreg"], "cache": False}


def compressed(**fields: object) -> bytes:
    return gzip.compress(json.dumps(fields, ensure_ascii=False).encode())


def peak_mb(server: ServerProcess) -> int:
    """The most memory that the process has held."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return int(found[1]) // 1024


@pytest.mark.parametrize("text", [ACCENTS, SYLLABLES, WIDE], ids=["accents", "syllables", "wide"])
def test_memory_stays_within_the_manifests(bundle: Path, text: str) -> None:
    """128 bodies at once, of 2 to 3 MB together and 2 GB decompressed: each is answered or refused."""
    body = compressed(text=text)
    with serving(bundle, COLDFRAME_LOG_LEVEL="off") as server, server.client() as client:

        def send(_: int) -> int:
            return client.post("/v1/predict", content=body, headers={"content-encoding": "gzip"}).status_code

        with ThreadPoolExecutor(128) as senders:
            statuses = set(senders.map(send, range(128)))
        assert statuses <= {200, 503}
        assert peak_mb(server) < MEMORY_MB
        assert server.metrics()["coldframe_request_bytes_in_flight"] == 0
        assert client.post("/v1/predict", json=PREDICT).status_code == 200


def test_a_text_that_takes_too_long_to_read_is_refused(bundle: Path) -> None:
    """The time that the server promises covers reading; a request that states more of it has more."""
    with serving(bundle, COLDFRAME_OBJECTIVE_MS="1000") as server, server.client() as client:
        headers = {"content-encoding": "gzip"}
        hurried = client.post("/v1/predict", content=compressed(text=ACCENTS), headers=headers)
        patient = compressed(text=ACCENTS, budget_ms=600_000)
        assert hurried.status_code == 503
        assert client.post("/v1/predict", content=patient, headers=headers).status_code == 200


def test_the_end_does_not_wait_for_texts_that_take_long(bundle: Path) -> None:
    """SIGTERM while long bodies are read: each has its answer in time, and the exit code is 0."""
    body = compressed(text=ACCENTS)
    with serving(bundle) as server:
        callers = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) for _ in range(4)]
        for caller in callers:
            caller.sendall(HEAD.format(len(body)).encode() + body)
        while server.metrics()["coldframe_request_bytes_in_flight"] < len(body):
            pass
        server.process.send_signal(signal.SIGTERM)
        answers = [caller.recv(65536) for caller in callers]
        assert server.wait() == facts.DRAINED
        for caller in callers:
            caller.close()
    assert {answer.split()[1] for answer in answers} <= {b"200", b"503"}
