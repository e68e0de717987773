"""The lexical estimator, and when it may answer alone."""

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from tokenizers import Tokenizer
from tqdm import tqdm

from coldframe.model.bundle import ESTIMATOR, TOKENIZER, EstimatorFacts
from coldframe.model.estimator import Estimator
from coldframe.model.heads import load_head
from coldframe.model.tokenizer import TextWindows, content_tokens
from coldframe.text import normalise
from layers.model.build import ENCODER_FACTS, read_metrics
from layers.model.data import Split, load_split, threads_of
from layers.model.head_trainers import CHOSEN, build_estimator
from layers.model.paths import CACHE, HEADS
from layers.model.train_heads import Embedded, both_kinds, embed_split, held_out_split, write_json

_C = 5.0
_MAX_LOSS = 0.001  # accuracy that answering alone may cost on validation

Ids = list[list[int]]


class Lexical(msgspec.Struct, frozen=True):
    """One split as token ids without [CLS] and [SEP]."""

    full: Ids
    stripped: Ids


class Tfidf:
    """Documents × tokens, weighed as the served estimator does; document frequencies of stripped texts."""

    def __init__(self, documents: Ids, vocabulary: int) -> None:
        self.vocabulary = vocabulary
        frequency = np.bincount([t for ids in documents for t in set(ids)], minlength=vocabulary)
        self.idf = (np.log((1 + len(documents)) / (1 + frequency)) + 1).astype(np.float32)

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


def main() -> None:
    """Writes `heads/estimator.bin` and `heads/estimator.json`; prints what `auto` reaches."""
    train, test = load_split("train"), load_split("test")
    folder = CACHE / "encoder"
    metrics = read_metrics()
    graph, best = metrics.encoder_graph, metrics.best_head
    train_set, test_set = embed_split("train", train, folder, graph), embed_split("test", test, folder, graph)
    train_ids, test_ids = tokens_of("train", train), tokens_of("test", test)
    rows, held_out = held_out_split(threads_of(train.full))
    facts = fit(take(train_ids, rows), train.target[rows])
    facts = calibrate(facts, take(train_ids, held_out), train.target[held_out])
    partner = build_estimator(best, CHOSEN[best]).fit(*both_kinds(train_set, rows))
    threshold = choose_threshold(
        guesses(facts, take(train_ids, held_out).stripped),
        partner.predict_proba(train_set.stripped[held_out]),
        train.target[held_out],
    )
    final = fit(train_ids, train.target)
    facts = msgspec.structs.replace(final, temperature=facts.temperature, threshold=threshold)
    write_json(HEADS / "estimator.json", judge(facts, test_ids, test_set))


def tokens_of(name: str, split: Split) -> Lexical:
    """The token ids that the estimator sees: those of all windows that the encoder may see."""
    cutter = TextWindows(CACHE / "encoder", ENCODER_FACTS)

    def ids(texts: Sequence[str], kind: str) -> Ids:
        windows = (cutter.cut([normalise(text)])[0] for text in tqdm(texts, desc=f"tokenize {name}-{kind}"))
        return [content_tokens(text) for text in windows]

    return Lexical(ids(split.full, "full"), ids(split.stripped, "stripped"))


def take(data: Lexical, rows: NDArray[np.int64]) -> Lexical:
    """Some of the documents."""
    return Lexical([data.full[i] for i in rows], [data.stripped[i] for i in rows])


def fit(data: Lexical, target: NDArray[np.int64]) -> EstimatorFacts:
    """Trains on both kinds of every document and writes the estimator; temperature and threshold are open."""
    vocabulary = vocabulary_size()
    tfidf = Tfidf(data.stripped, vocabulary)
    documents = sp.vstack([tfidf.rows(data.stripped), tfidf.rows(data.full)]).tocsr()
    model = LogisticRegression(C=_C, max_iter=300).fit(documents, np.tile(target, 2))
    weights = model.coef_.T  # (V, k)
    scales = np.abs(weights).max(axis=0) / 32767
    content = tfidf.idf.astype("<f4").tobytes() + np.rint(weights / scales).astype("<i2").tobytes()
    (HEADS / ESTIMATOR).write_bytes(content)
    return EstimatorFacts(
        vocabulary=vocabulary,
        scales=[float(scale) for scale in scales],
        bias=[float(bias) for bias in model.intercept_],
        temperature=1.0,
        threshold=1.0,
        partner=read_metrics().best_head,
    )


def calibrate(facts: EstimatorFacts, data: Lexical, target: NDArray[np.int64]) -> EstimatorFacts:
    """With the temperature that makes the held-out labels most likely: Guo et al. 2017."""

    def surprise(temperature: float) -> float:
        found = guesses(msgspec.structs.replace(facts, temperature=temperature), data.stripped)
        return float(-np.log(found[np.arange(len(target)), target]).mean())

    grid = [round(0.4 + 0.05 * step, 2) for step in range(23)]
    best = min(tqdm(grid, desc="temperature"), key=surprise)
    return msgspec.structs.replace(facts, temperature=best)


def guesses(facts: EstimatorFacts, documents: Ids) -> NDArray[np.float64]:
    """What the served estimator says of each document: (documents, k)."""
    estimator = Estimator(HEADS, facts)
    return np.array([estimator.predict(ids) for ids in documents])


def cascade(
    guessed: NDArray[np.float64], partner: NDArray[np.floating], threshold: float
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """What `auto` answers, for all rows at once, and which of them the estimator answers alone."""
    sure = guessed.max(axis=1) > threshold
    return np.where(sure[:, None], guessed, (guessed + partner) / 2), sure


def choose_threshold(
    guessed: NDArray[np.float64], partner: NDArray[np.floating], target: NDArray[np.int64]
) -> float:
    """The lowest threshold at which answering alone costs next to no accuracy."""
    both, _ = cascade(guessed, partner, threshold=1.0)
    alone = float((both.argmax(axis=1) == target).mean())
    for threshold in np.arange(0.30, 1.0, 0.01):
        answers, sure = cascade(guessed, partner, threshold)
        reached = float((answers.argmax(axis=1) == target).mean())
        if reached >= alone - _MAX_LOSS:
            print(
                f"threshold {threshold:.2f}: {reached:.4f}, {sure.mean():.1%} alone; both always: {alone:.4f}"
            )
            return round(float(threshold), 2)
    return 1.0


def judge(facts: EstimatorFacts, ids: Lexical, data: Embedded) -> EstimatorFacts:
    """With its accuracies on the test split: alone, and as `auto` with the served head."""
    head = load_head(HEADS.parent, facts.partner)
    found: dict[str, float] = {}
    for kind, documents, embeddings in (
        ("stripped", ids.stripped, data.stripped),
        ("full", ids.full, data.full),
    ):
        guessed = guesses(facts, documents)
        answers, sure = cascade(guessed, head.predict(embeddings), facts.threshold)
        found[f"accuracy_{kind}"] = round(float((guessed.argmax(axis=1) == data.target).mean()), 4)
        found[f"auto_accuracy_{kind}"] = round(float((answers.argmax(axis=1) == data.target).mean()), 4)
        found[f"auto_alone_{kind}"] = round(float(sure.mean()), 4)
    print(found)
    return msgspec.structs.replace(facts, **found)


def vocabulary_size() -> int:
    """Tokens of the served tokenizer."""
    return int(Tokenizer.from_file(str(CACHE / "encoder" / TOKENIZER)).get_vocab_size())


if __name__ == "__main__":
    main()
