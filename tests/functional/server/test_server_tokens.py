"""The server asks who calls: a process of its own, over HTTP."""

import json
import socket
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from coldframe.server import facts
from coldframe.server.tokens import EVERYWHERE
from coldframe_local.cli import main
from tests.support.server_process import PATIENCE_S, ServerProcess, serving, starting

SHOP, DESK = "token-of-the-shop-" + "0" * 20, "token-of-the-desk-" + "1" * 20
PREDICT = {"text": "The goalie made forty saves", "heads": ["logreg"]}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def tokens_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the server below."""
    path = tmp_path_factory.mktemp("secret") / "tokens"
    path.write_text(f"shop:{SHOP}\ndesk:{DESK}\n")
    return path


@pytest.fixture(scope="module")
def server(bundle: Path, tokens_file: Path) -> Any:
    """A server with two tokens."""
    with serving(bundle, COLDFRAME_TOKENS_FILE=str(tokens_file)) as started:
        yield started


@pytest.fixture
def client(server: ServerProcess) -> Any:
    with server.client() as found:
        yield found


def test_a_token_is_asked_for(client: httpx.Client) -> None:
    """No token and a wrong one: 401 with a challenge; each of the two right ones is answered."""
    answers = [client.post("/v1/predict", json=PREDICT, headers=h) for h in ({}, bearer("x" * 30))]
    assert [answer.status_code for answer in answers] == [401, 401]
    assert [answer.headers["www-authenticate"] for answer in answers] == [
        'Bearer realm="coldframe"',
        'Bearer realm="coldframe", error="invalid_token"',
    ]
    assert answers[0].headers["content-type"] == "application/problem+json"
    assert answers[0].json()["type"] == "urn:coldframe:error:Unauthorized"
    right = [client.post("/v1/predict", json=PREDICT, headers=bearer(token)) for token in (SHOP, DESK)]
    assert [answer.status_code for answer in right] == [200, 200]


@pytest.mark.parametrize("path", ["/docs", "/openapi.json", "/v1/models", "/v2", facts.METRICS, "/no-route"])
def test_every_other_route_needs_it(client: httpx.Client, path: str) -> None:
    """Documentation, metrics and unknown paths too: who has no token learns nothing."""
    assert client.get(path).status_code == 401
    assert client.get(path, headers=bearer(SHOP)).status_code in (200, 404)


def test_probes_are_open(client: httpx.Client) -> None:
    """A platform asks without a token; the same paths by another method are no probes."""
    assert [client.get(path).status_code for path in facts.PROBES] == [200] * 3
    assert client.post(facts.READY).status_code == 401


def test_a_body_is_not_read_first(server: ServerProcess) -> None:
    """401 comes before the first byte of a body that the head announces."""
    head = b"POST /v1/predict HTTP/1.1\r\nhost: here\r\ncontent-length: 1000\r\nexpect: 100-continue\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as connection:
        connection.sendall(head)
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"connection: close" in answer.lower()


def test_a_token_is_replaced_while_it_runs(bundle: Path, tmp_path: Path) -> None:
    """The new file is read within a second, the old token ends, and no line of the log holds either."""
    path, following = tmp_path / "tokens", tmp_path / "next"
    path.write_text(f"shop:{SHOP}")
    with serving(bundle, COLDFRAME_TOKENS_FILE=str(path)) as server, server.client() as client:
        assert client.get("/v2", headers=bearer(SHOP)).status_code == 200
        following.write_text(f"shop:{DESK}")
        following.replace(path)
        deadline_s = time.monotonic() + PATIENCE_S
        while client.get("/v2", headers=bearer(DESK)).status_code == 401:
            assert time.monotonic() < deadline_s, "the file was never read again"
        assert client.get("/v2", headers=bearer(SHOP)).status_code == 401
        assert server.event("tokens-read")["names"] == ["shop"]
        assert server.end() == facts.DRAINED
        said = json.dumps(server.lines)
    assert SHOP not in said and DESK not in said


def test_it_does_not_listen_to_others_without_tokens(bundle: Path) -> None:
    """COLDFRAME_HOST=0.0.0.0 alone: the server ends, and says what to set."""
    with starting(bundle, COLDFRAME_HOST=EVERYWHERE) as server:
        assert server.wait() == facts.FAILED
        message = server.stderr()
    assert message.startswith("BadSetting: COLDFRAME_HOST or --host is 0.0.0.0: other machines can call")
    assert "Traceback" not in message


def test_command_does_not_listen_to_others_without_tokens(bundle: Path) -> None:
    """`coldframe serve --host 0.0.0.0` says the same, and ends."""
    done = CliRunner().invoke(
        main, ["serve", "--host", EVERYWHERE, "--port", "0"], env={"COLDFRAME_MODEL_DIR": str(bundle)}
    )
    assert (done.exit_code, "no tokens are set" in done.output) == (1, True)


@pytest.mark.parametrize(
    ("environ", "callers"),
    [
        ({"COLDFRAME_HOST": ""}, "anyone on this machine"),
        ({"COLDFRAME_HOST": "", "COLDFRAME_ALLOW_ANYONE": "true"}, "anyone"),
        ({"COLDFRAME_HOST": "", "COLDFRAME_TOKENS": f"shop:{SHOP}"}, "callers with a token"),
    ],
    ids=str,
)
def test_the_first_line_says_who_may_call(bundle: Path, environ: dict[str, str], callers: str) -> None:
    """The line of the address says for whom the server listens."""
    with starting(bundle, **environ) as server:
        line = server.event("listening")
    assert line["callers"] == callers
    assert line["url"].startswith("http://127.0.0.1:" if "machine" in callers else "http://0.0.0.0:")
