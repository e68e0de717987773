"""What is known of a job: what was asked, how far it is, and the messages that carry its parts. Pure."""

import base64
import hashlib
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from coldframe.api.contract import DEFAULT_TOP_K, MAX_HEADS, MAX_TOP_K
from coldframe.api.schemas import TextAnswer
from coldframe.jobs.states import State

PART_TEXTS = 500
"""Texts of one message. At 100 characters each they take 50 KB of SQS's 1 MB, and a second of one vCPU."""
PART_BYTES = 192 * 1024
"""Bytes of one message's texts, as JSON: a batch of Lambda has 6 MB, in which each is escaped once more."""
MAX_PARTS = 2000
"""Parts of one job, so a million texts: their results are listed in one answer."""


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """Texts in S3."""

    s3: Annotated[str, Meta(pattern=r"^s3://[a-z0-9.-]{3,63}/.+$", description="s3://bucket/key")]
    format: Literal["jsonl", "csv", "parquet"]
    column: Annotated[str, Meta(min_length=1, max_length=256, description="Field or column of the text.")] = (
        "text"
    )


class Pin(Struct, frozen=True):
    """The version of a source's object that a job answers for.

    etag: as S3 writes it, quotes included. version: its id in a bucket that keeps versions, else "".
    """

    etag: str
    version: str = ""
    size_bytes: int = 0


class Cursor(Struct, frozen=True):
    """The place in a source from which reading resumes.

    offset: bytes before it, or rows of Parquet. line: lines before it, for messages about a line.
    """

    offset: int = 0
    line: int = 0


class Push(Struct, frozen=True, forbid_unknown_fields=True):
    """Who is told when the job has ended. webhook: an address that the deployment allows."""

    webhook: Annotated[
        str, Meta(max_length=2048, description="https:// address that gets a signed POST.")
    ] = ""
    sns: Annotated[bool, Meta(description="Publish to the deployment's SNS topic.")] = False


class Options(Struct, frozen=True):
    """How the texts are classified, as `POST /v1/predict` has it. model: "" for the default one."""

    model: str = ""
    heads: tuple[str, ...] = ()
    top_k: int = DEFAULT_TOP_K
    scores: bool = False
    min_probability: float | None = None


class JobRequest(Struct, forbid_unknown_fields=True):
    """What `POST /v1/jobs` reads. Exactly one of `texts` and `source`."""

    texts: Annotated[list[str], Meta(min_length=1, description="Texts to classify.")] | UnsetType = UNSET
    source: Source | UnsetType = UNSET
    model: (
        Annotated[str, Meta(max_length=256, description="The model that answers, by name.")] | UnsetType
    ) = UNSET
    heads: (
        Annotated[list[str], Meta(min_length=1, max_length=MAX_HEADS, description="Heads that answer.")]
        | UnsetType
    ) = UNSET
    top_k: Annotated[int, Meta(ge=1, le=MAX_TOP_K, description="Labels to return, best first.")] = (
        DEFAULT_TOP_K
    )
    scores: Annotated[bool, Meta(description="Return the probability of every label.")] = False
    min_probability: Annotated[float, Meta(ge=0, le=1, description="Abstain below it.")] | UnsetType = UNSET
    push: Push | UnsetType = UNSET

    def options(self) -> Options:
        """What the parts have to know."""
        return Options(
            model=self.model or "",
            heads=tuple(dict.fromkeys(self.heads or [])),
            top_k=self.top_k,
            scores=self.scores,
            min_probability=None if isinstance(self.min_probability, UnsetType) else self.min_probability,
        )


class Job(Struct, frozen=True):
    """A job as a store keeps it.

    digest: of all that was asked. parts: how many there are; None until a source has been read.
    done: parts whose results are recorded. reason: why it failed. times: seconds since 1970.
    """

    id: str
    digest: str
    state: State
    options: Options
    created_s: float
    expires_s: float
    source: Source | None = None
    push: Push | None = None
    parts: int | None = None
    done: int = 0
    reason: str = ""
    notified: bool = False


class Result(Struct, frozen=True):
    """Where the answers of a part are. inline: them, as a JSON list, when they are small; else key: in S3.

    digest: of the answers' bytes. version: of the model that gave them.
    """

    part: int
    digest: str
    version: str
    texts: int
    inline: bytes = b""
    key: str = ""


class Part(Struct, frozen=True, tag="part"):
    """A message: texts of a job. first: index of the first one in the job. key: in S3, when not inline."""

    job: str
    part: int
    first: int
    texts: list[str] = []
    key: str = ""


class Split(Struct, frozen=True, tag="split"):
    """A message: the source of a job is to be read and divided."""

    job: str


class Notify(Struct, frozen=True, tag="notify"):
    """A message: somebody is to be told that a job has ended."""

    job: str


Body = Part | Split | Notify
_BODY = msgspec.json.Decoder(Body)
_TEXTS = msgspec.json.Decoder(list[str])


def read_body(body: str) -> Body:
    """A message's body. Raises msgspec.DecodeError for what is none."""
    found: Body = _BODY.decode(body)
    return found


def read_texts(body: bytes) -> list[str]:
    """A part that is kept in S3."""
    return _TEXTS.decode(body)


def digest_of(asked: JobRequest) -> str:
    """Of all that a job was asked for: the same for the same request, however it was written."""
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()


def job_id(digest: str, token: str) -> str:
    """A job's name: of the client's token where there is one, else of what was asked."""
    name = f"token\n{token}" if token else f"content\n{digest}"
    return base64.b32encode(hashlib.sha256(name.encode()).digest())[:26].decode().lower()


def divided(texts: list[str], part_texts: int = PART_TEXTS, part_bytes: int = PART_BYTES) -> list[list[str]]:
    """Texts in parts that a message can carry, in order; a text that is too large alone is a part alone."""
    parts: list[list[str]] = []
    size = part_bytes + 1
    for text in texts:
        bytes_ = text_bytes(text)
        if size + bytes_ > part_bytes or len(parts[-1]) >= part_texts:
            parts.append([])
            size = 0
        parts[-1].append(text)
        size += bytes_
    return parts


def text_bytes(text: str) -> int:
    """Bytes of a text in a list of JSON, at most: beyond ASCII a character may take six, or twelve."""
    return (2 if text.isascii() else 6) * len(text) + 3


def encode_answers(answers: list[TextAnswer]) -> bytes:
    """Answers as they are kept and sent."""
    return msgspec.json.encode(answers)


def content_digest(content: bytes) -> str:
    """Names content by what it is."""
    return hashlib.sha256(content).hexdigest()
