"""How close a variant of the encoder stays to fp32, on real texts and in the accuracy of a head.

The head is a logistic regression, trained anew on each variant's own embeddings: a head trained on one
variant would flatter this variant.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from coldframe.model.bundle import Golden
from coldframe.model.tokenizer import TextWindows, Window, normalise
from coldframe.progress import Progress
from coldframe_training.encoder_build.make_encoder import ENCODER_FACTS
from coldframe_training.files.paths import CACHE, GOLDEN_VECTORS

_TRAINING_DOCUMENTS = 1_500
_TEST_DOCUMENTS = 4_000
_PROBED = 8
_SEED = 0

Session = Callable[[NDArray[np.int64]], NDArray[np.float32]]
"""Token ids of rows of equal length to embeddings."""


class Documents(NamedTuple):
    """First windows of texts, training texts first, and their classes if they have any."""

    rows: list[Window]
    target: NDArray[np.int64] | None
    training: int

    @property
    def judged(self) -> slice:
        """Rows of documents that no head was trained on."""
        return slice(self.training, None)


class Fidelity(NamedTuple):
    """Cosines to fp32, and which of the judged documents the head got right."""

    cosines: NDArray[np.float32]
    right: NDArray[np.bool_] | None


def documents(tokenizer_folder: Path) -> Documents:
    """1,500 stripped training and 4,000 test documents; the golden texts without the data set."""
    windows = TextWindows(tokenizer_folder, msgspec.structs.replace(ENCODER_FACTS, max_windows=1))

    def first_windows(texts: Sequence[str]) -> list[Window]:
        return [rows[0] for rows in windows.cut([normalise(text) for text in texts])]

    if "COLDFRAME_DATA" not in os.environ:
        golden = msgspec.json.decode(GOLDEN_VECTORS.read_bytes(), type=Golden)
        return Documents(first_windows([vector.text for vector in golden.vectors]), None, 0)
    from coldframe_training.training_data.data import load_split

    random = np.random.default_rng(_SEED)
    texts, classes = [], []
    for split, count in (("train", _TRAINING_DOCUMENTS), ("test", _TEST_DOCUMENTS)):
        split_texts = load_split(split)
        indices = random.permutation(len(split_texts.stripped))[:count]
        texts += [split_texts.stripped[i] for i in indices]
        classes.append(split_texts.target[indices])
    return Documents(first_windows(texts), np.concatenate(classes), _TRAINING_DOCUMENTS)


def embed(name: str, run: Session, rows: Sequence[Window]) -> NDArray[np.float32]:
    """Embeddings of each row on its own, cached under `.cache` by the rows and the first embeddings."""
    digest = hashlib.sha256(msgspec.json.encode(rows))
    digest.update(_run(run, rows[:_PROBED]).tobytes())
    cache_file = CACHE / "embeddings" / f"variant-{digest.hexdigest()[:16]}.npy"
    if not cache_file.exists():
        cache_file.parent.mkdir(parents=True, exist_ok=True)
        np.save(cache_file, _run(run, Progress(rows, desc=name[:24], unit="row", mininterval=5)))
    return np.load(cache_file)  # type: ignore[no-any-return]


def _run(run: Session, rows: Iterable[Window]) -> NDArray[np.float32]:
    return np.concatenate([run(np.array([row], dtype=np.int64)) for row in rows])


def judge(embeddings: NDArray[np.float32], fp32: NDArray[np.float32], texts: Documents) -> Fidelity:
    """Embeddings of a variant beside those of fp32."""
    cosines = (embeddings * fp32).sum(axis=1)[texts.judged]
    if texts.target is None:
        return Fidelity(cosines, None)
    head = LogisticRegression(C=1.0, max_iter=1000)
    head.fit(embeddings[: texts.training], texts.target[: texts.training])
    return Fidelity(cosines, head.predict(embeddings[texts.judged]) == texts.target[texts.judged])


def difference(right: NDArray[np.bool_], of_fp32: NDArray[np.bool_]) -> tuple[float, float]:
    """Accuracy minus that of fp32 on the same documents, and its standard error."""
    each = right.astype(float) - of_fp32.astype(float)
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))
