"""API Gateway: an HTTP request finds its route, becomes an event, and the result a response."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus

import msgspec

from coldframe.capacity.admission import Throttle, ThrottleReason
from coldframe.capacity.limits import BODY, PAYLOAD
from coldframe.timing import Clock
from local.gateway import cors, payload_v1, payload_v2
from local.gateway.definitions import Api, ApiKind, PayloadFormat, Throttling
from local.gateway.payload_v2 import (
    Arrived,
    HttpRequest,
    HttpResponse,
    MalformedResponse,
    gateway_answer,
    gateway_problem,
    header,
)
from local.gateway.routes import Match, Router
from local.lambda_service.lambda_types import Invoked
from local.lambda_service.log_pipe import Log
from local.lambda_service.report import InvocationStatus

# (function, qualifier, event) -> how it ended, or why it was refused.
Invoke = Callable[[str, str | None, bytes], Awaitable[Invoked | Throttle]]

# Lambda's synchronous payload, which is the event and not the body alone.
MAX_EVENT_BYTES = PAYLOAD.value
# The gateway's own limit, of both kinds.
MAX_BODY_BYTES = BODY.value

# A function's failure. API Gateway's HTTP API says 500 here; 502 tells it from a 500
# that the function itself answered.
_FAILED = gateway_problem(
    HTTPStatus.BAD_GATEWAY,
    {"message": "Internal Server Error"},
    "The function failed or its environment died. The log of `coldframe up` says why.",
)
_TIMED_OUT = gateway_problem(
    HTTPStatus.SERVICE_UNAVAILABLE,
    {"message": "Service Unavailable"},
    "The function took longer than its timeout. Send fewer texts at once, or raise --timeout-s.",
)
_TOO_LONG = gateway_problem(
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    {"message": "Request Too Long"},
    f"The event with this body is over Lambda's {MAX_EVENT_BYTES} bytes. Send it in parts.",
)


class TokenBucket:
    """Lets `burst` requests through at once, and `rate_per_s` on average."""

    def __init__(self, throttling: Throttling, clock: Clock) -> None:
        self._throttling = throttling
        self._clock = clock
        self._tokens = float(throttling.burst)
        self._filled_s = clock()

    def take(self) -> bool:
        """Whether this request is let through."""
        now_s = self._clock()
        refilled = self._tokens + (now_s - self._filled_s) * self._throttling.rate_per_s
        self._tokens, self._filled_s = min(refilled, float(self._throttling.burst)), now_s
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class Gateways:
    """Every API of a template: the host name says which one; the first one has all other names."""

    def __init__(self, apis: Sequence[Api], invoke: Invoke, log: Log, clock: Clock = time.monotonic) -> None:
        gateways = [Gateway(api, invoke, log, clock) for api in apis]
        self._by_host = {api.name.lower(): gateway for api, gateway in zip(apis, gateways, strict=True)}
        self._default = gateways[0] if gateways else Gateway(_NO_API, invoke, log, clock)

    def of(self, host: str) -> Gateway:
        """The API at `restapi.localhost:3000`, or at `restapi.execute-api…`."""
        return self._by_host.get(host.partition(".")[0].lower(), self._default)


class Gateway:
    """One API. clock: seconds, for throttling; a test may turn it forward."""

    max_body_bytes = MAX_BODY_BYTES

    def __init__(self, api: Api, invoke: Invoke, log: Log, clock: Clock = time.monotonic) -> None:
        self._api = api
        self._invoke = invoke
        self._log = log
        self._router = Router(api)
        self._buckets = {
            route.key: TokenBucket(throttling, clock)
            for route in api.routes
            if (throttling := api.throttling.get(route.key, api.default_throttling)) is not None
        }
        # Invocations that outlive the gateway's patience; kept, or they would be collected.
        self._abandoned: set[asyncio.Future[Invoked | Throttle]] = set()

    async def respond(self, request: HttpRequest) -> HttpResponse:
        """The answer to one request."""
        request_id = str(uuid.uuid4())
        response = await self._respond(request, request_id)
        if self._api.cors is not None and self._api.kind is ApiKind.HTTP:
            response = cors.with_http_cors(self._api.cors, request, response)
        name = b"apigw-requestid" if self._api.kind is ApiKind.HTTP else b"x-amzn-requestid"
        return HttpResponse(
            response.status, [*response.headers, (name, request_id.encode("ascii"))], response.body
        )

    def too_large(self) -> HttpResponse:
        """The answer to a body over `MAX_BODY_BYTES`."""
        if self._api.kind is ApiKind.HTTP:
            return gateway_answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Request Entity Too Large")
        return gateway_answer(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Request Too Long", "RequestEntityTooLargeException"
        )

    async def _respond(self, request: HttpRequest, request_id: str) -> HttpResponse:
        path = self._router.without_stage(request.path)
        if path is None:
            return _NO_STAGE[self._api.kind]
        match = self._router.match(request.method, path)
        if match is None:
            return self._without_route(request, path)
        bucket = self._buckets.get(match.route.key)
        if bucket is not None and not bucket.take():
            return _TOO_MANY[self._api.kind]
        payload = msgspec.json.encode(self._event(request, request_id, match))
        if len(payload) > MAX_EVENT_BYTES:
            return _TOO_LONG
        return await self._integrate(request, match, payload)

    def _without_route(self, request: HttpRequest, path: str) -> HttpResponse:
        allowed = self._api.cors
        if allowed is not None and request.method == "OPTIONS":
            if self._api.kind is ApiKind.HTTP:
                return cors.http_preflight(allowed, request)
            if methods := self._router.methods_of(path):
                return cors.rest_preflight(allowed, methods)
        return _NO_ROUTE[self._api.kind]

    def _event(self, request: HttpRequest, request_id: str, match: Match) -> dict[str, object]:
        arrived = Arrived(
            request_id,
            time.time(),
            api_id=self._api.name,
            stage=self._api.stage,
            route_key=match.route.key,
            resource=match.route.path,
            path_parameters=match.path_parameters,
        )
        if match.route.payload is PayloadFormat.V2:
            return payload_v2.event_from_request(request, arrived)
        return payload_v1.event_from_request(
            request, arrived, self._api.kind, match.path, self._api.binary_media_types
        )

    async def _integrate(self, request: HttpRequest, match: Match, payload: bytes) -> HttpResponse:
        """Invokes the function, and waits no longer than the gateway does.

        The function is not stopped then: it works on until its own timeout, as on AWS.
        """
        route = match.route
        invocation = asyncio.ensure_future(self._invoke(route.function, route.qualifier, payload))
        done, _ = await asyncio.wait({invocation}, timeout=route.timeout_s)
        if not done:
            self._abandoned.add(invocation)
            invocation.add_done_callback(self._abandoned.discard)
            return _LATE[self._api.kind]
        return self._response(request, match, invocation.result())

    def _response(self, request: HttpRequest, match: Match, invoked: Invoked | Throttle) -> HttpResponse:
        if isinstance(invoked, Throttle):
            return _throttled(invoked)
        outcome = invoked.outcome
        if outcome.status is InvocationStatus.TIMEOUT:
            return _TIMED_OUT
        if outcome.status is not InvocationStatus.SUCCESS:
            return _FAILED
        try:
            if match.route.payload is PayloadFormat.V2:
                return payload_v2.response_from_result(outcome.payload)
            accept = header(request.headers, b"accept")
            return payload_v1.response_from_result(
                outcome.payload, self._api.kind, accept, self._api.binary_media_types
            )
        except MalformedResponse as exc:
            self._log(
                f"Malformed Lambda proxy response: {exc}. Return a payload {match.route.payload} response."
            )
            return _FAILED


def _throttled(throttle: Throttle) -> HttpResponse:
    """Lambda's own answer, from its admission; API Gateway would turn it into a 503."""
    return gateway_problem(
        HTTPStatus.TOO_MANY_REQUESTS,
        {"Reason": throttle.reason, "Type": "User", "message": "Rate Exceeded."},
        _ADVICE[throttle.reason],
        (b"x-amzn-errortype", b"TooManyRequestsException"),
    )


