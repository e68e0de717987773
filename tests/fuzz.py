"""Fuzzes what reads request bodies: mutated requests, kept where they reach code not reached before.

    python -m tests.fuzz --seconds 600

An input that shows a defect is written to tests/fixtures/found/, from where
tests/unit/coldframe/api/test_contract.py runs it ever after. Runs of one seed are alike up to the time given.
"""

import argparse
import gzip
import hashlib
import itertools
import json
import random
import sys
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from tests.unit.coldframe.api.test_contract import ROUTES, send

FOUND = Path(__file__).parent / "fixtures" / "found"
WATCHED = (
    "api.py",
    "compression.py",
    "inference_checks.py",
    "inference_protocol.py",
    "messages.py",
    "openai.py",
    "refused_json.py",
    "tensors.py",
)
HEADER_LENGTH = "inference-header-content-length"
TOKENS = [
    b'"inputs"', b'"outputs"', b'"data"', b'"shape"', b'"datatype"', b'"BYTES"', b'"FP32"', b'"name"',
    b'"text"', b'"embedding"', b'"label"', b'"parameters"', b'"binary_data_size"', b'"binary_data"',
    b'"binary_data_output"', b'"input"', b'"texts"', b'"heads"', b'"top_k"', b'"encoding_format"',
    b'"base64"', b'"dimensions"', b"null", b"true", b"[]", b"{}", b"[[]]", b"-1", b"0", b"8", b"1e39",
    b"1e999", b"18446744073709551616", b"NaN", b"\\ud800", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x01\0\0\0",
    b"\x1f\x8b\x08",
    b"\0\0\x80\x7f", b"\0\0\xc0\xff", b",", b":", b'"',
]  # fmt: skip


@dataclass(frozen=True)
class Sent:
    """A request. `body` is as it is before compression."""

    path: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    def wire(self) -> bytes:
        """The body as it is sent; one in gzip stays broken if it is broken."""
        packed = self.headers.get("content-encoding") == "gzip" and not self.body.startswith(b"\x1f\x8b")
        return gzip.compress(self.body, mtime=0) if packed else self.body

    def file(self) -> bytes:
        """As a regression test reads it."""
        line = json.dumps({"path": self.path, "headers": self.headers}, sort_keys=True)
        return line.encode() + b"\n" + self.wire()


def seeds() -> list[Sent]:
    """Good requests of every kind."""
    text = {"name": "text", "shape": [2], "datatype": "BYTES"}
    row = {"name": "embedding", "shape": [1, 8], "datatype": "FP32"}
    raw_text, raw_row = b"\x01\0\0\0a\x02\0\0\0bc", b"\0\0\x80\x3f" * 8
    outputs = [{"name": "label", "parameters": {"binary_data": True}}, {"name": "scores"}]
    found = [
        _json("/v1/predict", {"texts": ["a", "bc"], "heads": ["first"], "top_k": 2, "scores": True}),
        _json("/v1/predict", {"text": "a", "cache": False}),
        _json("/v1/embeddings", {"input": ["a", "bc"], "encoding_format": "base64", "dimensions": 8}),
        _json("/v1/embeddings", {"input": "a", "model": "m", "user": "u"}),
    ]
    for path in ROUTES[2:]:
        found.append(_json(path, {"inputs": [text | {"data": ["a", "bc"]}], "id": "1"}))
        found.append(_tensors(path, text, raw_text, {"parameters": {"binary_data_output": True}}))
    found.append(_json(ROUTES[3], {"inputs": [row | {"data": [0.5] * 8}], "outputs": outputs}))
    found.append(_json(ROUTES[3], {"inputs": [row | {"data": [[0.5] * 8]}]}))
    found.append(_tensors(ROUTES[3], row, raw_row, {"outputs": outputs}))
    return found + [Sent(one.path, one.body, one.headers | {"content-encoding": "gzip"}) for one in found]


def _json(path: str, asked: dict[str, Any]) -> Sent:
    return Sent(path, json.dumps(asked).encode())


def _tensors(path: str, tensor: dict[str, Any], content: bytes, more: dict[str, Any]) -> Sent:
    sized = tensor | {"parameters": {"binary_data_size": len(content)}}
    header = json.dumps({"inputs": [sized], **more}).encode()
    return Sent(path, header + content, {HEADER_LENGTH: str(len(header))})


def mutate(chance: random.Random, one: Sent, other: Sent) -> Sent:
    """A few changes to one request; `other` lends it a piece."""
    body, headers, path = bytearray(one.body), dict(one.headers), one.path
    for _ in range(chance.choice((1, 1, 2, 3, 6))):
        at = chance.randrange(len(body) + 1)
        kind = chance.randrange(9)
        length_before = len(body)
        if kind == 0 and at < len(body):
            body[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del body[at : at + chance.choice((1, 2, 4, 16))]
        elif kind == 2:
            body[at:at] = chance.choice(TOKENS)
        elif kind == 3:
            token = chance.choice(TOKENS)
            body[at : at + len(token)] = token
        elif kind == 4 and other.body:
            start = chance.randrange(len(other.body))
            body[at:at] = other.body[start : start + chance.randrange(1, 40)]
        elif kind == 5:
            body[at:at] = body[at : at + chance.randrange(1, 60)] * chance.choice((1, 2, 50))
        elif kind == 6:
            headers[HEADER_LENGTH] = chance.choice((str(at), str(len(body)), "0", "-1", "x", "1_0", " 5"))
        elif kind == 7:
            headers["content-encoding"] = chance.choice(("gzip", "", "identity", "br"))
        else:
            path = chance.choice(ROUTES)
        if HEADER_LENGTH in headers and kind < 6 and chance.random() < 0.7:  # the JSON part stays whole
            length = headers[HEADER_LENGTH]
            if length.isdigit() and at <= int(length):
                headers[HEADER_LENGTH] = str(max(0, int(length) + len(body) - length_before))
    return Sent(path, bytes(body[:5000]), headers)


def run(one: Sent) -> frozenset[tuple[str, int, int]]:
    """Steps from line to line in the watched files. Raises what the contract forbids."""
    steps: set[tuple[str, int, int]] = set()
    last = [0]

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        name = frame.f_code.co_filename.rpartition("/")[2]
        if name not in WATCHED or "coldframe" not in frame.f_code.co_filename:
            return None
        if event == "line":
            steps.add((name, last[0], frame.f_lineno))
            last[0] = frame.f_lineno
        return trace

    sys.settrace(trace)
    try:
        send(one.path, one.wire(), one.headers)
    finally:
        sys.settrace(None)
    return frozenset(steps)


def main() -> int:
    """Fuzzes for the time given; the exit status says whether something was found."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance, corpus, reached = random.Random(arguments.seed), seeds(), set[tuple[str, int, int]]()
    end, found, count = time.monotonic() + arguments.seconds, 0, 0
    for count in itertools.count():
        if time.monotonic() > end:
            break
        one = corpus[count] if count < len(corpus) else mutate(chance, *chance.choices(corpus, k=2))
        try:
            steps = run(one)
        except Exception:
            found += 1
            FOUND.mkdir(parents=True, exist_ok=True)
            name = hashlib.sha256(one.file()).hexdigest()[:16]
            (FOUND / f"{name}.bin").write_bytes(one.file())
            print(f"found {name}:", traceback.format_exc(limit=-2), sep="\n", flush=True)
            continue
        if not steps <= reached:
            reached |= steps
            corpus.append(one)
    print(f"{count} requests, {len(reached)} steps reached, {len(corpus)} kept, {found} defects found")
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main())
