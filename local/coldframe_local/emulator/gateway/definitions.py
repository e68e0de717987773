"""An API as API Gateway knows it: kind, stage, routes, CORS, throttling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

DEFAULT_ROUTE = "$default"
DEFAULT_STAGE = "$default"
ANY = "ANY"


class ApiKind(StrEnum):
    """The two products called API Gateway; the values are SAM's resource types."""

    HTTP = "AWS::Serverless::HttpApi"
    REST = "AWS::Serverless::Api"


class PayloadFormat(StrEnum):
    """The shape of the event that a function gets. A REST API knows only the first one."""

    V1 = "1.0"
    V2 = "2.0"


@dataclass(frozen=True, slots=True)
class Route:
    """One route to a function.

    method: an HTTP method, or `ANY`. path: `/v1/{model}`, `/{proxy+}` or `$default`.
    qualifier: the alias that is called; None calls `$LATEST`.
    timeout_s: how long the gateway waits for the function.
    """

    method: str
    path: str
    function: str
    qualifier: str | None
    payload: PayloadFormat
    timeout_s: float

    @property
    def key(self) -> str:
        """`GET /pets/{id}`, or `$default`."""
        return DEFAULT_ROUTE if self.path == DEFAULT_ROUTE else f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Cors:
    """Permissions for browsers on other sites (CORS). Empty fields send no header."""

    allow_origins: tuple[str, ...]
    allow_methods: tuple[str, ...] = ()
    allow_headers: tuple[str, ...] = ()
    expose_headers: tuple[str, ...] = ()
    max_age_s: int | None = None
    allow_credentials: bool = False


@dataclass(frozen=True, slots=True)
class Throttling:
    """A token bucket: it refills at `rate_per_s` and holds `burst` requests."""

    rate_per_s: float
    burst: int


@dataclass(frozen=True, slots=True)
class Api:
    """One API with its one stage.

    default_throttling: of each route without its own. None: not throttled here, where AWS has the
    account's 10,000 requests per second.
    throttling: by route key.
    binary_media_types: of a REST API; an HTTP API decides by itself.
    authorizer: some route asks for authorization, which is not enforced here.
    """

    name: str
    kind: ApiKind
    routes: tuple[Route, ...]
    stage: str = DEFAULT_STAGE
    cors: Cors | None = None
    default_throttling: Throttling | None = None
    throttling: Mapping[str, Throttling] = field(default_factory=dict)
    binary_media_types: tuple[str, ...] = ()
    authorizer: bool = False
