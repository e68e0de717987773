"""The server's life: listen, load, serve, drain."""

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from msgspec.structs import replace

from coldframe.api.api import Api
from coldframe.errors import ColdframeError
from coldframe.pipeline.models import Models
from coldframe.server.asgi_app import AsgiApp
from coldframe.server.facts import DRAINED, FAILED
from coldframe.server.http_server import HttpServer
from coldframe.server.lifecycle import Lifecycle
from coldframe.server.listening import listen
from coldframe.server.loading import load
from coldframe.server.log import Log
from coldframe.server.metrics import Metrics
from coldframe.server.settings import ServerSettings
from coldframe.server.tokens import Tokens, choose_host
from coldframe.serving.driver import Driver
from coldframe.timing import StartMark

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
        self._driver: Driver | None = None
        self._api: Api | None = None
        host, self._port = listener.getsockname()[:2]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self._port}"
        self.callers = tokens.callers(host)
        self._http = HttpServer(self._app, listener, settings.keep_alive_s, settings.read_timeout_s)

    async def serve(self) -> int:
        """Returns the exit code. Raises a BundleError."""
        self._leaving = asyncio.Event()
        self._on_signals(self._leave)
        await self._http.start()
        self._log.event("listening", url=self.url, callers=self.callers)
        started_s = time.monotonic()
        loading = asyncio.create_task(asyncio.to_thread(load, self._settings))
        leaving = asyncio.create_task(self._leaving.wait())
        await asyncio.wait((loading, leaving), return_when=asyncio.FIRST_COMPLETED)
        if loading.done():
            try:
                self._open(*loading.result(), time.monotonic() - started_s)
            except ColdframeError as exc:
                self._log.event("not-ready", error=type(exc).__name__, detail=str(exc))
                leaving.cancel()
                self._lifecycle.leave()
                await self._http.stop_accepting()
                await self._http.close(grace_s=0)
                raise
        await leaving
        return await self._drain()

    def _open(self, models: Models, driver: Driver, took_s: float) -> None:
        api = self._api = Api(models, self._settings, StartMark(is_warm=True), self._log)
        versions = {}
        for predictor in models.all():
            manifest = predictor.manifest
            versions[manifest.name] = manifest.version
            self._metrics.add_model(manifest.name, manifest.version, predictor.encoder.version)
        self._driver = driver
        self._metrics.add_passes(driver.stats)
        self._app.open(api, driver)
        self._lifecycle.loaded()
        self._log.event("ready", models=versions, loaded_ms=round(took_s * 1e3))

    async def _drain(self) -> int:
        """Answers accepted requests. During the notice readiness is false, so that clients stop sending."""
        settings = self._settings
        if self._lifecycle.accepts:
            await asyncio.sleep(settings.drain_notice_s)
        self._lifecycle.refuse()
        await self._http.stop_accepting()
        unanswered = await self._http.close(settings.drain_grace_s)
        if self._driver is not None:
            self._driver.close()
        self._pool.shutdown(wait=not unanswered, cancel_futures=True)
        if self._api is not None:
            self._api.close()
        self._log.event("ended", unanswered=unanswered)
        return FAILED if unanswered else DRAINED

    def _leave(self, number: int) -> None:
        """Handles the first signal. The second one ends the process at once, even as a container's first
        process.
        """
        self._on_signals(lambda number: os._exit(_BY_SIGNAL + number))
        self._lifecycle.leave()
        self._log.event("leaving", signal=signal.Signals(number).name, in_flight=self._app.intake.requests)
        self._leaving.set()

    def _on_signals(self, act: Callable[[int], None]) -> None:
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, act, number)
