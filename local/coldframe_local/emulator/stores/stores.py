"""DynamoDB tables, S3 buckets and SQS queues of the template: moto's server, or endpoints that were given."""

from __future__ import annotations

import asyncio
import math
import os
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import Any

import msgspec

from coldframe.errors import ColdframeError
from coldframe_local.emulator.lambda_service.environments.spawn import exit_reason
from coldframe_local.emulator.lambda_service.event_sources.destinations import NotSent
from coldframe_local.emulator.lambda_service.event_sources.pollers import QueueFailed, QueueGone
from coldframe_local.emulator.lambda_service.event_sources.sqs import Message
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import Log
from coldframe_local.emulator.stores.places import Places, StoreOptions, is_aws
from coldframe_local.emulator.template.syntax.parameters import REGION
from coldframe_local.emulator.template.template import Template
from coldframe_local.paths import ROOT, python_path

# Ten messages of 1 MB, each escaped as JSON.
_LONGEST_LINE_BYTES = 1 << 26
_GONE = "the local stores are gone"
_LOOPBACK = "127.0.0.1"


class StoresCannotListen(ColdframeError):
    """The port of the stores is taken, or not allowed."""


class Stores:
    """The stores, for as long as the `async with` block.

    The socket listens from the beginning; moto's server, which takes a second of CPU time and 100 MB,
    is started by the first connection, or by `start`. Who connects before it is ready waits for it.
    """

    def __init__(self, template: Template, options: StoreOptions, log: Log) -> None:
        self._places = Places(template, options)
        self._queues = {queue.arn: queue.name for queue in template.queues}
        self._log = log
        self._process: Process | None = None
        self._life: asyncio.Task[None] | None = None
        self._closing = False
        self._ready = asyncio.Event()
        self._numbers = count()
        self._answers: dict[int, asyncio.Future[tuple[Any, str]]] = {}
        self._gone = False
        self._listener = _listen(options.port) if self._places.moto_is_needed() else None
        if self._listener is not None:
            self._places.url = f"http://{_LOOPBACK}:{self._listener.getsockname()[1]}"

    @property
    def environ(self) -> dict[str, str]:
        """Variables by which boto3 in a function finds the stores."""
        return self._places.environ

    @property
    def url(self) -> str | None:
        """Where moto's server listens; None when there is none."""
        return self._places.url

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
        queue, endpoint = self._queues.get(arn), self._places.endpoint("sqs")
        if queue is None:
            raise NotSent("it is not a queue that was made here")
        if is_aws(endpoint):
            raise NotSent("a queue of AWS itself is not written to from here")
        if self._closing:
            raise NotSent("the emulator is leaving")
        self.start()
        await self._ready.wait()
        url, error = await self._call("send", queue, message=message.decode())
        if error:
            raise NotSent(error)
        return f"aws sqs receive-message --region {REGION} --endpoint-url {endpoint} --queue-url {url}"

    async def receive(self, queue: str, most: int, wait_s: float) -> list[Message]:
        """Up to ten messages of a queue, by its name. Waits `wait_s` for a first one. Raises QueueFailed."""
        messages, error = await self._call("receive", queue, most=most, wait_s=math.ceil(wait_s))
        if error:
            raise self._failure(error)
        return list(messages)

    async def delete(self, queue: str, receipt_handles: Sequence[str]) -> None:
        """Deletes up to ten messages. Raises QueueFailed."""
        _, error = await self._call("delete", queue, handles=list(receipt_handles))
        if error:
            raise self._failure(error)

    def _failure(self, error: str) -> QueueFailed:
        if is_aws(self._places.endpoint("sqs")):
            return QueueGone("a queue of AWS itself is not read from here")
        return QueueGone(error) if error == _GONE else QueueFailed(error)

    async def _call(self, method: str, queue: str, **parameters: Any) -> tuple[Any, str]:
        """A call that the server's process makes: its result, and what was wrong, or ""."""
        process, number = self._process, next(self._numbers)
        if process is None or process.stdin is None or process.stdin.is_closing() or self._gone:
            return None, _GONE
        answer: asyncio.Future[tuple[Any, str]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            process.stdin.write(msgspec.json.encode((number, method, queue, parameters)) + b"\n")
            await process.stdin.drain()
            return await answer
        except ConnectionError:
            return None, _GONE
        finally:
            del self._answers[number]

    async def _read_answers(self, output: asyncio.StreamReader) -> None:
        """Passes each answer on to whoever waits for it, until the process ends."""
        while line := await output.readline():
            number, result, error = msgspec.json.decode(line)
            if (answer := self._answers.get(number)) is not None and not answer.done():
                answer.set_result((result, error))
        self._gone = True
        for answer in self._answers.values():
            if not answer.done():
                answer.set_result((None, _GONE))

    async def finished(self) -> None:
        """Returns when the process that was started has ended, be it well or not."""
        if self._life is not None:
            await asyncio.shield(self._life)

    async def __aenter__(self) -> Stores:
        if not self._places.something_is_to_be_made():
            self._ready.set()
        elif self._listener is None:
            self.start()  # nobody here would notice the first connection
        else:
            asyncio.get_running_loop().add_reader(self._listener, self.start)
        return self

    def start(self) -> None:
        """Starts the process that makes the stores, unless it was started before or the block has ended."""
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

    async def _live(self) -> None:
        """The whole life of the process: spawned, watched, reaped."""
        descriptors = [self._listener.fileno()] if self._listener is not None else []
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "coldframe_local.emulator.stores.store_server",
            *map(str, descriptors),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=ROOT,
            env=_environ(os.environ) | self._places.environ,
            pass_fds=descriptors,
            limit=_LONGEST_LINE_BYTES,
            start_new_session=True,  # a terminal's Ctrl-C is for the emulator
        )
        if self._closing:  # while it was being spawned
            process.kill()
        await self._watch(process)

    async def _watch(self, process: Process) -> None:
        assert process.stdin is not None  # noqa: S101 - PIPE was asked for
        assert process.stdout is not None  # noqa: S101
        assert process.stderr is not None  # noqa: S101
        process.stdin.write(msgspec.json.encode(self._places.plan()) + b"\n")
        is_ready = bool(await process.stdout.readline())
        self._ready.set()
        await self._read_answers(process.stdout)
        errors = (await process.stderr.read()).decode(errors="replace").strip().splitlines()
        await process.wait()
        if self._listener is not None:
            self._listener.close()  # refused at once is better than never answered
        why = errors[-1] if errors else exit_reason(process.returncode or 0)
        if self._closing:
            return
        if not is_ready:
            self._log(
                f"Tables, buckets and queues of the template could not be made: {why}. Functions run without."
            )
        elif self._listener is not None:
            self._log(
                f"The local stores are gone: {why}. Functions run without; start `coldframe up` again "
                "to have them back."
            )


def _listen(port: int) -> socket.socket:
    """Raises StoresCannotListen."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_LOOPBACK, port))
    except OSError as exc:
        listener.close()
        raise StoresCannotListen(
            f"{_LOOPBACK}:{port} cannot be listened on: {exc.strerror}. Name another --stores-port."
        ) from exc
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
    sources = replace(template.event_sources, mappings=())
    return replace(template, functions=functions, tables=(), buckets=(), queues=(), event_sources=sources)


def _emptied(environ: Mapping[str, str], names: set[str]) -> dict[str, str]:
    return {variable: "" if value in names else value for variable, value in environ.items()}


def _environ(inherited: Mapping[str, str]) -> dict[str, str]:
    """Without any AWS setting of the developer's: this process reaches only the endpoints it is told."""
    others = {name: value for name, value in inherited.items() if not name.startswith("AWS_")}
    return others | {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PYTHONPATH": python_path(),
    }
