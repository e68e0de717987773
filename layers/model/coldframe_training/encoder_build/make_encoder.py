"""A folder of weights to an encoder that can be served: its files and its facts.

Of the default encoder, ranges and golden vectors are committed. Of any other they are made here, from
texts of our own, and the encoder is refused unless int8 stays as close to fp32 as this module says.
"""

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from coldframe.model.bundle import EncoderFacts, Source
from coldframe.model.encoder import Encoder
from coldframe.model.files import ENCODER, GOLDEN
from coldframe.model.tokenizer import TextWindows, Window, normalise
from coldframe_training.embeddings.matrices import Embeddings, to_matrix
from coldframe_training.encoder_build.calibration_texts import own_texts
from coldframe_training.encoder_build.encoder_folder import EncoderFolder, read_encoder_folder
from coldframe_training.encoder_build.tokenizer_files import load_library, write_tokenizer
from coldframe_training.encoder_build.weights import LICENCE, MAX_TOKENS, MODEL, SHA256, is_default
from coldframe_training.files.errors import EncoderRefused
from coldframe_training.files.paths import CALIBRATION, GOLDEN_VECTORS
from coldframe_training.publishing.assemble import EncoderPart
from coldframe_training.publishing.publish import copy_into

if TYPE_CHECKING:
    from coldframe_training.encoder_build.golden import Reference

Announce = Callable[[str], object]

ENCODER_FACTS = EncoderFacts(dimension=384, max_tokens=MAX_TOKENS, max_windows=4)  # of the default encoder
LEAST_COSINE = 0.9  # of int8 to fp32, of any golden text
_EXPORTED = 0.9999  # cosine of our fp32 graph to the original: what is left is rounding
_SLACK = 1.5  # another processor may be so much further from fp32 than this one
_STRICTEST = 0.99
_TOKENS_OF_A_TEXT = 1024  # that are read, in windows
_LEAST_ROOM = 8  # tokens of a text in a window
_BUILT_WITH = ("onnxruntime", "optimum", "optimum-onnx", "torch", "transformers")


def make_encoder(source: Path, folder: Path, announce: Announce = lambda step: None) -> EncoderPart:
    """Writes the files of the encoder in `source` into `folder`: `encoder.ort`, `tokenizer.json`,
    `vocabulary.txt`, `golden.json`, and `pieces.bin` of a Unigram tokenizer.

    announce: told of each step before it is taken.
    Raises EncoderRefused, which names the step that does not work, and why.
    """
    return _make_default(source, folder, announce) if is_default(source) else _make(source, folder, announce)


def _make_default(source: Path, folder: Path, announce: Announce) -> EncoderPart:
    announce("export and quantize the encoder (20 s)")
    write_tokenizer(source, folder)
    graph = build_encoder(source, folder / ENCODER)
    copy_into(folder, GOLDEN_VECTORS)
    return EncoderPart(
        ENCODER_FACTS, graph, Source(MODEL, SHA256["model.safetensors"], LICENCE), built_with()
    )


def build_encoder(weights: Path, target: Path) -> str:
    """Exports and quantizes the default encoder with the committed ranges. Returns the graph's digest."""
    # Imported here: torch and transformers take seconds, a wrong argument should not.
    from coldframe_training.encoder_build.export import export_fp32
    from coldframe_training.encoder_build.quantize import Ranges, quantize

    ranges = msgspec.json.decode(CALIBRATION.read_bytes(), type=Ranges)
    with tempfile.TemporaryDirectory() as scratch:
        fp32 = Path(scratch) / "fp32.onnx"
        export_fp32(weights, fp32)
        return f"sha256:{quantize(fp32, ranges, target)}"


def _make(source: Path, folder: Path, announce: Announce) -> EncoderPart:
    announce("read the encoder's files")
    origin = read_encoder_folder(source)
    facts = _write_tokenizer(origin, folder)
    from coldframe_training.encoder_build.golden import TEXTS, Reference, encode_golden, golden_vectors

    reference = Reference(origin)
    announce("compare the tokenizer with transformers'")
    windows = TextWindows(folder, facts)
    _check_tokens(windows, reference, [*TEXTS, *own_texts()])
    graph = _write_graph(origin, folder, windows, reference, announce)
    announce("compare int8 with fp32")
    expected = _embeddings(reference, TEXTS)
    encoder = Encoder(folder, facts, threads=1)
    lowest = _lowest(lambda rows: to_matrix(encoder.encode(rows)), windows, TEXTS, expected)
    name = source.resolve().name
    (folder / GOLDEN).write_bytes(encode_golden(golden_vectors(reference, name, least_cosine(lowest))))
    return EncoderPart(
        facts, graph, Source(name, weights_digest(origin.weights), origin.licence), built_with()
    )


