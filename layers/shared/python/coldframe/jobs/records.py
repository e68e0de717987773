"""Records of a job: its request, its progress, and the messages that carry its parts. Pure."""

import base64
import hashlib
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from coldframe.contract import DEFAULT_TOP_K, MAX_HEADS, MAX_TOP_K
from coldframe.jobs.object_file import Cursor, Pin
from coldframe.jobs.states import State
from coldframe.schemas import TextAnswer

PART_TEXTS = 500
"""Most texts of one message. At 100 characters each they take 50 KB of SQS's 1 MB, and a second of one
vCPU.
"""
PART_BYTES = 192 * 1024
"""Most bytes of one message's texts, as JSON: a Lambda batch has 6 MB, where each text is escaped again."""
MAX_PARTS = 2000
"""Most parts of one job, so a million texts: part numbers are a set in the job's item."""
LONGEST_MESSAGE_S = 345_600
"""Life of a message in the queues, four days, unless jobs live shorter."""
_KEPT_S = 3_600  # end of a job's life that is reserved for its notice


class Source(Struct, frozen=True, forbid_unknown_fields=True):
    """Texts in S3."""

    s3: Annotated[str, Meta(pattern=r"^s3://[a-z0-9.-]{3,63}/.+$", description="s3://bucket/key")]
    format: Literal["jsonl", "csv", "parquet"]
    column: Annotated[str, Meta(min_length=1, max_length=256, description="Field or column of the text.")] = (
        "text"
    )


class Push(Struct, frozen=True, forbid_unknown_fields=True):
    """Receivers of a notice when the job has ended. webhook: an address that the deployment allows."""

    webhook: Annotated[
        str, Meta(max_length=2048, description="https:// address that gets a signed POST.")
    ] = ""
    sns: Annotated[bool, Meta(description="Publish to the deployment's SNS topic.")] = False


class Options(Struct, frozen=True):
    """Options of a classification, as in `POST /v1/predict`. model: "" for the default model."""

    model: str = ""
    heads: tuple[str, ...] = ()
    top_k: int = DEFAULT_TOP_K
    scores: bool = False
    min_probability: float | None = None


class JobRequest(Struct, forbid_unknown_fields=True):
    """Body of `POST /v1/jobs`. Exactly one of `texts` and `source`."""

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
        """The options, which every part needs."""
        return Options(
            model=self.model or "",
            heads=tuple(dict.fromkeys(self.heads or [])),
            top_k=self.top_k,
            scores=self.scores,
            min_probability=None if isinstance(self.min_probability, UnsetType) else self.min_probability,
        )


class SplitPlace(Struct, frozen=True):
    """Progress of dividing the source of a job.

    part: number of the next part. first: index of its first text. by: name of the run that reached it.
    """

    cursor: Cursor = Cursor()
    part: int = 0
    first: int = 0
    by: str = ""


class Job(Struct, frozen=True):
    """A job as a store keeps it. Times are seconds since 1970.

    generation: random name that a job gets whenever its id is used again, after it expired or failed.
    owner: name of the caller. digest: of the request. pin: version of the source's object.
    parts: number of parts; None until all their messages are sent. done: numbers of the answered parts.
    split: None until the message that divides the source is sent. reason: why the job failed.
    due_s: when the sweeper looks at the job; None when nothing is left to do.
    traceparent: W3C's header of the request that started the job; "" where traces are off.
    """

    id: str
    generation: str
    digest: str
    state: State
    options: Options
    created_s: float
    expires_s: float
    owner: str = ""
    source: Source | None = None
    pin: Pin | None = None
    push: Push | None = None
    parts: int | None = None
    done: frozenset[int] = frozenset()
    split: SplitPlace | None = None
    reason: str = ""
    notified: bool = False
    due_s: float | None = None
    traceparent: str = ""

    @property
    def is_answered(self) -> bool:
        """Whether every part has its answers."""
        return self.parts is not None and len(self.done) >= self.parts

    def due_after(self, sent_s: float) -> float:
        """When no message sent at `sent_s` can be left, and before the job expires."""
        life_s = self.expires_s - self.created_s
        return min(sent_s + min(life_s, LONGEST_MESSAGE_S), self.expires_s - min(_KEPT_S, life_s / 10))


class Result(Struct, frozen=True):
    """Place of a part's answers. inline: the answers, as a JSON list, when they are small; else key: in S3.

    digest: of the answers' bytes. version: of the model that answered.
    """

    part: int
    digest: str
    version: str
    texts: int
    inline: bytes = b""
    key: str = ""


class PartName(NamedTuple):
    """A name that is unique among all parts of all jobs."""

    job: str
    generation: str
    part: int


class Part(Struct, frozen=True, tag="part"):
    """A message: texts of a job. first: index of the first one in the job. key: in S3, when not inline."""

    job: str
    generation: str
    part: int
    first: int
    texts: list[str] = []
    key: str = ""

    @property
    def name(self) -> PartName:
        return PartName(self.job, self.generation, self.part)


class Split(Struct, frozen=True, tag="split"):
    """A message: divide the source of a job."""

    job: str
    generation: str


class Notify(Struct, frozen=True, tag="notify"):
    """A message: notify the receivers that a job has ended."""

    job: str
    generation: str


Control = Split | Notify
Body = Part | Control
_PART = msgspec.json.Decoder(Part)
_CONTROL = msgspec.json.Decoder(Control)
_TEXTS = msgspec.json.Decoder(list[str])


def read_part(body: str) -> Part:
    """A message of the queue of parts. Raises msgspec.DecodeError."""
    return _PART.decode(body)


def read_control(body: str) -> Control:
    """A message of the control queue. Raises msgspec.DecodeError."""
    message: Control = _CONTROL.decode(body)
    return message


def read_texts(body: bytes) -> list[str]:
    """The texts of a part in S3."""
    return _TEXTS.decode(body)


def texts_key(job: Job, part: int) -> str:
    """Key of the texts of a part in the bucket of jobs."""
    return f"jobs/{job.id}/{job.generation}/texts/{part:05d}.json"


def answers_key(job: Job, part: int, digest: str) -> str:
    """Key of the answers of a part. It contains their digest, so a repeat writes equal bytes."""
    return f"jobs/{job.id}/{job.generation}/answers/{part:05d}-{digest}.json"


def digest_of(*values: object) -> str:
    """SHA-256 of values as JSON with sorted keys: equal for equal values, in any order of keys."""
    return hashlib.sha256(msgspec.json.encode(values, order="deterministic")).hexdigest()


def job_id(*names: object) -> str:
    """A job's id, made from what two equal requests have in common."""
    digest = hashlib.sha256(msgspec.json.encode(names)).digest()
    return base64.b32encode(digest)[:26].decode().lower()


def divided(texts: list[str], part_texts: int = PART_TEXTS, part_bytes: int = PART_BYTES) -> list[list[str]]:
    """Texts in parts that fit into a message, in order; a text that is too large becomes a part by itself."""
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
    """Most bytes of a text in a list of JSON: beyond ASCII a character may take six, or twelve."""
    return (2 if text.isascii() else 6) * len(text) + 3


def encode_answers(answers: list[TextAnswer]) -> bytes:
    """Answers as bytes, for storage and for replies."""
    return msgspec.json.encode(answers)


def content_digest(content: bytes) -> str:
    """Digest that names content."""
    return hashlib.sha256(content).hexdigest()
