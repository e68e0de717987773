"""The name of a request, in its answer and in its log line: the caller's, or one of ours."""

import re
import uuid

HEADER = "x-request-id"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=-]{0,127}")


def request_id(sent: str | None) -> str:
    """What the caller sent if it can stand in a log as it is, else a new one."""
    return sent if sent is not None and _NAME.fullmatch(sent) else uuid.uuid4().hex
