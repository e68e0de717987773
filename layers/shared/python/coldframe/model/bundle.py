"""The model bundle: the files that are served together, named by their digest."""

import hashlib
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from coldframe.errors import BundleCorrupt
from coldframe.model.files import ENCODER, GOLDEN, MANIFEST, REBUILD, read_file


class FileEntry(Struct, frozen=True):
    """One file of the bundle."""

    sha256: str
    bytes: int


class EncoderFacts(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """What a caller of the encoder must know about it.

    Defaults are those of all-MiniLM-L6-v2 and are left out where the facts are written.
    lower_case: the tokenizer lower-cases. lower_texts: texts are lower-cased before they reach it.
    begin, end: the tokens around each window. prefix: what stands before each text, of which
    `prefix_tokens` are the ids.
    """

    dimension: int
    max_tokens: int
    max_windows: int
    tokenizer: Literal["wordpiece", "unigram"] = "wordpiece"
    lower_case: bool = True
    lower_texts: bool = False
    begin: str = "[CLS]"
    end: str = "[SEP]"
    prefix: str = ""
    prefix_tokens: tuple[int, ...] = ()

    @property
    def content_tokens(self) -> int:
        """Tokens of a text that one window has room for."""
        return self.max_tokens - len(self.prefix_tokens) - 2  # begin and end


class HeadFacts(Struct, frozen=True):
    """What a head reached on texts that it was not trained on, and how it was trained.

    accuracy: on the test split, by the form of its texts.
    validation: on the rows that choices were made with.
    """

    accuracy: dict[str, float]
    validation: float
    parameters: dict[str, str | int | float]


class EstimatorFacts(Struct, frozen=True):
    """How the estimator turns token ids into probabilities, and what it reaches.

    scales: unit of the integer weights of each label. threshold: the estimator
    answers alone above it; below, its probabilities and those of the head
    `partner` are averaged. min_tokens: different tokens of a text that training saw; with fewer, the
    estimator does not answer alone. unseen_idf: the weight of a token that training did not see.
    accuracy, auto_accuracy, auto_alone: of the estimator, of `auto`, and the share of texts that the
    estimator answers alone, on the test split by the form of its texts.
    """

    vocabulary: int
    scales: list[float]
    bias: list[float]
    temperature: float
    threshold: float
    partner: str
    min_tokens: int = 0
    unseen_idf: float = 0.0
    accuracy: dict[str, float] = {}
    auto_accuracy: dict[str, float] = {}
    auto_alone: dict[str, float] = {}


class Source(Struct, frozen=True):
    """Where the weights come from."""

    model: str
    sha256: str
    licence: str


class Manifest(Struct, frozen=True):
    """What is in a bundle. `version` is the digest of what it computes.

    encoder_graph: digest of the ONNX graph that `encoder.ort` holds. Two builds of
    one graph differ in the order of that file's tables, and are the same version.
    """

    name: str
    version: str
    encoder: EncoderFacts
    encoder_graph: str
    estimator: EstimatorFacts
    labels: list[str]
    default_head: str
    heads: dict[str, HeadFacts]
    source: Source
    built_with: dict[str, str]
    files: dict[str, FileEntry]

    def encode(self) -> bytes:
        """The bytes of `manifest.json`, one form per content."""
        return msgspec.json.format(msgspec.json.encode(self, order="sorted"), indent=1) + b"\n"

    def digest(self) -> str:
        """`sha256:<hex>` of the manifest without its version and without the bytes of `encoder.ort`."""
        files = {name: entry for name, entry in self.files.items() if name != ENCODER}
        blank = msgspec.structs.replace(self, version="", files=files)
        return "sha256:" + hashlib.sha256(blank.encode()).hexdigest()

    def with_windows(self, max_windows: int) -> "Manifest":
        """The same bundle, served with another number of windows: another version."""
        encoder = msgspec.structs.replace(self.encoder, max_windows=max_windows)
        changed = msgspec.structs.replace(self, encoder=encoder)
        return msgspec.structs.replace(changed, version=changed.digest())


class GoldenVector(Struct, frozen=True):
    """A text of our own and its fp32 embedding from the original weights."""

    text: str
    embedding: list[float]


class Golden(Struct, frozen=True):
    """Reference embeddings, and how far the served encoder may be from them."""

    source: str
    min_cosine: float
    vectors: list[GoldenVector]


def load_manifest(folder: Path) -> Manifest:
    """The manifest of the bundle in `folder`.

    Raises BundleMissing when there is none, BundleCorrupt when it is not what
    a build wrote, to the byte.
    """
    content = read_file(folder, MANIFEST)
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
    except msgspec.MsgspecError as exc:
        raise BundleCorrupt(f"{MANIFEST} cannot be read: {exc}. {REBUILD}") from exc
    if content != manifest.encode() or manifest.version != manifest.digest():
        raise BundleCorrupt(f"{MANIFEST} is not as it was built: its digest differs. {REBUILD}")
    return manifest


def load_golden(folder: Path) -> Golden:
    """The golden vectors of the bundle in `folder`."""
    try:
        return msgspec.json.decode(read_file(folder, GOLDEN), type=Golden)
    except msgspec.MsgspecError as exc:
        raise BundleCorrupt(f"{GOLDEN} cannot be read: {exc}. {REBUILD}") from exc


def check_files(folder: Path, manifest: Manifest) -> None:
    """Raises BundleCorrupt naming the first file that is not the manifest's."""
    for name, entry in manifest.files.items():
        found = describe_file(folder, name)
        if found != entry:
            raise BundleCorrupt(
                f"{name} has sha256 {found.sha256[:12]}… and {found.bytes} bytes; {MANIFEST} says"
                f" {entry.sha256[:12]}… and {entry.bytes}. {REBUILD}"
            )


def describe_file(folder: Path, name: str) -> FileEntry:
    """Digest and size of one file. Raises BundleMissing when it is not there."""
    content = read_file(folder, name)
    return FileEntry(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
