"""Trace context of a request: W3C's `traceparent` and X-Ray's header, read, continued and written.

https://www.w3.org/TR/trace-context-1/ and
https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader, read
2026-11-22.
"""

import os
import re
from collections.abc import Callable, Mapping

from msgspec import Struct

TRACEPARENT = "traceparent"
XRAY = "x-amzn-trace-id"

# Versions after 00 may append fields. Version ff and ids of zeros are invalid.
_TRACEPARENT = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})-(?!0{16})(?P<parent>[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-[!-~]*)?",
    re.ASCII,
)
_LONGEST_HEADER = 512
_ROOT = re.compile(r"1-([0-9a-f]{8})-([0-9a-f]{24})", re.ASCII)
_PARENT = re.compile(r"(?!0{16})[0-9a-f]{16}", re.ASCII)

RandomBytes = Callable[[int], bytes]


class Trace(Struct, frozen=True):
    """Place of one request in a distributed trace. Ids are lower-case hex.

    parent_id: span of the caller; "" where the trace starts here. is_sampled: whether spans are kept.
    """

    trace_id: str
    span_id: str
    parent_id: str = ""
    is_sampled: bool = True

    @property
    def traceparent(self) -> str:
        """W3C's header for whoever continues the trace below this request."""
        return f"00-{self.trace_id}-{self.span_id}-{self.is_sampled:02d}"

    @property
    def xray_header(self) -> str:
        """X-Ray's header for whoever continues the trace below this request."""
        root = f"1-{self.trace_id[:8]}-{self.trace_id[8:]}"
        return f"Root={root};Parent={self.span_id};Sampled={self.is_sampled:d}"

    def reply_headers(self, request_headers: Mapping[str, str]) -> dict[str, str]:
        """Headers that hand the trace back; X-Ray's only to a caller that sent it."""
        xray = {XRAY: self.xray_header} if XRAY in request_headers else {}
        return {TRACEPARENT: self.traceparent, **xray}

    def log_fields(self) -> dict[str, object]:
        """Fields of the request's log line."""
        parent = {"parent_span_id": self.parent_id} if self.parent_id else {}
        return {"trace_id": self.trace_id, "span_id": self.span_id, **parent, "sampled": self.is_sampled}


def continue_trace(
    headers: Mapping[str, str], platform_header: str = "", random_bytes: RandomBytes = os.urandom
) -> Trace:
    """The trace of a request: `traceparent`, else X-Ray's header, else the platform's, else a new one.

    A malformed header is ignored, as both specifications demand.
    headers: names are lower case. platform_header: X-Ray's header as Lambda hands it to an invocation.
    """
    caller = (
        _read_traceparent(headers.get(TRACEPARENT, ""))
        or _read_xray(headers.get(XRAY, ""))
        or _read_xray(platform_header)
    )
    span_id = _make_id(8, random_bytes)
    if caller is None:
        return Trace(_make_id(16, random_bytes), span_id)
    trace_id, parent_id, is_sampled = caller
    return Trace(trace_id, span_id, parent_id, is_sampled)


def _read_traceparent(header: str) -> tuple[str, str, bool] | None:
    if len(header) > _LONGEST_HEADER:
        return None
    match = _TRACEPARENT.fullmatch(header.strip(" \t"))
    if match is None or (match["version"] == "00" and match["more"]):
        return None
    return match["trace"], match["parent"], bool(int(match["flags"], 16) & 1)


def _read_xray(header: str) -> tuple[str, str, bool] | None:
    """Trace id, parent ("" if none is named), and the decision to sample; an open decision counts as yes."""
    if len(header) > _LONGEST_HEADER:
        return None
    fields = dict(part.strip().split("=", 1) for part in header.split(";") if "=" in part)
    root = _ROOT.fullmatch(fields.get("Root", ""))
    if root is None or set(root[1] + root[2]) == {"0"}:
        return None
    parent = fields.get("Parent", "")
    return root[1] + root[2], parent if _PARENT.fullmatch(parent) else "", fields.get("Sampled") != "0"


def _make_id(size_bytes: int, random_bytes: RandomBytes) -> str:
    """A random id, which is not zero: zeros mark an invalid id."""
    while not any(made := random_bytes(size_bytes)):
        pass
    return made.hex()
