"""What is asked of an emulated function, and how answers are made comparable."""

import re

TIMEOUT_S = 1

# Payloads for the handler `told` of tests/support/handlers.py. ASCII: what the runtime client
# makes of other characters depends on the version of Python.
CASES = {
    "result": b'{"do": "echo", "list": [1, null]}',
    "exception": b'{"do": "fail"}',
    "unserializable": b'{"do": "unserializable"}',
    "crash": b'{"do": "leave"}',
    "timeout": b'{"do": "overrun"}',
    "no json": b"not json",
}

_REQUEST_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FILE = re.compile(r'File \\".*?/(\w+\.py)\\", line \d+')
_ARN = re.compile(r'arn:aws:lambda:[^"]*')


def comparable(body: str) -> str:
    """A body without what differs from one invocation, or from one machine, to the next."""
    return _ARN.sub("<arn>", _FILE.sub(r"File \1", _REQUEST_ID.sub("<request id>", body)))
