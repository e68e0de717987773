"""Records the answers of AWS's runtime interface emulator: `python -m tests.recorded.record`.

Needs the SAM CLI, whose package has the emulator's program, and no Docker. Each case gets an
emulator of its own, because a crash ends it.
"""

import hashlib
import http.client
import json
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.recorded.cases import CASES, TIMEOUT_S, comparable

RECORDED = Path(__file__).with_name("runtime_interface_emulator.json")
INVOCATIONS = "/2015-03-31/functions/function/invocations"
_ARCHITECTURE = {"x86_64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()]


def main() -> None:
    """Writes the recorded answers anew."""
    program = find_program()
    answers = {name: record(program, payload) for name, payload in CASES.items()}
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    made_with = {"program": program.name, "sha256": digest, "timeout_s": TIMEOUT_S}
    RECORDED.write_text(json.dumps({"made_with": made_with, "answers": answers}, indent=2) + "\n")


def find_program() -> Path:
    """The emulator inside the SAM CLI's package."""
    found = sorted((ROOT / ".venv-sam").glob(f"lib/*/site-packages/samcli/local/rapid/*-{_ARCHITECTURE}"))
    if not found:
        sys.exit(f"{ROOT / '.venv-sam'} has no runtime interface emulator. Run `make sam-validate` first.")
    return found[0]


def record(program: Path, payload: bytes) -> dict[str, Any]:
    """Status, headers and body of one invocation."""
    with serving(program) as port, closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("POST", INVOCATIONS, payload)
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        for varying in ("date", "content-length"):
            headers.pop(varying, None)
        return {"status": response.status, "headers": headers, "body": comparable(response.read().decode())}


@contextmanager
def serving(program: Path) -> Iterator[int]:
    """An emulator with the runtime client on the tests' handlers; the port that it listens on."""
    port, api_port = free_ports(2)
    process = subprocess.Popen(
        [
            program,
            *("--log-level", "error"),
            *("--runtime-api-address", f"127.0.0.1:{api_port}"),
            *("--runtime-interface-emulator-address", f"127.0.0.1:{port}"),
            *(sys.executable, "-m", "awslambdaric", "handlers.told"),
        ],
        cwd=ROOT / "tests" / "functional",
        env={"PATH": os.environ["PATH"], "AWS_LAMBDA_FUNCTION_TIMEOUT": str(TIMEOUT_S)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_listening(port)
        yield port
    finally:
        process.kill()
        process.wait()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on at this moment."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_until_listening(port: int) -> None:
    """Returns once somebody accepts connections."""
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return


if __name__ == "__main__":
    main()
