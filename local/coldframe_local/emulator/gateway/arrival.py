"""Facts about a request that both payload formats contain. Pure."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from coldframe_local.emulator.gateway.definitions import DEFAULT_ROUTE, DEFAULT_STAGE
from coldframe_local.emulator.gateway.http import HttpRequest, header

API_ID = "local"

_FORWARDED_FOR = "x-forwarded-for"
_TRACE = "x-amzn-trace-id"
_SIGNED = re.compile(r"AWS4-HMAC-SHA256 .*\bCredential=(?P<key>\w+)/")


@dataclass(frozen=True, slots=True)
class Arrived:
    """Where and when a request came in.

    request_id: the gateway's, which is not the invocation's. now: seconds since the epoch.
    route_key: `$default`, or `GET /pets/{id}`. resource: the route's path.
    authorizes: the API asks for authorization.
    """

    request_id: str
    now: float
    api_id: str = API_ID
    stage: str = DEFAULT_STAGE
    route_key: str = DEFAULT_ROUTE
    resource: str = DEFAULT_ROUTE
    path_parameters: Mapping[str, str] = field(default_factory=dict)
    authorizes: bool = False

    @property
    def trace_id(self) -> str:
        """`Root=1-5e1b4151-5ac6c58f25b9b8c1b8e7f1d2`: the time, and 96 bits of the request's id.

        https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
        (read 2026-11).
        """
        return f"Root=1-{int(self.now):08x}-{self.request_id.replace('-', '')[:24]}"


def gateway_headers(request: HttpRequest, arrived: Arrived, headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that a gateway sets.

    headers: the request's. The gateway adds the caller's address to the ones that other proxies left,
    and keeps a trace that the caller has begun.
    """
    port = headers.get("host", "").rpartition(":")[2]
    before = headers.get(_FORWARDED_FOR)
    trace = headers.get(_TRACE, "")
    return {
        _FORWARDED_FOR: f"{before}, {request.source_ip}" if before else request.source_ip,
        "x-forwarded-port": port if port.isdigit() else "80",
        "x-forwarded-proto": "http",
        _TRACE: trace if "Root=" in trace else arrived.trace_id,
    }


def signer(request: HttpRequest, arrived: Arrived) -> str:
    """The access key that signed a request (Signature Version 4), of an API that asks for one; else "".

    The signature is not checked.
    """
    signed = _SIGNED.match(header(request.headers, b"authorization"))
    return signed["key"] if signed and arrived.authorizes else ""


def event_body(body: bytes, content_type: str) -> tuple[str, bool]:
    """The body as text, or in base64, and which of the two.

    The gateway goes by the content type, not by the bytes: JSON posted as
    application/x-www-form-urlencoded (curl's default) arrives in base64. Bytes that are
    not UTF-8 cannot be carried as text, whatever their type says.
    """
    if _is_text(content_type):
        try:
            return body.decode(), False
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode("ascii"), bool(body)


def _is_text(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type.startswith("text/") or media_type.endswith(
        ("/json", "+json", "/xml", "+xml", "/javascript")
    )


def clf_time(now: float) -> str:
    """A time as the gateways write it: `12/Mar/2024:19:03:58 +0000`."""
    return time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now))
