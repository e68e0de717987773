"""Settings of the server: a function's settings, and limits for many simultaneous requests."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from coldframe.config import Settings, load_kind
from coldframe.cpus import usable_cpus
from coldframe.errors import BadSetting
from coldframe.scheduling.limits import Limits
from coldframe.server.facts import DEFAULT_PORT, HTTP_ENDPOINT, PORT
from coldframe.setting_facts import SERVER_RANGES

_LAST_PORT = 65_535


def _about(why: str, name: str | None = None) -> Meta:
    """A setting's text and unit in docs/settings.md. name: of a setting with a range."""
    low, high = SERVER_RANGES[name] if name else (None, None)
    return Meta(description=why, ge=low, le=high)


class ServerSettings(Settings, frozen=True, kw_only=True):
    """Settings of a deployed server. Each field is the variable `COLDFRAME_<NAME>`."""

    host: Annotated[
        str,
        _about(
            "address to listen on; empty: `0.0.0.0` where tokens or `COLDFRAME_ALLOW_ANYONE` say who may"
            " call, else `127.0.0.1`"
        ),
    ] = ""
    tokens: Annotated[
        str,
        _about("bearer tokens for callers, `NAME:TOKEN`, separated by commas; one name may have several"),
    ] = ""
    tokens_file: Annotated[
        str, _about("file with such tokens, one a line; read again when it is replaced")
    ] = ""
    allow_anyone: Annotated[
        bool, _about("`true`: other machines may call without a token; `true` or `false`")
    ] = False
    otlp_endpoint: Annotated[
        str,
        _about(
            "address of an OpenTelemetry collector that gets the spans, such as `http://127.0.0.1:4318`;"
            " turns `COLDFRAME_TRACES` on; empty: none"
        ),
    ] = ""
    releases: Annotated[
        str,
        _about(
            "folder, or `s3://BUCKET/PREFIX`, whose [current release](operate.md#a-new-model) is served and"
            " exchanged while the server runs; empty: the models in `COLDFRAME_MODEL_DIR`"
        ),
    ] = ""
    releases_check_s: Annotated[
        int, _about("time between two looks at the current release; SIGHUP looks at once", "releases_check_s")
    ] = 30
    workers: Annotated[
        int,
        _about(
            "forward passes at once; 0: processors that the container may use, by threads; on a GPU 2",
            "workers",
        ),
    ] = 0
    tokenizer_threads: Annotated[
        int, _about("threads for the tokenizer library, for texts that need it", "tokenizer_threads")
    ] = 1
    request_threads: Annotated[
        int, _about("requests that are in work or wait for a pass, at once", "request_threads")
    ] = 128
    queue_requests: Annotated[
        int, _about("accepted, unanswered requests; more get 503", "queue_requests")
    ] = 1024
    queue_bytes: Annotated[
        int,
        _about(
            "bytes of accepted, unanswered request bodies, decompressed; the same limit again for waiting"
            " rows; more get 503",
            "queue_bytes",
        ),
    ] = 67_108_864
    queue_rows: Annotated[int, _about("windows that wait for a pass; more get 503", "queue_rows")] = 16_384
    objective_ms: Annotated[
        int,
        _about(
            "a request without a budget is read and answered within this time, or refused;"
            " the time counts from the body's arrival",
            "objective_ms",
        ),
    ] = 2000
    read_timeout_s: Annotated[
        int, _about("time for a request's head to arrive, and again for its body", "read_timeout_s")
    ] = 30
    keep_alive_s: Annotated[
        int,
        _about("an idle connection is closed after this; longer than the load balancer's", "keep_alive_s"),
    ] = 75
    drain_notice_s: Annotated[
        int,
        _about(
            "time after SIGTERM in which requests are still accepted, while readiness is false",
            "drain_notice_s",
        ),
    ] = 0
    drain_grace_s: Annotated[
        int, _about("time after the notice for accepted requests to be answered", "drain_grace_s")
    ] = 25

    def limits(self) -> Limits:
        """The scheduler's promises and limits."""
        return Limits(
            workers=self.workers or max(1, usable_cpus() // self.threads),
            objective_s=self.objective_ms / 1e3,
            max_queue_rows=self.queue_rows,
            max_queue_bytes=self.queue_bytes,
        )


SERVER_NAMES = frozenset(ServerSettings.__struct_fields__) - frozenset(Settings.__struct_fields__)


def load_server_settings(environ: Mapping[str, str]) -> ServerSettings:
    """Settings from `environ`. Raises BadSetting as `load_settings` does.

    The host of a web function's endpoint is the default of `host`.
    """
    settings = load_kind(environ, ServerSettings)
    host = environ.get(HTTP_ENDPOINT, "").rpartition(":")[0]
    return replace(settings, host=settings.host or host)


def read_port(environ: Mapping[str, str]) -> int:
    """The port to listen on, a web function's before any other; 0: a free one. Raises BadSetting."""
    endpoint = environ.get(HTTP_ENDPOINT)
    name = HTTP_ENDPOINT if endpoint else PORT
    value = endpoint.rpartition(":")[2] if endpoint else environ.get(PORT) or str(DEFAULT_PORT)
    if not (value.isascii() and value.isdigit() and len(value) <= 5 and int(value) <= _LAST_PORT):
        raise BadSetting(
            f"{name}={value!r} is not a port. Set it to a number from 0 (a free port) to {_LAST_PORT}."
        )
    return int(value)
