"""The server as a process: ready when golden vectors pass, the contract over HTTP, limits, and its end."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from coldframe.server import facts
from coldframe.server.health import ask
from coldframe_bench.targets.faulty_server import FaultyServer
from tests.conftest import ENCODER_NAME, EXAMPLE
from tests.functional.conftest import TABLE
from tests.support.server_process import PATIENCE_S, ROOT, ServerProcess, serving, starting

pytestmark = pytest.mark.waits

TEXT = "The goalie made forty saves"
PREDICT = {"text": TEXT, "heads": ["logreg"], "cache": False}


@pytest.fixture(scope="module")
def server(bundle: Path) -> Any:
    """A server that many tests ask."""
    with serving(bundle, COLDFRAME_MAX_BODY_BYTES="100000", COLDFRAME_READ_TIMEOUT_S="1") as started:
        yield started


@pytest.fixture
def client(server: ServerProcess) -> Any:
    with server.client() as found:
        yield found


def copied(bundle: Path, folder: Path) -> tuple[Path, Path]:
    """A copy of the models, and the golden vectors in it."""
    shutil.copytree(bundle, folder)
    return folder, folder / "encoders" / ENCODER_NAME / "golden.json"


# --- readiness --------------------------------------------------------------------------


def test_readiness_is_false_until_golden_vectors_pass(bundle: Path, tmp_path: Path) -> None:
    """While golden vectors are still to be read, the server lives, is not ready, and answers no request."""
    models, golden = copied(bundle, tmp_path / "models")
    content = golden.read_bytes()
    golden.unlink()
    os.mkfifo(golden)
    with starting(models) as server, server.client() as client:
        assert client.get(facts.LIVE).json() == {"live": True}
        early = [
            client.get(facts.READY),
            client.get(facts.HEALTH),
            client.get(f"/v2/models/{EXAMPLE}-auto/ready"),
        ]
        early.append(client.post("/v1/predict", json=PREDICT))
        assert [reply.status_code for reply in early] == [503] * 4
        assert {reply.headers["retry-after"] for reply in early} == {"1"}
        assert not ask(facts.READY, {"PORT": str(server.port)})
        with golden.open("wb") as pipe:  # the first reader waits for what comes; later ones find a file
            golden.unlink()
            golden.write_bytes(content)
            pipe.write(content)
        server.event("ready")
        assert client.get(facts.READY).json() == {"ready": True}
        assert client.post("/v1/predict", json=PREDICT).status_code == 200
        assert ask(facts.READY, {"PORT": str(server.port)})
        assert server.end() == facts.DRAINED


def test_a_damaged_golden_vector_is_never_ready(bundle: Path, tmp_path: Path) -> None:
    """The last golden vector turned round: the server names the error and ends; it never was ready."""
    models, golden = copied(bundle, tmp_path / "models")
    found = json.loads(golden.read_bytes())
    last = found["vectors"][-1]
    last["embedding"] = [-value for value in last["embedding"]]
    golden.write_text(json.dumps(found))
    with starting(models) as server:
        assert server.wait() == facts.FAILED
        assert [line["event"] for line in server.lines] == ["listening", "not-ready"]
        assert server.lines[-1]["error"] == "EncoderDrift"
        assert server.stderr().startswith("EncoderDrift: The encoder's embedding of a golden text has cosine")


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"COLDFRAME_REQUEST_THREADS": "many"}, "COLDFRAME_REQUEST_THREADS='many' cannot be used"),
        ({"COLDFRAME_DRAIN_GRACE_S": "-1"}, "COLDFRAME_DRAIN_GRACE_S='-1' cannot be used"),
        ({"COLDFRAME_THREDS": "1"}, "COLDFRAME_THREDS is not a setting"),
        ({"PORT": "http"}, "PORT='http' is not a port"),
        ({"PORT": "70000"}, "PORT='70000' is not a port"),
        ({"COLDFRAME_HOST": "203.0.113.1", "COLDFRAME_ALLOW_ANYONE": "true"}, "Cannot listen on 203.0.113.1"),
        ({"COLDFRAME_MODELS": "no-such-model"}, "no-such-model"),
    ],
    ids=str,
)
def test_what_cannot_be_served_ends_with_an_error(bundle: Path, environ: dict[str, str], said: str) -> None:
    """A wrong setting, address or model: one line says which, and the exit code is 1."""
    with starting(bundle, **environ) as server:
        assert server.wait() == facts.FAILED
        message = server.stderr()
    assert said in message
    assert "Traceback" not in message


def test_a_port_that_is_taken(bundle: Path) -> None:
    """Another program has the port: the error names it, and another one."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with starting(bundle, PORT=str(port)) as server:
            assert server.wait() == facts.FAILED
            assert f"Port {port} on 127.0.0.1 is in use by another program" in server.stderr()


