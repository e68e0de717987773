"""Models that a running server exchanges: releases of a place, loaded beside the models that answer.

Whatever is wrong with a release shows before the exchange, and leaves the old models in place.
"""

import asyncio
import ctypes
import gc
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from msgspec.structs import replace

from coldframe.api.api import Api
from coldframe.errors import BundleError, BundleMissing
from coldframe.pipeline.models import Models
from coldframe.releases.place import Place, PlaceUnavailable, Pointer
from coldframe.releases.release import Copy, fetch
from coldframe.server.loading import is_on_gpu, load
from coldframe.server.settings import ServerSettings
from coldframe.serving.driver import Driver
from coldframe.timing import Clock

_FIRST_DELAY_S, _LONGEST_DELAY_S = 30.0, 600.0


class Loaded(NamedTuple):
    """Models that are checked and ready to answer, and what they need.

    settings: with the folder of these models. copy: files of a release; None for a folder of the image.
    """

    models: Models
    driver: Driver
    settings: ServerSettings
    took_s: float
    copy: Copy | None = None

    @property
    def release(self) -> str:
        """Digest of the release; empty without one."""
        return self.copy.name if self.copy is not None else ""

    def close(self) -> None:
        """Ends the passes, and removes the files. Waits for passes that run."""
        self.driver.close()
        if self.copy is not None:
            self.copy.close()


class Served:
    """The models that answer requests: API, passes and description. Used in the event loop's thread.

    A request holds the models that it began with; after an exchange they end with their last request.
    """

    def __init__(self, api: Api, loaded: Loaded, description: dict[str, Any]) -> None:
        """description: of the routes, as OpenAPI."""
        self.api, self.loaded, self.description = api, loaded, description
        self._requests = 0
        self._unused = asyncio.Event()
        self._unused.set()

    @contextmanager
    def request(self) -> Iterator[Api]:
        """The API for one request, until the end of the `with` block."""
        self._requests += 1
        self._unused.clear()
        try:
            yield self.api
        finally:
            self._requests -= 1
            if not self._requests:
                self._unused.set()

    async def unused(self) -> None:
        """Waits until no request holds these models."""
        await self._unused.wait()


def release_memory() -> None:
    """Returns the memory of models that nothing uses any more to the system, where its library can."""
    gc.collect()  # parts of these models refer to each other
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # of glibc, which keeps what threads free otherwise
        libc.malloc_trim(0)


def load_image(settings: ServerSettings) -> Loaded:
    """The models in the folder of the settings. Raises a BundleError."""
    started_s = time.monotonic()
    models, driver = load(settings)
    return Loaded(models, driver, settings, time.monotonic() - started_s)


class Stopped(BundleError):
    """The server ends while it loads a release."""


class Updates:
    """Releases of a place, as its pointer names them. Its calls block, and one runs at a time.

    A refused release is tried again after a while: a copy on the way may have been incomplete. The wait
    doubles with each refusal, up to ten minutes.
    """

    def __init__(self, settings: ServerSettings, place: Place, clock: Clock = time.monotonic) -> None:
        self._settings = settings
        self._place = place
        self._clock = clock
        self._stopped = threading.Event()
        self._refused, self._delay_s, self._again_s = "", 0.0, 0.0

    def first(self) -> "tuple[Loaded, tuple[str, Exception] | None]":
        """The current release; where it cannot be served, the one before it, and what was refused and why.

        Raises a BundleError when neither can be served.
        """
        pointer = self._pointer()
        try:
            return self._load(pointer.release), None
        except BundleError as exc:
            if not pointer.previous:
                raise
            self._refuse(pointer.release)
            return self._load(pointer.previous), (pointer.release, exc)

    def due(self, served: str, is_urgent: bool = False) -> str:
        """The release to load now; empty when `served` is the current one, or a refused one has to wait.

        is_urgent: an operator asks, so nothing waits. Raises a BundleError when the place does not answer.
        """
        release = self._pointer().release
        waits = release == self._refused and self._clock() < self._again_s and not is_urgent
        return "" if release == served or waits else release

    def load(self, release: str, served: Loaded) -> Loaded:
        """A release, checked in the sessions that will serve it. served: the models that answer now.

        Raises a BundleError, or what else a broken model causes; then nothing of the release is left.
        """
        try:
            loaded = self._load(release)
            try:
                _check_device(served.models, loaded.models)
            except BundleMissing:
                loaded.close()
                raise
        except Exception:
            self._refuse(release)
            release_memory()
            raise
        self._refused = ""
        return loaded

    def stop(self) -> None:
        """Ends a load at its next step."""
        self._stopped.set()

    def _pointer(self) -> Pointer:
        pointer = self._place.mark().pointer()
        if pointer is None:
            raise BundleMissing(
                f"{self._place.address} has no current release. Publish one: `coldframe models --publish`."
            )
        return pointer

    def _load(self, release: str) -> Loaded:
        started_s = time.monotonic()
        try:
            copy = fetch(self._place, release, self._check_stopped)
        except OSError as exc:
            raise PlaceUnavailable(
                f"No room to copy the release: {exc.strerror}. Mount a volume at /tmp, or set TMPDIR."
            ) from exc
        try:
            settings = replace(self._settings, model_dir=copy.path, verify_at_init=True)
            models, driver = load(settings)
        except BaseException:
            copy.close()
            raise
        return Loaded(models, driver, settings, time.monotonic() - started_s, copy)

    def _check_stopped(self) -> None:
        if self._stopped.is_set():
            raise Stopped("The server ends. Start it again to load the release.")

    def _refuse(self, release: str) -> None:
        doubled_s = 2 * self._delay_s if release == self._refused else _FIRST_DELAY_S
        self._delay_s = min(doubled_s, _LONGEST_DELAY_S)
        self._refused, self._again_s = release, self._clock() + self._delay_s


def _check_device(served: Models, loaded: Models) -> None:
    """Raises BundleMissing when the CPU would take over what a GPU serves, many times slower."""
    if any(map(is_on_gpu, served.all())) and not all(map(is_on_gpu, loaded.all())):
        raise BundleMissing(
            "The release has no encoder that this GPU can run, and a GPU serves now."
            " Run `coldframe build --gpu`, and publish again."
        )
