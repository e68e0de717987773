"""The server's life: listen, load, serve, drain."""

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from coldframe.api.messages import where
from coldframe.errors import ColdframeError
from coldframe.releases.place import open_place
from coldframe.scheduling.stats import Stats
from coldframe.server.asgi_app import AsgiApp
from coldframe.server.facts import DRAINED, FAILED
from coldframe.server.http_server import HttpServer
from coldframe.server.lifecycle import Lifecycle
from coldframe.server.listening import listen
from coldframe.server.log import Log
from coldframe.server.metrics import Metrics
from coldframe.server.settings import ServerSettings
from coldframe.server.tokens import Tokens, choose_host
from coldframe.server.updating import Served, Updates, load_image, release_memory
from coldframe.timing import since_ms

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_BY_SIGNAL = 128  # plus the signal's number: the shells' exit code of a process that a signal ended


def run(settings: ServerSettings, port: int, listening: Callable[[str], None] | None = None) -> int:
    """Serves until SIGINT or SIGTERM, then drains; returns the exit code.

    listening: called with the address, and a description of allowed callers, once the socket listens.
    Raises BadSetting, CannotListen, or a BundleError for models that cannot be served; then no request was
    answered.
    """
    import uvloop

    log = Log()
    sender = None
    if settings.otlp_endpoint:
        from coldframe.telemetry.sending import open_sender

        settings = replace(settings, traces="log")
        log.sender = sender = open_sender("coldframe-server", settings.otlp_endpoint)
    try:
        tokens = Tokens(settings, log.event)
        listener = listen(choose_host(settings, tokens), port)
        server = _Server(settings, tokens, listener, log)
        if listening is not None:
            listening(f"{server.url} for {server.callers}")
        code = uvloop.run(server.serve())
    finally:
        log.close()
        if sender is not None:
            sender.close()
    if code != DRAINED:
        os._exit(code)  # threads still work for callers that have left
    return code


