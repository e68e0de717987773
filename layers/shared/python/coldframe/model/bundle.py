"""The bundle: encoders, and models trained on them, each a folder of files named by their digest."""

from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from coldframe.digests import sha256
from coldframe.errors import BundleCorrupt
from coldframe.model.files import (
    AUTO,
    ENCODER,
    ENSEMBLE,
    GOLDEN,
    MANIFEST,
    REBUILD,
    check_trained_on,
    encoder_folder,
    model_folder,
    read_file,
)
from coldframe.schemas import Figures


class FileEntry(Struct, frozen=True):
    """One file of an encoder or a model."""

    sha256: str
    bytes: int


class EncoderFacts(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """Facts about an encoder that its callers need.

    Defaults are those of all-MiniLM-L6-v2, and are not written.
    lower_case: the tokenizer lower-cases. lower_texts: texts are lower-cased before the tokenizer.
    begin, end: the tokens around each window. prefix: text in front of each text, with the
    token ids `prefix_tokens`.
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
        """Room in one window for tokens of a text."""
        return self.max_tokens - len(self.prefix_tokens) - 2  # begin and end


class HeadFacts(Struct, frozen=True):
    """Results of a head on held-out texts, and how it was trained.

    accuracy: on the test split, by the form of its texts.
    validation: on the rows that choices were made with.
    min_probability: the head abstains below it, unless a caller sets another; 0.0: never.
    """

    accuracy: dict[str, float]
    validation: float
    parameters: dict[str, str | int | float]
    min_probability: float = 0.0


class EstimatorFacts(Struct, frozen=True):
    """Parameters of the estimator, from token ids to probabilities, and its results.

    scales: unit of the integer weights of each label. threshold: the estimator
    answers alone above it; below, `auto` is the geometric mean of its probabilities and those of the
    head `partner`. min_tokens: different tokens of a text that training saw; with fewer, the
    estimator does not answer alone. unseen_idf: the weight of a token that training did not see.
    settled_margin: lead of the best label after some windows of a text at which `auto` stops reading;
    1: it reads them all.
    accuracy, auto_accuracy, auto_alone: of the estimator, of `auto`, and the share of texts that the
    estimator answers alone, on the test split by the form of its texts.
    min_probability: `auto` abstains below it, unless a caller sets another; 0.0: never.
    usual: strangeness of validation rows by their tokens, ascending; a text's out-of-distribution score is
    the share of these rows that are less strange.
    answer_temperatures: calibrate the probabilities of `auto`, for answers of the estimator alone and of both
    together. Older models have none.
    """

    vocabulary: int
    scales: list[float]
    bias: list[float]
    temperature: float
    threshold: float
    partner: str
    min_tokens: int = 0
    unseen_idf: float = 0.0
    settled_margin: float = 1.0
    accuracy: dict[str, float] = {}
    auto_accuracy: dict[str, float] = {}
    auto_alone: dict[str, float] = {}
    min_probability: float = 0.0
    usual: list[float] = []
    answer_temperatures: tuple[float, float] | UnsetType = UNSET  # omitted where unset: older manifests stay


class EnsembleFacts(Struct, frozen=True):
    """Weights of the head `ensemble`, chosen on validation rows, and its results.

    weights: by member, `auto` first, then heads; positive, and 1 together up to rounding.
    accuracy, validation, min_probability: as of a head.
    """

    weights: dict[str, float]
    accuracy: dict[str, float]
    validation: float
    min_probability: float = 0.0


class Source(Struct, frozen=True):
    """Origin of the weights."""

    model: str
    sha256: str
    licence: str


class Sealed(Struct, frozen=True):
    """A manifest. `version` is the digest of everything that its files compute."""

    name: str
    version: str
    files: dict[str, FileEntry]

    def encode(self) -> bytes:
        """The bytes of `manifest.json`, one form per content."""
        return msgspec.json.format(msgspec.json.encode(self, order="sorted"), indent=1) + b"\n"

    def digest(self) -> str:
        """`sha256:<hex>` of the manifest without its version."""
        blank = msgspec.structs.replace(self, version="")
        return "sha256:" + sha256(blank.encode()).hexdigest()


class EncoderManifest(Sealed, frozen=True):
    """Manifest of an encoder.

    graph: digest of the ONNX graph that `encoder.ort` holds. Two builds of one graph may differ in the order
    of that file's tables and in the tools' versions: they are the same version.
    """

    facts: EncoderFacts
    graph: str
    source: Source
    built_with: dict[str, str]

    def digest(self) -> str:
        """`sha256:<hex>` of the manifest without its version, the bytes of `encoder.ort` and the tools."""
        files = {name: entry for name, entry in self.files.items() if name != ENCODER}
        blank = msgspec.structs.replace(self, version="", files=files, built_with={})
        return "sha256:" + sha256(blank.encode()).hexdigest()

    def with_windows(self, max_windows: int) -> "EncoderManifest":
        """The encoder served with another number of windows, which makes another version."""
        facts = msgspec.structs.replace(self.facts, max_windows=max_windows)
        changed = msgspec.structs.replace(self, facts=facts)
        return msgspec.structs.replace(changed, version=changed.digest())


class EncoderVersion(Struct, frozen=True):
    """Reference to the encoder that a model was trained on."""

    name: str
    version: str


class Manifest(Sealed, frozen=True):
    """Manifest of a model: a classifier trained on an encoder's embeddings."""

    encoder: EncoderVersion
    estimator: EstimatorFacts
    labels: list[str]
    default_head: str
    heads: dict[str, HeadFacts]
    figures: Figures | None = None
    ensemble: EnsembleFacts | UnsetType = UNSET  # omitted where unset: older manifests stay

    @property
    def named_heads(self) -> dict[str, HeadFacts | EnsembleFacts]:
        """Facts of all heads but `auto`, by name: `ensemble` is the last, where the model has its weights."""
        return {**self.heads, **({ENSEMBLE: self.ensemble} if self.ensemble else {})}

    def with_encoder(self, version: str) -> "Manifest":
        """The model on another version of its encoder, which makes another version."""
        encoder = msgspec.structs.replace(self.encoder, version=version)
        changed = msgspec.structs.replace(self, encoder=encoder)
        return msgspec.structs.replace(changed, version=changed.digest())


class GoldenVector(Struct, frozen=True):
    """A golden text, written for this project, and its fp32 embedding from the original weights."""

    text: str
    embedding: list[float]


class Golden(Struct, frozen=True):
    """Reference embeddings, and the least cosine of the served encoder's embeddings to them."""

    source: str
    min_cosine: float
    vectors: list[GoldenVector]


M = TypeVar("M", bound=Sealed)


def load_manifest(model_dir: Path, name: str) -> Manifest:
    """The manifest of the model `name`.

    Raises BundleMissing without a manifest, BundleCorrupt when a byte differs from what training wrote.
    """
    return _load(model_folder(model_dir, name), Manifest)


def load_encoder_manifest(model_dir: Path, name: str) -> EncoderManifest:
    """The manifest of the encoder `name`. Raises BundleMissing or BundleCorrupt."""
    return _load(encoder_folder(model_dir, name), EncoderManifest)


def load_pair(model_dir: Path, name: str) -> tuple[Manifest, EncoderManifest]:
    """The manifests of the model `name` and of its encoder.

    Raises BundleMissing, or BundleCorrupt also when the model was trained on another version of the encoder.
    """
    manifest = load_manifest(model_dir, name)
    encoder = load_encoder_manifest(model_dir, manifest.encoder.name)
    check_trained_on(model_dir, name, encoder.name, manifest.encoder.version, encoder.version)
    return manifest, encoder


def _load(folder: Path, kind: type[M]) -> M:
    content = read_file(folder, MANIFEST)
    try:
        manifest = msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError as exc:
        raise BundleCorrupt(f"{folder / MANIFEST} cannot be read: {exc}. {REBUILD}") from exc
    if content != manifest.encode() or manifest.version != manifest.digest():
        raise BundleCorrupt(f"{folder / MANIFEST} is not as it was built: its digest differs. {REBUILD}")
    return manifest


def check_members(manifest: Manifest) -> None:
    """Raises BundleCorrupt unless the members of `ensemble` are heads with weights."""
    if manifest.ensemble:
        weights = manifest.ensemble.weights
        unknown = weights.keys() - {AUTO, *manifest.heads}
        if unknown or not weights or min(weights.values()) <= 0:
            raise BundleCorrupt(
                f"The ensemble has the weights {weights}; expected positive ones, of `auto` and heads."
                f" {REBUILD}"
            )


def load_golden(folder: Path) -> Golden:
    """The golden vectors of the encoder in `folder`."""
    try:
        return msgspec.json.decode(read_file(folder, GOLDEN), type=Golden)
    except msgspec.MsgspecError as exc:
        raise BundleCorrupt(f"{GOLDEN} cannot be read: {exc}. {REBUILD}") from exc


def check_files(folder: Path, manifest: Sealed) -> None:
    """Raises BundleCorrupt for the first file that differs from the manifest."""
    for name, entry in manifest.files.items():
        actual = describe_file(folder, name)
        if actual != entry:
            raise BundleCorrupt(
                f"{folder / name} has sha256 {actual.sha256[:12]}… and {actual.bytes} bytes; {MANIFEST} says"
                f" {entry.sha256[:12]}… and {entry.bytes}. {REBUILD}"
            )


def describe_file(folder: Path, name: str) -> FileEntry:
    """Digest and size of one file. Raises BundleMissing for a missing file."""
    from hashlib import sha256 as sha256_by_openssl  # several times as fast, for files of any size

    content = read_file(folder, name)
    return FileEntry(sha256=sha256_by_openssl(content).hexdigest(), bytes=len(content))