# --- the contract -----------------------------------------------------------------------


def test_pages(client: httpx.Client) -> None:
    """Documentation, its document, and a problem where there is no page."""
    assert "swagger" in client.get("/docs").text
    assert "/v1/predict" in client.get("/openapi.json").json()["paths"]
    missing = client.post("/no/such/page", content=b"x")
    assert (missing.status_code, missing.headers["content-type"]) == (404, "application/problem+json")
    assert client.get("/v1/predict").status_code == 405
    traced = client.request("TRACE", "/v1/predict")
    assert (traced.status_code, traced.headers["allow"]) == (405, "POST")
    assert traced.headers["content-type"] == "application/problem+json"
    assert client.get(facts.HEALTH).json()["status"] == "ok"


def test_a_browser_is_led_to_the_documentation(client: httpx.Client) -> None:
    """Whoever opens the printed address sees /docs; a program gets a problem, and a short one."""
    led = client.get("/", headers={"accept": "text/html,application/xhtml+xml"})
    assert (led.status_code, led.headers["location"]) == (302, "/docs")
    for accept in ("*/*", "application/json"):
        told = client.get("/", headers={"accept": accept})
        assert (told.status_code, told.headers["content-type"]) == (404, "application/problem+json")
        assert told.json()["detail"].endswith("See GET /docs, or GET /openapi.json.")


def test_request_ids(server: ServerProcess, client: httpx.Client) -> None:
    """A caller's name of a request is in the answer and in the log; what is not a name is replaced."""
    given = client.post("/v1/predict", json=PREDICT, headers={"x-request-id": "a-caller/17"})
    assert given.headers["x-request-id"] == "a-caller/17"
    made = client.post("/v1/predict", json=PREDICT, headers={"x-request-id": '"quoted text"'})
    assert made.headers["x-request-id"] != '"quoted text"'
    logged = {line.get("request_id") for line in server.lines}
    assert '"quoted text"' not in logged


def test_every_request_has_one_line_without_its_text(bundle: Path) -> None:
    """Answered or refused: a line with method, route, status, and no word of a text."""
    with serving(bundle, COLDFRAME_MAX_BODY_BYTES="1000") as server, server.client() as client:
        client.post("/v1/predict", json={"text": "a quokka on a skateboard"}, headers={"x-request-id": "1"})
        client.post("/v1/predict", content=b'{"text": "quokka', headers={"x-request-id": "2"})
        client.post("/v1/predict", content=b"quokka" * 1000, headers={"x-request-id": "3"})
        client.get("/quokka", headers={"x-request-id": "4"})
        assert server.end() == facts.DRAINED
        requests = {line["request_id"]: line for line in server.lines if line["event"] == "request"}
        statuses = {name: (line["status"], line["path"]) for name, line in requests.items()}
        assert statuses == {
            "1": (200, "/v1/predict"),
            "2": (400, "/v1/predict"),
            "3": (413, "/v1/predict"),
            "4": (404, "other"),
        }
        assert "quokka" not in json.dumps(server.lines)