class _Server:
    """One server, in the event loop's thread."""

    def __init__(self, settings: ServerSettings, tokens: Tokens, listener: socket.socket, log: Log) -> None:
        self._settings = settings
        self._log = log
        self._lifecycle = Lifecycle()
        self._metrics = Metrics()
        self._pool = ThreadPoolExecutor(settings.request_threads, "request")
        self._app = AsgiApp(settings, tokens, self._lifecycle, self._metrics, log, self._pool)
        self._updates = Updates(settings, open_place(settings.releases)) if settings.releases else None
        self._served: Served | None = None
        self._earlier_passes = Stats()  # of models that were exchanged
        host, self._port = listener.getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self._port}"
        self.callers = tokens.callers(host)
        self._http = HttpServer(self._app, listener, settings.keep_alive_s, settings.read_timeout_s)

    async def serve(self) -> int:
        """Returns the exit code. Raises a BundleError."""
        self._started_s = time.monotonic()
        self._leaving, self._look_now = asyncio.Event(), asyncio.Event()
        self._on_signals(self._leave)
        if self._updates is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._look_now.set)
        await self._http.start()
        listening = {"url": self.url, "callers": self.callers}
        self._log.event("listening", **listening, duration_ms=since_ms(self._started_s))
        loading = asyncio.create_task(asyncio.to_thread(self._load))
        leaving = asyncio.create_task(self._leaving.wait())
        await asyncio.wait((loading, leaving), return_when=asyncio.FIRST_COMPLETED)
        if loading.done():
            try:
                self._begin(loading.result())
            except ColdframeError as exc:
                self._log.event("not-ready", **_facts(exc), duration_ms=since_ms(self._started_s))
                leaving.cancel()
                self._lifecycle.leave()
                await self._http.stop_accepting()
                await self._http.close(grace_s=0)
                raise
        updates = self._updates
        following = asyncio.create_task(self._follow(updates)) if updates is not None else None
        await leaving
        if updates is not None and following is not None:
            updates.stop()
            following.cancel()
        return await self._drain()

    def _load(self) -> Served:
        """The first models, in a thread. Raises a BundleError."""
        if self._updates is None:
            return self._app.prepare(load_image(self._settings))
        loaded, refused = self._updates.first()
        if refused is not None:
            self._refuse(*refused, self._started_s)
        return self._app.prepare(loaded)

    def _begin(self, served: Served) -> None:
        """Answers requests from now on."""
        self._open(served)
        self._metrics.add_passes(self._passes)
        self._lifecycle.loaded()
        self._log.event("ready", **_names(served), duration_ms=since_ms(self._started_s))

    def _open(self, served: Served) -> None:
        self._app.open(served)
        self._served = served
        self._metrics.set_models(served.loaded.models)

    def _passes(self) -> Stats:
        """Statistics of passes, whose counters go on when models are exchanged."""
        assert self._served is not None  # noqa: S101 - read from the first models on
        return self._served.loaded.driver.stats().after(self._earlier_passes)

    async def _follow(self, updates: Updates) -> None:
        """Looks for another release once in a while, and at SIGHUP, until it is cancelled."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._look_now.wait(), self._settings.releases_check_s)
            is_urgent = self._look_now.is_set()
            self._look_now.clear()
            if await self._update(updates, is_urgent):
                await asyncio.to_thread(release_memory)

    async def _update(self, updates: Updates, is_urgent: bool) -> bool:
        """Exchanges the models for those of the current release; whether it did. After any error the old ones
        stay.
        """
        before, started_s = self._served, time.monotonic()
        assert before is not None  # noqa: S101 - the first models are there
        try:
            release = await asyncio.to_thread(updates.due, before.loaded.release, is_urgent)
        except Exception as exc:
            self._metrics.updated("unread")
            self._log.event("releases-unread", **_facts(exc), duration_ms=since_ms(started_s))
            return False
        if not release:
            return False
        try:
            served = await asyncio.to_thread(self._take, updates, release, before)
        except Exception as exc:
            self._refuse(release, exc, started_s)
            return False
        await self._exchange(before, served, started_s)
        return True

    def _take(self, updates: Updates, release: str, before: Served) -> Served:
        """A release that is ready to answer, in a thread. Raises an error of `Updates.load`."""
        return self._app.prepare(updates.load(release, before.loaded))

    async def _exchange(self, before: Served, served: Served, started_s: float) -> None:
        """Lets `served` answer, and ends `before` with its last request: at most two are in memory."""
        self._earlier_passes = before.loaded.driver.stats().after(self._earlier_passes)
        self._open(served)
        self._metrics.updated("served")
        facts = _names(served) | {"before": before.loaded.release}
        self._log.event("release-served", **facts, duration_ms=since_ms(started_s))
        await before.unused()
        await asyncio.to_thread(before.api.close)
        await asyncio.to_thread(before.loaded.close)

    def _refuse(self, release: str, error: Exception, started_s: float) -> None:
        self._metrics.updated("refused")
        facts = {"release": release, **_facts(error)}
        self._log.event("release-refused", **facts, duration_ms=since_ms(started_s))

    async def _drain(self) -> int:
        """Answers accepted requests. During the notice readiness is false, so that clients stop sending."""
        settings, started_s = self._settings, time.monotonic()
        if self._lifecycle.accepts:
            await asyncio.sleep(settings.drain_notice_s)
        self._lifecycle.refuse()
        await self._http.stop_accepting()
        unanswered = await self._http.close(settings.drain_grace_s)
        if self._served is not None:
            await asyncio.to_thread(self._served.loaded.close)
        self._pool.shutdown(wait=not unanswered, cancel_futures=True)
        if self._served is not None:
            self._served.api.close()
        self._log.event("ended", unanswered=unanswered, duration_ms=since_ms(started_s))
        return FAILED if unanswered else DRAINED

    def _leave(self, number: int) -> None:
        """Handles the first signal. The second one ends the process at once, even as a container's first
        process.
        """
        self._on_signals(lambda number: os._exit(_BY_SIGNAL + number))
        self._lifecycle.leave()
        facts = {"signal": signal.Signals(number).name, "in_flight": self._app.intake.requests}
        self._log.event("leaving", **facts, duration_ms=since_ms(self._started_s))
        self._leaving.set()

    def _on_signals(self, act: Callable[[int], None]) -> None:
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, act, number)


def _facts(error: Exception) -> dict[str, Any]:
    """An error, for the log. The text of an unexpected one may hold anything, and is left out."""
    detail = str(error) if isinstance(error, ColdframeError) else where(error)
    return {"error": type(error).__name__, "detail": detail}


def _names(served: Served) -> dict[str, Any]:
    """The models' versions, and the release if there is one, for the log."""
    loaded = served.loaded
    versions = {model.manifest.name: model.manifest.version for model in loaded.models.all()}
    return {"models": versions} | ({"release": loaded.release} if loaded.release else {})
