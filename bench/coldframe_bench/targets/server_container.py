"""The server's image in Docker, run as the manifest for Knative says."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from coldframe.server.facts import PORT, READY
from coldframe_bench.targets.container import docker
from coldframe_local.paths import ROOT

MANIFEST = ROOT / "functions" / "server" / "manifests" / "knative.yaml"
_ALLOW_ANYONE = "COLDFRAME_ALLOW_ANYONE"
_TOKENS_FILE = "COLDFRAME_TOKENS_FILE"
_START_S = 120.0
_ANSWER_S = 300.0
_POLL_S = 0.01


@dataclass(frozen=True)
class Answer:
    """Answer of the server. headers: names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ServerContainer:
    """A running container of the server, asked at its own address: no proxy stands between."""

    def __init__(self, name: str, port: int) -> None:
        self.name = name
        [facts] = json.loads(docker("inspect", name))
        [network] = facts["NetworkSettings"]["Networks"].values()
        self.address: tuple[str, int] = (network["IPAddress"], port)

    def ask(self, method: str, path: str, body: Any = None, token: str = "") -> Answer:
        """One request on a connection of its own. Raises OSError or HTTPException where nobody answers."""
        connection = http.client.HTTPConnection(*self.address, timeout=_ANSWER_S)
        try:
            caller = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request(method, path, None if body is None else json.dumps(body), caller)
            reply = connection.getresponse()
            headers = {name.lower(): value for name, value in reply.getheaders()}
            return Answer(reply.status, headers, reply.read())
        finally:
            connection.close()

    def status(self, path: str) -> int:
        """Status of a GET request; 0 without an answer."""
        try:
            return self.ask("GET", path).status
        except (OSError, http.client.HTTPException):
            return 0

    def wait_ready(self) -> None:
        """Until readiness is true. Raises TimeoutError with the log."""
        deadline_s = time.monotonic() + _START_S
        while self.status(READY) != 200:
            if time.monotonic() > deadline_s:
                raise TimeoutError(
                    f"The container is not ready after {_START_S} s:\n{docker('logs', self.name)}"
                )
            time.sleep(_POLL_S)

    def exit_code(self) -> int:
        """Waits for the end."""
        return int(docker("wait", self.name))


def revision() -> dict[str, Any]:
    """Pod and limits of the manifest's replicas."""
    spec: dict[str, Any] = yaml.safe_load(MANIFEST.read_text())["spec"]["template"]["spec"]
    return spec


def as_knative(port: int, environment: Mapping[str, str]) -> list[str]:
    """Options of `docker run` for the manifest's container, with its PORT and further settings.

    Anyone may call it. RuntimeDefault, the profile of seccomp, is Docker's own unless another one is named.
    """
    [container] = revision()["containers"]
    security, limits = container["securityContext"], container["resources"]["limits"]
    memory = limits["memory"].removesuffix("i").lower()
    variables = {entry["name"]: entry["value"] for entry in container["env"] if entry["name"] != _TOKENS_FILE}
    variables |= {PORT: str(port), _ALLOW_ANYONE: "true", **environment}
    return [
        f"--user={security['runAsUser']}:{security['runAsGroup']}",
        *(["--read-only"] if security["readOnlyRootFilesystem"] else []),
        *([] if security["allowPrivilegeEscalation"] else ["--security-opt=no-new-privileges"]),
        *[f"--cap-drop={capability}" for capability in security["capabilities"]["drop"]],
        f"--memory={memory}",
        f"--memory-swap={memory}",
        f"--cpus={limits['cpu']}",
        *[f"--env={name}={value}" for name, value in variables.items()],
    ]


@contextmanager
def serving(image: str, port: int, environment: Mapping[str, str]) -> Iterator[ServerContainer]:
    """A container that was started just now, and is removed afterwards."""
    name = docker("run", "--detach", *as_knative(port, environment), image).strip()
    try:
        yield ServerContainer(name, port)
    finally:
        docker("rm", "--force", "--volumes", name)
