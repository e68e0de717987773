"""DynamoDB tables, S3 buckets and SQS queues of the template: moto's server, or endpoints that were given."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from urllib.parse import urlsplit

import msgspec

from local.lambda_service.destinations import NotSent
from local.lambda_service.log_pipe import Log
from local.lambda_service.spawn import exit_reason
from local.paths import ROOT
from local.template.parameters import REGION
from local.template.template import Bucket, Queue, Table, Template

_CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
# Local stores take anything; boto3 wants something.
_LOCAL_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Where the stores are. An endpoint that is None is moto's server, started here."""

    dynamodb_endpoint: str | None = None
    s3_endpoint: str | None = None
    sqs_endpoint: str | None = None

    @property
    def endpoints(self) -> dict[str, str | None]:
        """By service."""
        return {"dynamodb": self.dynamodb_endpoint, "s3": self.s3_endpoint, "sqs": self.sqs_endpoint}


class Stores:
    """The stores, for as long as the `async with` block.

    The socket listens from the beginning; moto's server, which takes a second of CPU time and 100 MB,
    is started by the first connection, or by `start`. Who connects before it is ready waits for it.
    """

    def __init__(self, template: Template, options: StoreOptions, log: Log) -> None:
        self._tables: tuple[Table, ...] = template.tables
        self._buckets: tuple[Bucket, ...] = template.buckets
        self._queues: tuple[Queue, ...] = template.queues
        self._endpoints = options.endpoints
        self._log = log
        self._process: Process | None = None
        self._life: asyncio.Task[None] | None = None
        self._closing = False
        self._ready = asyncio.Event()
        self._sending = asyncio.Lock()
        self._listener = _listen() if self._moto_is_needed() else None
        self._url = None if self._listener is None else f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def environ(self) -> dict[str, str]:
        """What boto3 in a function needs to find them."""
        if not any(self._wanted.values()):
            return {}
        endpoints = {f"AWS_ENDPOINT_URL_{name.upper()}": self._endpoint(name) for name in self._endpoints}
        return self._credentials() | endpoints

    @property
    def url(self) -> str | None:
        """Where moto's server listens; None when there is none."""
        return self._url

    @property
    def pid(self) -> int | None:
        """The server's process."""
        return self._process.pid if self._process is not None else None

    async def ready(self) -> None:
        """Returns when every table, bucket and queue is there, or cannot be made."""
        await self._ready.wait()

    async def send(self, arn: str, message: bytes) -> str:
        """Sends a message (UTF-8) to a queue of the template. Returns the command that reads it.

        Raises NotSent. The server's process does it, which has boto3: importing that here would stop all
        requests meanwhile.
        """
        queue = next((queue for queue in self._queues if queue.arn == arn), None)
        if queue is None:
            raise NotSent("it is no queue that was made here")
        if _is_aws(self._endpoint("sqs")):
            raise NotSent("a queue of AWS itself is not written to from here")
        if self._closing:
            raise NotSent("the emulator is leaving")
        self.start()
        await self._ready.wait()
        url = await self._ask((queue.name, message.decode()))
        place = f"--region {REGION} --endpoint-url {self._endpoint('sqs')}"
        return f"aws sqs receive-message {place} --queue-url {url}"

    async def _ask(self, request: tuple[str, str]) -> str:
        """One message to the server's process: the URL of its queue. Raises NotSent."""
        reply = b""
        async with self._sending:
            with contextlib.suppress(ConnectionError):
                reply = await self._exchange(msgspec.json.encode(request) + b"\n")
        if not reply:
            raise NotSent("the local stores are gone")
        url, error = msgspec.json.decode(reply, type=tuple[str, str])
        if error:
            raise NotSent(error)
        return url

    async def _exchange(self, line: bytes) -> bytes:
        """A line to the server's process, and its answer; empty when it is gone."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None or process.stdin.is_closing():
            return b""
        process.stdin.write(line)
        await process.stdin.drain()
        return await process.stdout.readline()

    async def finished(self) -> None:
        """Returns when the process that was started has ended, be it well or not."""
        if self._life is not None:
            await asyncio.shield(self._life)

    async def __aenter__(self) -> Stores:
        if not self._plan_is_needed():
            self._ready.set()
        elif self._listener is None:
            self.start()  # nobody here would notice the first connection
        else:
            asyncio.get_running_loop().add_reader(self._listener, self.start)
        return self

    def start(self) -> None:
        """Makes what is not there yet; once is enough, and none is made that would be left behind."""
        if self._life is None and not self._ready.is_set() and not self._closing:
            if self._listener is not None:
                asyncio.get_running_loop().remove_reader(self._listener)
            self._life = asyncio.create_task(self._live())

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing = True
        if self._life is None and self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
        if self._life is not None:
            await self._life
        if self._listener is not None:
            self._listener.close()

    @property
    def _wanted(self) -> dict[str, tuple[Table, ...] | tuple[Bucket, ...] | tuple[Queue, ...]]:
        """What the template has of each service."""
        return {"dynamodb": self._tables, "s3": self._buckets, "sqs": self._queues}

    def _moto_is_needed(self) -> bool:
        return any(wanted and self._endpoints[service] is None for service, wanted in self._wanted.items())

    def _plan_is_needed(self) -> bool:
        """Real AWS is left as it is: what a deploy makes there costs money."""
        return self._moto_is_needed() or any(
            endpoint is not None and not _is_aws(endpoint) for endpoint in self._endpoints.values()
        )

    def _credentials(self) -> dict[str, str]:
        """The developer's own for endpoints that they gave; moto's server takes any."""
        given = any(endpoint is not None for endpoint in self._endpoints.values())
        own = {name: os.environ[name] for name in _CREDENTIALS if name in os.environ}
        return own if given and own else _LOCAL_CREDENTIALS

    def _endpoint(self, service: str) -> str:
        return self._endpoints[service] or self.url or ""

    def _plan(self) -> bytes:
        made = {
            service: () if _is_aws(self._endpoint(service)) else wanted
            for service, wanted in self._wanted.items()
        }
        plan = {
            "region": REGION,
            "tables": [(table.parameters, table.ttl_attribute) for table in self._tables if made["dynamodb"]],
            "buckets": [bucket.name for bucket in self._buckets if made["s3"]],
            "queues": [(queue.name, queue.attributes) for queue in self._queues if made["sqs"]],
            "endpoints": {name: given for name, given in self._endpoints.items() if given is not None},
        }
        return msgspec.json.encode(plan)

    async def _live(self) -> None:
        """The whole life of the process: spawned, watched, reaped."""
        descriptors = [self._listener.fileno()] if self._listener is not None else []
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "local.stores.store_server",
            *map(str, descriptors),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=ROOT,
            env=_environ(os.environ) | self.environ,
            pass_fds=descriptors,
            start_new_session=True,  # a terminal's Ctrl-C is for the emulator
        )
        if self._closing:  # while it was being spawned
            process.kill()
        await self._watch(process)

    async def _watch(self, process: Process) -> None:
        assert process.stdin is not None  # noqa: S101 - PIPE was asked for
        assert process.stdout is not None  # noqa: S101
        assert process.stderr is not None  # noqa: S101
        process.stdin.write(self._plan() + b"\n")
        made = bool(await process.stdout.readline())
        self._ready.set()
        errors = (await process.stderr.read()).decode(errors="replace").strip().splitlines()
        await process.wait()
        if self._listener is not None:
            self._listener.close()  # refused at once is better than never answered
        why = errors[-1] if errors else exit_reason(process.returncode or 0)
        if self._closing:
            return
        if not made:
            self._log(
                f"Tables, buckets and queues of the template could not be made: {why}. Functions run without."
            )
        elif self._listener is not None:
            self._log(
                f"The local stores are gone: {why}. Functions run without; start `coldframe up` again "
                "to have them back."
            )


def _listen() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(socket.SOMAXCONN)
    return listener


def without_stores(template: Template) -> Template:
    """The template without tables, buckets and queues: variables that would name one of them are empty."""
    names = {table.name for table in template.tables} | {bucket.name for bucket in template.buckets}
    names |= {name for queue in template.queues for name in (queue.name, queue.url)}
    functions = tuple(
        replace(
            function, settings=replace(function.settings, environ=_emptied(function.settings.environ, names))
        )
        for function in template.functions
    )
    return replace(template, functions=functions, tables=(), buckets=(), queues=())


def _emptied(environ: Mapping[str, str], names: set[str]) -> dict[str, str]:
    return {variable: "" if value in names else value for variable, value in environ.items()}


def _is_aws(endpoint: str) -> bool:
    return (urlsplit(endpoint).hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))


def _environ(inherited: Mapping[str, str]) -> dict[str, str]:
    """Without any AWS setting of the developer's: this process reaches only the endpoints it is told."""
    kept = {name: value for name, value in inherited.items() if not name.startswith("AWS_")}
    return kept | {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHONPATH": str(ROOT),
    }