def least_cosine(measured: float) -> float:
    """The cosine to fp32 that an environment has to reach, from the lowest one measured here.

    Raises EncoderRefused below `LEAST_COSINE`.
    """
    if not measured >= LEAST_COSINE:
        raise EncoderRefused(
            f"Quantization does not work for this encoder: in int8, the embedding of one of our texts has"
            f" cosine {measured:.4f} to the original's. Expected at least {LEAST_COSINE}. Some activations"
            " lie so far out that eight bits cannot tell the others apart. Take another encoder."
        )
    return float(np.floor(min(_STRICTEST, 1 - _SLACK * (1 - measured)) * 1e4) / 1e4)


def _write_tokenizer(origin: EncoderFolder, folder: Path) -> EncoderFacts:
    tokenizer = write_tokenizer(origin.weights, folder)
    if tokenizer.tokens > origin.words:
        raise EncoderRefused(
            f"{origin.weights}/tokenizer.json has {tokenizer.tokens:,} tokens, config.json {origin.words:,}."
            " Expected an embedding for each token: take the two files of one model."
        )
    prefix = normalise(origin.prefix)
    prefix = prefix.lower() if origin.lower_texts else prefix
    library = load_library((folder / "tokenizer.json").read_text(encoding="utf-8"), origin.weights)
    facts = EncoderFacts(
        dimension=origin.dimension,
        max_tokens=origin.max_tokens,
        max_windows=max(1, _TOKENS_OF_A_TEXT // origin.max_tokens),
        tokenizer=tokenizer.tokenizer,
        lower_case=tokenizer.lower_case,
        lower_texts=origin.lower_texts,
        begin=tokenizer.begin,
        end=tokenizer.end,
        prefix=origin.prefix,
        prefix_tokens=tuple(library.encode(prefix, add_special_tokens=False).ids),
    )
    if facts.content_tokens < _LEAST_ROOM:
        raise EncoderRefused(
            f"A window has {origin.max_tokens} tokens, {len(facts.prefix_tokens)} of them for the prefix:"
            f" {facts.content_tokens} are left for a text. Expected {_LEAST_ROOM} at least."
        )
    return facts


def _write_graph(
    origin: EncoderFolder, folder: Path, windows: TextWindows, reference: "Reference", announce: Announce
) -> str:
    """Exports, calibrates and quantizes. Returns the graph's digest."""
    from coldframe_training.encoder_build.export import export_fp32
    from coldframe_training.encoder_build.golden import TEXTS
    from coldframe_training.encoder_build.quantize import GraphDiffers, measure_ranges, open_fp32, quantize

    with tempfile.TemporaryDirectory() as scratch:
        fp32 = Path(scratch) / "fp32.onnx"
        announce("export the encoder")
        export_fp32(origin.weights, fp32, pooling=origin.pooling)
        exported = _lowest(open_fp32(fp32), windows, TEXTS, _embeddings(reference, TEXTS))
        if not exported >= _EXPORTED:
            raise EncoderRefused(
                f"The export does not work for this encoder: the embedding of one of our texts has cosine"
                f" {exported:.6f} to the original's. Expected {_EXPORTED}: the model is of another kind."
            )
        try:
            announce("measure ranges on our own texts")
            ranges = measure_ranges(fp32, calibration_rows(windows))
            announce("quantize the encoder")
            return f"sha256:{quantize(fp32, ranges, folder / ENCODER)}"
        except GraphDiffers as exc:
            raise EncoderRefused(f"Quantization does not work for this encoder: {exc}") from exc


def calibration_rows(windows: TextWindows) -> list[NDArray[np.int64]]:
    """All windows of our own texts, each (1, T)."""
    cut = windows.cut([normalise(text) for text in own_texts()])
    return [np.array([row], dtype=np.int64) for rows in cut for row in rows]


def _check_tokens(windows: TextWindows, reference: "Reference", texts: Sequence[str]) -> None:
    """Raises EncoderRefused unless texts are cut as the original cuts them."""
    for text in texts:
        ids, expected = windows.cut([normalise(text)])[0][0], reference.ids(text)
        if list(ids) != expected:
            raise EncoderRefused(
                f"The tokenizer does not work: one of our texts becomes {len(ids)} tokens, and"
                f" {len(expected)} by transformers, or others. Expected the same ones. A prefix has to end in"
                " a space, and the tokens around a text have to be those of tokenizer.json."
            )


def _embeddings(reference: "Reference", texts: Sequence[str]) -> Embeddings:
    return np.array([reference.embed(text).numpy() for text in texts], dtype=np.float32)


def _lowest(
    encode: Callable[[Sequence[Window]], Embeddings],
    windows: TextWindows,
    texts: Sequence[str],
    expected: Embeddings,
) -> float:
    """The lowest cosine of the first windows' embeddings to the expected ones."""
    embeddings = [encode(windows.cut([normalise(text)])[0][:1])[0] for text in texts]
    return float(np.min(np.sum(np.array(embeddings) * expected, axis=1)))


def weights_digest(weights: Path) -> str:
    """sha256 of the weights in a folder, by which a source is known."""
    with (weights / "model.safetensors").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def built_with() -> dict[str, str]:
    """Versions of what makes the encoder."""
    return {name: version(name).partition("+")[0] for name in _BUILT_WITH}