def test_probes_that_succeed_are_not_logged(bundle: Path) -> None:
    """A platform asks every few seconds: only a refusal of its probes has a line."""
    with serving(bundle, COLDFRAME_DRAIN_NOTICE_S="3") as server, server.client() as client:
        for path in (facts.LIVE, facts.READY, facts.HEALTH, facts.METRICS):
            assert client.get(path).status_code == 200
        server.process.send_signal(signal.SIGTERM)
        server.event("leaving")
        assert client.get(facts.READY).status_code == 503
        assert server.wait() == facts.DRAINED
        logged = [(line["path"], line["status"]) for line in server.lines if line["event"] == "request"]
        assert logged == [(facts.READY, 503)]


def test_metrics_count_what_was_answered(bundle: Path) -> None:
    """Requests by route and status, texts, tokens, passes and cache hits; labels hold no word of a caller."""
    with serving(bundle) as server, server.client() as client:
        asked = {"texts": [TEXT, TEXT, "Orbit"], "heads": ["logreg"]}
        usages = [client.post("/v1/predict", json=asked).json()["usage"] for _ in range(2)]
        client.get("/quokka")
        client.request("QUOKKA", "/v1/predict")
        found = server.metrics()
    route = 'method="POST",route="/v1/predict"'
    assert found[f'coldframe_requests_total{{{route},status="200"}}'] == 2
    assert found['coldframe_request_duration_seconds_count{route="/v1/predict"}'] >= 2
    assert found["coldframe_texts_total"] == 6
    assert found["coldframe_tokens_total"] == sum(usage["tokens"] for usage in usages)
    assert found["coldframe_passes_total"] > 0
    assert found["coldframe_queue_rows"] == found["coldframe_passes_running"] == 0
    assert found["coldframe_pass_budget_tokens"] > 0
    assert found['coldframe_cache_answers_total{level="l1"}'] == usages[1]["cache"]["l1"] > 0
    assert {"coldframe_requests_late_total", "coldframe_jobs_late_total"} <= found.keys()
    assert found["coldframe_ready"] == 1
    assert [name for name in found if name.startswith('coldframe_model_info{encoder="sha256:')]
    assert "quokka" not in str(found).lower()


