"""Answers of the API itself: where no function was invoked, or where the function failed. Pure.

Answers to requests that no function saw are AWS's. For a function that failed there are two sets:

- `explained_failures` tell the causes apart: 502 a failure, 503 a timeout, 429 a throttle, 413 an event that
  is too large, each a problem (RFC 9457) that says what to do and what AWS would answer.
- `aws_failures` are AWS's, for clients whose retries are to be tried: decision 0030.

Sources of AWS's statuses, read 2026-11-21:
HTTP API, own timeout of a function 500: https://github.com/denoland/deno_registry2/issues/87;
HTTP API, timeout of the integration 503: https://github.com/cortexlabs/cortex/issues/1225;
REST API, throttle 500: https://repost.aws/questions/QUL-z6rJbmR4meafB7MzYXxw;
REST API, result that is not a response 502, timeout of the integration 504:
https://www.repost.aws/knowledge-center/api-gateway-5xx-error.
No source was found for an HTTP API's 503 for a throttle and its 431: they are from experience.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import msgspec

from coldframe.capacity.admission import ThrottleReason
from coldframe.capacity.limits import PAYLOAD
from coldframe_local.emulator.gateway.definitions import ApiKind
from coldframe_local.emulator.gateway.http import HttpResponse, problem


def _aws(status: HTTPStatus, message: str, error_type: str = "") -> HttpResponse:
    """As AWS sends it. error_type: of a REST API."""
    headers = [(b"content-type", b"application/json")]
    if error_type:
        headers.append((b"x-amzn-errortype", error_type.encode("ascii")))
    return HttpResponse(status, headers, msgspec.json.encode({"message": message}))


NO_ROUTE = {
    ApiKind.HTTP: _aws(HTTPStatus.NOT_FOUND, "Not Found"),
    ApiKind.REST: _aws(
        HTTPStatus.FORBIDDEN, "Missing Authentication Token", "MissingAuthenticationTokenException"
    ),
}
NO_STAGE = {
    ApiKind.HTTP: _aws(HTTPStatus.NOT_FOUND, "Not Found"),
    ApiKind.REST: _aws(HTTPStatus.FORBIDDEN, "Forbidden", "ForbiddenException"),
}
TOO_MANY_REQUESTS = {
    ApiKind.HTTP: _aws(HTTPStatus.TOO_MANY_REQUESTS, "Too Many Requests"),
    ApiKind.REST: _aws(HTTPStatus.TOO_MANY_REQUESTS, "Too Many Requests", "TooManyRequestsException"),
}
BODY_TOO_LARGE = {
    ApiKind.HTTP: _aws(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Request Entity Too Large"),
    ApiKind.REST: _aws(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "Request Too Long", "RequestEntityTooLargeException"
    ),
}
HEADERS_TOO_LARGE = {
    kind: _aws(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Request Header Fields Too Large")
    for kind in ApiKind
}
LATE = {
    ApiKind.HTTP: _aws(HTTPStatus.SERVICE_UNAVAILABLE, "Service Unavailable"),
    ApiKind.REST: _aws(
        HTTPStatus.GATEWAY_TIMEOUT, "Endpoint request timed out", "InternalServerErrorException"
    ),
}
"""The function took longer than the gateway waits; the function works on."""


@dataclass(frozen=True, slots=True)
class FailureAnswers:
    """Answers for callers where a function gave no response.

    failed: an exception, a dead environment or a result that is not a response. timed_out: over the
    function's own timeout. too_long: the event is over Lambda's limit. too_fast: over the route's throttling.
    throttled: refused by Lambda's admission.
    """

    failed: HttpResponse
    timed_out: HttpResponse
    too_long: HttpResponse
    too_fast: HttpResponse
    throttled: Mapping[ThrottleReason, HttpResponse]


def aws_failures(kind: ApiKind) -> FailureAnswers:
    """AWS's statuses and bodies, which tell little."""
    if kind is ApiKind.HTTP:
        failed = _aws(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal Server Error")
        throttled = _aws(HTTPStatus.SERVICE_UNAVAILABLE, "Service Unavailable")
    else:
        name = "InternalServerErrorException"
        failed = _aws(HTTPStatus.BAD_GATEWAY, "Internal server error", name)
        throttled = _aws(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal server error", name)
    return FailureAnswers(
        failed,
        failed,
        BODY_TOO_LARGE[kind],
        TOO_MANY_REQUESTS[kind],
        dict.fromkeys(ThrottleReason, throttled),
    )


def explained_failures(kind: ApiKind) -> FailureAnswers:
    """A status for each cause, and a problem that says what to do. AWS's `message` is a member of each."""
    aws = aws_failures(kind)
    return FailureAnswers(
        failed=problem(
            HTTPStatus.BAD_GATEWAY,
            "The function failed or its environment died. The log of `coldframe up` says why."
            + _on_aws(kind, aws.failed),
            aws={"message": "Internal Server Error"},
        ),
        timed_out=problem(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "The function took longer than its timeout. Send fewer texts at once, or raise the timeout in"
            " the template." + _on_aws(kind, aws.timed_out),
            aws={"message": "Service Unavailable"},
        ),
        too_long=problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"The event with this body is over Lambda's {PAYLOAD.value} bytes. Send it in parts.",
            aws={"message": "Request Too Long"},
        ),
        too_fast=problem(
            HTTPStatus.TOO_MANY_REQUESTS,
            "The gateway's throttling of this route is reached; Lambda was not called. Send fewer requests a"
            " second, or raise the template's throttling: --parameter ThrottleRate=N --parameter"
            " ThrottleBurst=N for the project's.",
            aws={"message": "Too Many Requests"},
        ),
        throttled={
            reason: _throttled(reason, _on_aws(kind, aws.throttled[reason])) for reason in ThrottleReason
        },
    )


def _on_aws(kind: ApiKind, answer: HttpResponse) -> str:
    return f" On AWS {'an HTTP API' if kind is ApiKind.HTTP else 'a REST API'} says {answer.status:d} here."


def _throttled(reason: ThrottleReason, on_aws: str) -> HttpResponse:
    """Lambda's own answer, from its admission."""
    return problem(
        HTTPStatus.TOO_MANY_REQUESTS,
        _ADVICE[reason] + on_aws,
        (b"x-amzn-errortype", b"TooManyRequestsException"),
        aws={"Reason": reason, "Type": "User", "message": "Rate Exceeded."},
    )


_ADVICE = {
    ThrottleReason.RESERVED_CONCURRENCY: (
        "All environments of the function are busy. Try again, or raise its reserved concurrency in the"
        " template, or `reserved_concurrency` in a scenario file."
    ),
    ThrottleReason.ACCOUNT_CONCURRENCY: (
        "All of the account's concurrency is in use, or all that --concurrency lets a function have on this "
        "machine. Try again, or raise --concurrency, or `account_concurrency` in a scenario file."
    ),
    ThrottleReason.INVOCATION_RATE: (
        "Environments are started no faster than on Lambda, and requests are at most ten a second for each "
        "of the account's concurrency. Try again in a second, or set `scaling_rate = false` and "
        "`request_rate = false` in a scenario file."
    ),
    ThrottleReason.RESERVED_REQUEST_RATE: (
        "The reservation allows ten requests a second for each environment. Try again, reserve more, or set "
        "`request_rate = false` in a scenario file."
    ),
}
