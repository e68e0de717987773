"""The name of a request, in its answer and in its log line: the caller's, or a new one."""

import re
import uuid

HEADER = "x-request-id"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=-]{0,127}")


def request_id(header: str | None) -> str:
    """The caller's id if a log can show it unchanged, else a new one."""
    return header if header is not None and _NAME.fullmatch(header) else uuid.uuid4().hex