def test_answers_are_those_of_the_function(server: ServerProcess, client: httpx.Client) -> None:
    """Every route's answer has the same bytes as from the Lambda handler, but for ids and times."""
    asked: list[tuple[str, dict[str, Any]]] = [
        ("/v1/predict", {**PREDICT, "heads": ["auto", "logreg", "ensemble"], "scores": True}),
        ("/v1/predict", {**PREDICT, "heads": ["rf", "hgb", "mlp"], "scores": True}),
        ("/v1/embeddings", {"input": [TEXT, "Orbit"], "encoding_format": "base64"}),
        (
            "/v2/models/topics-mlp/infer",
            {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": [TEXT]}]},
        ),
    ]
    ours = [client.post(path, json=body).text for path, body in asked]
    script = (
        "import json, sys\n"
        "from types import SimpleNamespace\n"
        "from coldframe_functions.predict.app import handler\n"
        "from coldframe.api.gateway_event import http_event\n"
        "context = SimpleNamespace(aws_request_id='1', get_remaining_time_in_millis=lambda: 60000)\n"
        "handler(http_event('GET', '/v1/models', None), context)\n"
        "asked = json.load(sys.stdin)\n"
        "print(json.dumps([handler(http_event('POST', *one), context)['body'] for one in asked]))\n"
    )
    models = {"COLDFRAME_MODEL_DIR": model_dir_of(server), "COLDFRAME_LOG_LEVEL": "off"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(asked),
        cwd=ROOT,
        env=os.environ | models,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ours == json.loads(done.stdout)


def model_dir_of(server: ServerProcess) -> str:
    environ = Path(f"/proc/{server.process.pid}/environ").read_bytes().split(b"\0")
    return next(v.partition(b"=")[2].decode() for v in environ if v.startswith(b"COLDFRAME_MODEL_DIR="))


# --- clients that are large, slow, or gone ----------------------------------------------


def connect(server: ServerProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)


def read_all(connection: socket.socket) -> bytes:
    """What comes until the server closes the connection."""
    found = b""
    while chunk := connection.recv(65536):
        found += chunk
    return found


def problem_of(answer: bytes) -> Any:
    """The problem in the last answer of a connection."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head and b"connection: close" in head
    return json.loads(body)


HEAD = b"POST /v1/predict HTTP/1.1\r\nhost: here\r\n"


def test_a_body_that_is_declared_too_large_is_not_read(server: ServerProcess) -> None:
    """413 before the first byte of the body, and no `100 Continue` that would ask for it."""
    with connect(server) as connection:
        connection.sendall(HEAD + b"content-length: 1000000000\r\nexpect: 100-continue\r\n\r\n")
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer.lower()
    assert b"expected at most 100000" in answer


def test_a_body_in_chunks_is_read_as_far_as_it_may_be_long(server: ServerProcess) -> None:
    """Endless chunks: 413 reaches a client that has not stopped sending."""
    chunk = b"%x\r\n%s\r\n" % (50_000, b"x" * 50_000)
    with connect(server) as connection:
        connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n")
        for _ in range(10):
            connection.sendall(chunk)
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"more than 100000 bytes" in answer


@pytest.mark.parametrize(
    "sent",
    [b"", b"POST /v1/pre", HEAD, HEAD + b"content-length: 100\r\n\r\n{", b"\r\n\r\n"],
    ids=["nothing", "a line", "a head", "a body", "no request"],
)
def test_a_request_that_takes_for_ever_is_given_up(server: ServerProcess, sent: bytes) -> None:
    """What does not arrive within the read timeout is answered with 408 where it began, and closed."""
    with connect(server) as connection:
        connection.sendall(sent)
        answer = read_all(connection)
    if sent.strip():
        assert problem_of(answer)["detail"].startswith("The request did not arrive within 1 s.")
    assert answer.startswith(b"HTTP/1.1 408 ") or sent.strip() == b"" == answer


def test_a_head_that_drips_is_given_up(server: ServerProcess) -> None:
    """A byte now and then does not prolong the time that a head has."""
    dripping = threading.Event()
    with connect(server) as connection:

        def drip() -> None:
            while not dripping.wait(0.05):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

        connection.sendall(HEAD + b"x-drip: ")
        thread = threading.Thread(target=drip)
        thread.start()
        try:
            answer = connection.recv(65536)
        except ConnectionResetError:
            answer = b"HTTP/1.1 408 "  # its last drops met a closed connection
        dripping.set()
        thread.join()
    assert answer.startswith(b"HTTP/1.1 408 ")


def test_a_head_without_end_is_refused(server: ServerProcess) -> None:
    """More than 64 KiB of head: 431."""
    with connect(server) as connection:
        connection.sendall(HEAD + b"x-long: " + b"y" * 70_000)
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert problem_of(answer)["status"] == 431


def test_what_is_no_http_is_refused(server: ServerProcess) -> None:
    """400, and the connection is closed."""
    with connect(server) as connection:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
        answer = read_all(connection)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert problem_of(answer)["detail"].endswith("Send a plain HTTP request.")


def test_requests_in_a_pipeline_are_answered_in_order(server: ServerProcess) -> None:
    """Three requests in one packet: three answers, in the order asked."""
    request = b"GET /v2/models/%s HTTP/1.1\r\nhost: here\r\n%s\r\n"
    names = [b"topics-rf", b"no-model", b"topics-mlp"]
    last = request % (names[2], b"connection: close\r\n")
    sent = b"".join(request % (name, b"") for name in names[:2]) + last
    with connect(server) as connection:
        connection.sendall(sent)
        answer = read_all(connection)
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"200", b"404", b"200"]
    assert answer.index(b"topics-rf") < answer.index(b"topics-mlp")


def test_a_caller_who_leaves_is_counted_and_frees_its_place(bundle: Path) -> None:
    """Hundreds of callers hang up: none is answered, none keeps a place, and the next one is served."""
    body = json.dumps({"texts": [f"{TEXT} {i}" for i in range(200)], "heads": ["logreg"], "cache": False})
    request = HEAD + b"content-length: %d\r\n\r\n%s" % (len(body), body.encode())
    with serving(bundle, COLDFRAME_LOG_LEVEL="off") as server, server.client() as client:
        connections = [connect(server) for _ in range(200)]
        for connection in connections:
            connection.sendall(request)
        for connection in connections:
            connection.close()
        while server.metrics()["coldframe_requests_in_flight"]:
            pass  # a connection that ends and one that begins have no order
        assert client.post("/v1/predict", json=PREDICT).status_code == 200
        assert server.metrics()["coldframe_callers_left_total"] > 0
        assert server.end() == facts.DRAINED


def test_a_full_server_refuses_on_arrival(bundle: Path) -> None:
    """One place: while a request has it, the next one gets 503 with Retry-After, and health its answer."""
    with serving(bundle, COLDFRAME_QUEUE_REQUESTS="1") as server, server.client() as client:
        with connect(server) as slow:
            slow.sendall(HEAD + b"content-length: 100\r\n\r\n{")
            while server.metrics()["coldframe_requests_in_flight"] < 1:
                pass
            refused = client.post("/v1/predict", json=PREDICT)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert client.get(facts.READY).status_code == 200
        while server.metrics()["coldframe_requests_in_flight"]:
            pass
        assert client.post("/v1/predict", json=PREDICT).status_code == 200


def test_bodies_in_flight_are_bounded(bundle: Path) -> None:
    """More bytes than the server holds for all requests: 503, as they arrive."""
    with serving(bundle, COLDFRAME_QUEUE_BYTES="1048576") as server, server.client() as client:
        refused = client.post("/v1/predict", content=json.dumps({"text": "x" * 2_000_000}))
        assert refused.status_code == 503
        assert client.post("/v1/predict", json=PREDICT).status_code == 200


# --- the shared cache -------------------------------------------------------------------


def test_servers_share_a_cache(bundle: Path, store: FaultyServer, aws_environ: dict[str, str]) -> None:
    """What one server computed another one reads: the same answer, without a pass."""
    cache = {"COLDFRAME_CACHE_TABLE": TABLE, "COLDFRAME_CACHE_POLICY": "always"}
    shared = {**aws_environ, **cache, "COLDFRAME_CACHE_DEADLINE_MS": "60000"}
    replies = []
    for _ in range(2):
        with serving(bundle, **shared) as server, server.client() as client:
            replies.append(client.post("/v1/predict", json={**PREDICT, "cache": True}).json())
            assert server.end() == facts.DRAINED
    first, second = replies
    assert first["predictions"] == second["predictions"]
    assert [reply["usage"]["cache"]["l2"] for reply in replies] == [0, 1]
    assert [reply["usage"]["batches"] for reply in replies] == [1, 0]


def test_a_store_that_does_not_answer_changes_no_answer(bundle: Path) -> None:
    """A table behind a closed port: the same answer as without a table."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = taken.getsockname()[1]
    aws = {
        "AWS_ACCESS_KEY_ID": "an-id",
        "AWS_SECRET_ACCESS_KEY": "a-key",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL_DYNAMODB": f"http://127.0.0.1:{closed}",
        "COLDFRAME_CACHE_TABLE": "predictions",
        "COLDFRAME_CACHE_POLICY": "always",
    }
    answers = []
    for environ in (aws, {}):
        with serving(bundle, **environ) as server, server.client() as client:
            reply = client.post("/v1/predict", json={**PREDICT, "cache": True}).json()
            answers.append(reply["predictions"])
            assert server.end() == facts.DRAINED
    assert answers[0] == answers[1]
