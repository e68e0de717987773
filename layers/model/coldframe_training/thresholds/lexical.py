"""The lexical estimator at training time: token ids to TF-IDF, a linear layer, and the served file."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from coldframe.model.bundle import EstimatorFacts
from coldframe.model.files import ESTIMATOR, VOCABULARY, read_file
from coldframe.model.tokenizer import TextWindows, content_tokens, normalise
from coldframe.progress import Progress
from coldframe_training.embeddings.embed import ServedEncoder
from coldframe_training.thresholds.estimator_outputs import Ids
from coldframe_training.training_data.samples import Rows, Samples

_C = 5.0
_MIN_TOKENS = 3  # a word or two say little, whatever the estimator makes of them


class Tokens(NamedTuple):
    """Samples as token ids, by form."""

    forms: dict[str, Ids]

    @property
    def as_sent(self) -> Ids:
        """The form in which callers send texts."""
        return next(iter(self.forms.values()))

    def take(self, rows: Rows) -> "Tokens":
        """Some of the samples."""
        return Tokens({form: [ids[row] for row in rows] for form, ids in self.forms.items()})


class Tfidf:
    """Documents × tokens, weighed as the served estimator does."""

    def __init__(self, documents: Ids, vocabulary: int) -> None:
        """documents: the source of the document frequencies."""
        self.vocabulary = vocabulary
        frequency = np.bincount([t for ids in documents for t in set(ids)], minlength=vocabulary)
        self.idf = (np.log((1 + len(documents)) / (1 + frequency)) + 1).astype(np.float32)
        self.unseen_idf = float(
            np.float32(np.log(1 + len(documents)) + 1)
        )  # for a token that no document has

    def rows(self, documents: Ids) -> sp.csr_matrix:
        """Sparse (documents, vocabulary), every row of length 1."""
        counts = [Counter(ids) for ids in documents]
        ends = np.cumsum([0, *map(len, counts)])
        tokens = np.array([token for count in counts for token in count], dtype=np.int32)
        times = np.array([n for count in counts for n in count.values()], dtype=np.float64)
        weights = (1 + np.log(times)) * self.idf[tokens]
        matrix = sp.csr_matrix((weights, tokens, ends), shape=(len(documents), self.vocabulary))
        lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
        return sp.diags(1 / np.where(lengths == 0, 1, lengths)) @ matrix


def tokens_of(name: str, samples: Samples, encoder: ServedEncoder) -> Tokens:
    """The token ids of samples, by form. name: shown while it takes its time."""
    return Tokens(
        {form: token_ids(f"{name} {form}", texts, encoder) for form, texts in samples.forms.items()}
    )


def token_ids(title: str, texts: Sequence[str], encoder: ServedEncoder) -> Ids:
    """The token ids that the estimator sees: those of all windows that the encoder may see."""
    cutter = TextWindows(encoder.folder, encoder.facts)
    bar = Progress(texts, desc=f"tokenize {title}", unit="text")
    return [content_tokens(cutter.cut([normalise(text)])[0]) for text in bar]


def vocabulary_size(encoder: ServedEncoder) -> int:
    """Tokens of the served tokenizer."""
    return read_file(encoder.folder, VOCABULARY).count(b"\n")


def fit_lexical(data: Tokens, target: NDArray[np.int64], vocabulary: int, folder: Path) -> EstimatorFacts:
    """Trains on all forms of every sample and writes `estimator.bin` to `folder`.

    target: classes 0 to k - 1, each at least once. Temperature, threshold and partner are open.
    """
    tfidf = Tfidf(data.as_sent, vocabulary)
    documents = sp.vstack([tfidf.rows(ids) for ids in data.forms.values()]).tocsr()
    model = LogisticRegression(C=_C, max_iter=300).fit(documents, np.tile(target, len(data.forms)))
    weights, bias = model.coef_.T, model.intercept_  # (V, k), (k,)
    if len(bias) == 1:  # of two classes scikit-learn keeps the difference only
        weights, bias = np.hstack([-weights / 2, weights / 2]), np.array([-bias[0] / 2, bias[0] / 2])
    scales = np.abs(weights).max(axis=0) / 32767
    scales[scales == 0] = 1.0
    content = tfidf.idf.astype("<f4").tobytes() + np.rint(weights / scales).astype("<i2").tobytes()
    (folder / ESTIMATOR).write_bytes(content)
    return EstimatorFacts(
        vocabulary=vocabulary,
        scales=[float(scale) for scale in scales],
        bias=[float(value) for value in bias],
        temperature=1.0,
        threshold=1.0,
        partner="",
        min_tokens=_MIN_TOKENS,
        unseen_idf=tfidf.unseen_idf,
    )
