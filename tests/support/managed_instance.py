"""The Runtime API of a Lambda Managed Instance: many invocations at once in one environment.

awslambdaric starts as many processes as AWS_LAMBDA_MAX_CONCURRENCY says; each polls for its own invocations.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE_S = 120


class ManagedInstance:
    """What one environment is asked, and says."""

    def __init__(self, processes: int) -> None:
        self.polls = threading.Semaphore(0)
        self.results: dict[str, Any] = {}
        self.init_errors: list[Any] = []
        self._processes = processes
        self._waiting: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self._changed = threading.Condition()

    def invoke_at_once(self, events: Sequence[Any]) -> list[Any]:
        """Results of events, none of which is handed out before every process waits for one."""
        for _ in range(self._processes):
            assert self.polls.acquire(timeout=_PATIENCE_S), self.init_errors
        names = [f"request-{len(self.results) + n}" for n in range(len(events))]
        for name, event in zip(names, events, strict=True):
            self._waiting.put((name, json.dumps(event).encode()))
        with self._changed:
            assert self._changed.wait_for(lambda: self.results.keys() >= set(names), _PATIENCE_S)
        return [self.results[name] for name in names]

    def next(self) -> tuple[str, bytes]:
        """Waits for an invocation."""
        self.polls.release()
        return self._waiting.get()

    def returned(self, name: str, result: Any) -> None:
        with self._changed:
            self.results[name] = result
            self._changed.notify_all()


@contextmanager
def managed_instance(processes: int, **environ: str) -> Iterator[ManagedInstance]:
    """An environment of the predict function whose `processes` poll at once."""
    instance = ManagedInstance(processes)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(instance))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    given = {
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{server.server_port}",
        "AWS_LAMBDA_MAX_CONCURRENCY": str(processes),
        "AWS_LAMBDA_INITIALIZATION_TYPE": "lambda-managed-instances",
        "AWS_LAMBDA_FUNCTION_NAME": "predict",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "2048",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "awslambdaric", "coldframe_functions.predict.app.handler"],
        cwd=ROOT,
        env=os.environ | given | environ,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield instance
    finally:
        os.killpg(process.pid, 9)  # its own processes, too
        process.wait()
        server.shutdown()
        thread.join()
        server.server_close()


def handler_of(instance: ManagedInstance) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name, event = instance.next()
            self.send_response(200)
            self.send_header("Lambda-Runtime-Aws-Request-Id", name)
            self.send_header("Lambda-Runtime-Deadline-Ms", str(int((time.time() + 60) * 1e3)))
            arn = "arn:aws:lambda:us-east-1:1:function:predict"
            self.send_header("Lambda-Runtime-Invoked-Function-Arn", arn)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(event)))
            self.end_headers()
            self.wfile.write(event)

        def do_POST(self) -> None:
            result = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path.endswith("/init/error"):
                instance.init_errors.append(result)
            else:
                instance.returned(self.path.split("/")[-2], result)
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    return Handler