_ADVICE = {
    ThrottleReason.RESERVED_CONCURRENCY: (
        "All environments of the function are busy. Try again, or raise --reserved-concurrency."
    ),
    ThrottleReason.ACCOUNT_CONCURRENCY: (
        "All of the account's concurrency is in use, or all that --concurrency lets a function have on this "
        "machine. Try again, or raise --concurrency or --account-concurrency."
    ),
    ThrottleReason.INVOCATION_RATE: (
        "Environments are started no faster than on Lambda, and requests are at most ten a second for each "
        "of the account's concurrency. Try again in a second."
    ),
    ThrottleReason.RESERVED_REQUEST_RATE: (
        "The reservation allows ten requests a second for each environment. Try again, or reserve more."
    ),
}
# Where the template has no API: nothing is found.
_NO_API = Api("none", ApiKind.HTTP, ())
_NO_ROUTE = {
    ApiKind.HTTP: gateway_answer(HTTPStatus.NOT_FOUND, "Not Found"),
    ApiKind.REST: gateway_answer(
        HTTPStatus.FORBIDDEN, "Missing Authentication Token", "MissingAuthenticationTokenException"
    ),
}
_NO_STAGE = {
    ApiKind.HTTP: gateway_answer(HTTPStatus.NOT_FOUND, "Not Found"),
    ApiKind.REST: gateway_answer(HTTPStatus.FORBIDDEN, "Forbidden", "ForbiddenException"),
}
_TOO_MANY = {
    ApiKind.HTTP: gateway_answer(HTTPStatus.TOO_MANY_REQUESTS, "Too Many Requests"),
    ApiKind.REST: gateway_answer(
        HTTPStatus.TOO_MANY_REQUESTS, "Too Many Requests", "TooManyRequestsException"
    ),
}
_LATE = {
    ApiKind.HTTP: gateway_answer(HTTPStatus.SERVICE_UNAVAILABLE, "Service Unavailable"),
    ApiKind.REST: gateway_answer(
        HTTPStatus.GATEWAY_TIMEOUT, "Endpoint request timed out", "InternalServerErrorException"
    ),
}
