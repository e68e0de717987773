"""The image in a container, as close to Lambda as Docker comes."""

import http.client
import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

# 1769 MB of memory are one vCPU; /tmp has 512 MB and is all that can be written.
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html, read 2026-11-20
AS_ON_LAMBDA = (
    "--read-only",
    "--tmpfs=/tmp:size=512m,mode=1777",
    "--memory=1769m",
    "--memory-swap=1769m",
    "--cpus=1",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--user=993:990",
)

_INVOKE = "/2015-03-31/functions/function/invocations"
_START_S = 30.0
_ANSWER_S = 300.0
"""As long as the runtime interface emulator waits for a function: an emulated processor takes its time."""


@dataclass(frozen=True)
class Launch:
    """How programs of an image are started.

    options: of `docker run`, beside Lambda's. server: instead of the image's own entry point and command.
    python: its interpreter.
    """

    options: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    python: tuple[str, ...] = ("python3",)

    def run(self, image: str, program: Sequence[str]) -> list[str]:
        """Arguments of `docker run`; an empty program is the image's own."""
        entry = [f"--entrypoint={program[0]}"] if program else []
        return [*self.options, *entry, image, *program[1:]]


AS_IT_IS = Launch()


class Container:
    """A running container that serves one execution environment through AWS's runtime interface emulator."""

    def __init__(self, name: str, python: Sequence[str] = AS_IT_IS.python) -> None:
        self.name = name
        self._python = python
        self._port = int(docker("port", name, "8080/tcp").splitlines()[0].rpartition(":")[2])

    def invoke(self, event: Mapping[str, Any]) -> Any:
        """Response of the function to `event`. The first call waits for the init phase."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_ANSWER_S)
        try:
            connection.request("POST", _INVOKE, json.dumps(event))
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def run_python(self, source: str) -> str:
        """Runs a program in the container, as the function's user; returns what it prints."""
        return docker("exec", "--interactive", self.name, *self._python, "-", stdin=source)

    def log(self) -> str:
        """All that was printed in the container."""
        return docker("logs", self.name, stderr=subprocess.STDOUT)

    def wait(self) -> None:
        """Until the emulator listens; it begins the init phase with the first invocation."""
        deadline_s = time.monotonic() + _START_S
        while not self._listens():
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"The container does not listen after {_START_S} s:\n{self.log()}")
            time.sleep(0.05)

    def _listens(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
        try:
            connection.request("GET", "/")  # no invocation: answered with 404
            connection.getresponse()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        return True


@contextmanager
def running(image: str, launch: Launch = AS_IT_IS) -> Iterator[Container]:
    """A container of `image` that listens, and is removed afterwards."""
    program = launch.run(image, launch.server)
    name = docker("run", "--detach", "--publish=127.0.0.1::8080", *AS_ON_LAMBDA, *program).strip()
    try:
        container = Container(name, launch.python)
        container.wait()
        yield container
    finally:
        docker("rm", "--force", "--volumes", name)


def docker(*arguments: str, stdin: str | None = None, stderr: int = subprocess.PIPE) -> str:
    """Output of a docker command. Raises RuntimeError with what it wrote when it fails."""
    command: Sequence[str] = ["docker", *arguments]
    done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=stderr, text=True)
    if done.returncode:
        raise RuntimeError(f"`docker {arguments[0]}` failed:\n{done.stderr or done.stdout}")
    return done.stdout
