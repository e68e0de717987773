"""API Gateway: an HTTP request finds its route, becomes an event, and the result a response."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from coldframe.capacity.admission import Throttle
from coldframe.capacity.limits import BODY, HEADERS, PAYLOAD, REST_HEADERS
from coldframe.timing import Clock
from coldframe_local.emulator.gateway import answers, cors, payload_v1, payload_v2
from coldframe_local.emulator.gateway.answers import aws_failures, explained_failures
from coldframe_local.emulator.gateway.arrival import Arrived
from coldframe_local.emulator.gateway.definitions import Api, ApiKind, PayloadFormat
from coldframe_local.emulator.gateway.http import HttpRequest, HttpResponse, header
from coldframe_local.emulator.gateway.result import MalformedResponse
from coldframe_local.emulator.gateway.routes import Match, Router
from coldframe_local.emulator.gateway.throttling import TokenBucket
from coldframe_local.emulator.lambda_service.lambda_types import Invoked
from coldframe_local.emulator.lambda_service.report import InvocationStatus
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import Log

# (function, qualifier, event) -> how it ended, or why it was refused.
Invoke = Callable[[str, str | None, bytes], Awaitable[Invoked | Throttle]]

# Where the template has no API: nothing is found.
_NO_API = Api("none", ApiKind.HTTP, ())


class Gateways:
    """Every API of a template: the host name says which one; the first one has all other names.

    as_aws: failures of functions have AWS's statuses and bodies instead of explaining ones.
    """

    def __init__(
        self,
        apis: Sequence[Api],
        invoke: Invoke,
        log: Log,
        clock: Clock = time.monotonic,
        *,
        as_aws: bool = False,
    ) -> None:
        gateways = [Gateway(api, invoke, log, clock, as_aws=as_aws) for api in apis or (_NO_API,)]
        self._by_host = {api.name.lower(): gateway for api, gateway in zip(apis, gateways, strict=False)}
        self._default = gateways[0]

    def of(self, host: str) -> Gateway:
        """The API at `restapi.localhost:3000`, or at `restapi.execute-api…`."""
        return self._by_host.get(host.partition(".")[0].lower(), self._default)


class Gateway:
    """One API. clock: seconds, for throttling; a test may turn it forward. as_aws: as `Gateways` takes it."""

    max_body_bytes = BODY.value

    def __init__(
        self, api: Api, invoke: Invoke, log: Log, clock: Clock = time.monotonic, *, as_aws: bool = False
    ) -> None:
        self._api = api
        self._invoke = invoke
        self._log = log
        self._router = Router(api)
        self._failures = aws_failures(api.kind) if as_aws else explained_failures(api.kind)
        self._buckets = {
            route.key: TokenBucket(throttling, clock)
            for route in api.routes
            if (throttling := api.throttling.get(route.key, api.default_throttling)) is not None
        }
        # Invocations that the gateway no longer waits for: asyncio alone keeps no reference to a task.
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
        """The answer to a body over `max_body_bytes`."""
        return answers.BODY_TOO_LARGE[self._api.kind]

    async def _respond(self, request: HttpRequest, request_id: str) -> HttpResponse:
        if _headers_are_too_large(self._api.kind, request):
            return answers.HEADERS_TOO_LARGE[self._api.kind]
        path = self._router.without_stage(request.path)
        if path is None:
            return answers.NO_STAGE[self._api.kind]
        match = self._router.match(request.method, path)
        if match is None:
            return self._without_route(request, path)
        bucket = self._buckets.get(match.route.key)
        if bucket is not None and not bucket.take():
            return self._failures.too_fast
        payload = msgspec.json.encode(self._event(request, request_id, match))
        if len(payload) > PAYLOAD.value:
            return self._failures.too_long
        return await self._integrate(request, match, payload)

    def _without_route(self, request: HttpRequest, path: str) -> HttpResponse:
        allowed = self._api.cors
        if allowed is not None and request.method == "OPTIONS":
            if self._api.kind is ApiKind.HTTP:
                return cors.http_preflight(allowed, request)
            if methods := self._router.methods_of(path):
                return cors.rest_preflight(allowed, methods)
        return answers.NO_ROUTE[self._api.kind]

    def _event(self, request: HttpRequest, request_id: str, match: Match) -> dict[str, object]:
        arrived = Arrived(
            request_id,
            time.time(),
            api_id=self._api.name,
            stage=self._api.stage,
            route_key=match.route.key,
            resource=match.route.path,
            path_parameters=match.path_parameters,
            authorizes=self._api.authorizer,
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
            return answers.LATE[self._api.kind]
        return self._response(request, match, invocation.result())

    def _response(self, request: HttpRequest, match: Match, invoked: Invoked | Throttle) -> HttpResponse:
        if isinstance(invoked, Throttle):
            return self._failures.throttled[invoked.reason]
        if invoked.outcome.status is InvocationStatus.TIMEOUT:
            return self._failures.timed_out
        if invoked.outcome.status is not InvocationStatus.SUCCESS:
            return self._failures.failed
        try:
            return self._response_from_result(request, match, invoked.outcome.payload)
        except MalformedResponse as exc:
            self._log(
                f"Malformed Lambda proxy response: {exc}. Return a payload {match.route.payload} response."
            )
            return self._failures.failed

    def _response_from_result(self, request: HttpRequest, match: Match, payload: bytes) -> HttpResponse:
        if match.route.payload is PayloadFormat.V2:
            return payload_v2.response_from_result(payload)
        accept = header(request.headers, b"accept")
        return payload_v1.response_from_result(payload, self._api.kind, accept, self._api.binary_media_types)


def _headers_are_too_large(kind: ApiKind, request: HttpRequest) -> bool:
    """An HTTP API counts the request line and the values of headers; a REST API, the values alone."""
    values = sum(len(value) for _, value in request.headers)
    if kind is ApiKind.REST:
        return values > REST_HEADERS.value
    return values + len(request.line) > HEADERS.value
