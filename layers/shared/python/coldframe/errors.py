"""Every error that a caller can meet, with its HTTP status: one tree, one table.

A message says what was found, what was expected and what to do. It never contains the text to classify.
"""

import math
from collections.abc import Mapping
from http import HTTPStatus

_ECHOED_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")


class ColdframeError(Exception):
    """Root of all errors raised on purpose."""


class BadSetting(ColdframeError):
    """An environment variable has a value that cannot be used."""


class BundleError(ColdframeError):
    """The model bundle is missing, incomplete, altered, drifting, or cannot be served here."""


class BundleMissing(BundleError):
    """There is no bundle where the settings point."""


class BundleCorrupt(BundleError):
    """A file of the bundle differs from its manifest."""


class EncoderDrift(BundleError):
    """The encoder does not reproduce its golden vectors on this machine."""


class DeviceMissing(BundleError):
    """The device in the settings is missing, or onnxruntime cannot use it."""


class RequestError(ColdframeError):
    """A request whose answer is not 200. `status` is its HTTP status."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR
    title = "Internal error"

    def __init__(self, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.headers = headers or {}


class Malformed(RequestError):
    """The body cannot be read at all: not JSON, not UTF-8, empty."""

    status = HTTPStatus.BAD_REQUEST
    title = "Malformed request"


class Invalid(RequestError):
    """The body is JSON, but not a request this route can answer."""

    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = "Invalid request"


class Unauthorized(RequestError):
    """The server requires a bearer token, and the request has none that it accepts."""

    status = HTTPStatus.UNAUTHORIZED
    title = "Unauthorized"

    def __init__(self, detail: str, *reasons: str) -> None:
        """reasons: parameters of the challenge (RFC 6750, section 3)."""
        super().__init__(detail, {"www-authenticate": ", ".join(['Bearer realm="coldframe"', *reasons])})


class NotFound(RequestError):
    """No such route or model."""

    status = HTTPStatus.NOT_FOUND
    title = "Not found"


class MethodNotAllowed(RequestError):
    """The route exists, for other methods."""

    status = HTTPStatus.METHOD_NOT_ALLOWED
    title = "Method not allowed"


class TooLarge(RequestError):
    """Too many texts or too many bytes."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    title = "Request too large"


class AnswerTooLarge(RequestError):
    """The answer would be larger than Lambda can carry."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    title = "Answer too large"


class UnsupportedMediaType(RequestError):
    """The body is in a format this route does not read."""

    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    title = "Unsupported media type"


class OutOfTime(RequestError):
    """Too little time is left to encode the texts: by the function's timeout, or by `budget_ms`."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    title = "Out of time"


class Overloaded(RequestError):
    """The texts could be encoded in time if less work were waiting. Only servers with shared passes raise
    it.
    """

    status = HTTPStatus.SERVICE_UNAVAILABLE
    title = "Overloaded"

    def __init__(self, detail: str, retry_after_s: float) -> None:
        """retry_after_s: time until the request would be admitted if no other came; sent in whole seconds."""
        super().__init__(detail, {"retry-after": str(max(1, math.ceil(retry_after_s)))})
        self.retry_after_s = retry_after_s


class CallerGone(RequestError):
    """The caller has disconnected: the work was cancelled, and nobody reads this error."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    title = "Caller gone"


class NotReady(RequestError):
    """The model cannot be loaded."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    title = "Not ready"


REQUEST_ERRORS: tuple[type[RequestError], ...] = (
    Malformed,
    NotFound,
    MethodNotAllowed,
    TooLarge,
    AnswerTooLarge,
    UnsupportedMediaType,
    Invalid,
    OutOfTime,
    Overloaded,
    NotReady,
)
"""All request errors by status, for the OpenAPI document."""


def echo(name: str) -> str:
    """A name from a request, quoted only if it looks like a name: it may be a misplaced text."""
    return f'"{name}"' if len(name) <= 32 and _ECHOED_CHARACTERS.issuperset(name) else "What was sent"
