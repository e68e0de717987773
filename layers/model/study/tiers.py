"""Two tiers between estimator and encoder: what they save, and what they cost.

    COLDFRAME_DATA=FOLDER PYTHONPATH=.:layers/shared/python .venv-build/bin/python -m layers.model.study.tiers

Texts that the estimator is unsure of meet a tier first, and the encoder where the tier is unsure, too.
*Static*: the estimator's guess with a head on the mean of token vectors, which are the encoder's own
embeddings of single tokens. *Leaving early*: the guess with a head on the encoder's embedding after some of
its layers. Both are combined by the geometric mean. A tier's settings take the least time on
validation rows within an accuracy lost there; the test split is read once with these. `guess alone` is the
estimator with a lower threshold, which needs no tier. Passes are measured; a tier's head, a second session
and the hidden states handed to it count as nothing, so that the figures flatter the tiers.
"""

import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from optimum.exporters.onnx import export
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from coldframe.model.bundle import EstimatorFacts, load_manifest
from coldframe.model.encoder import Encoder
from coldframe.model.estimator import Estimator
from coldframe.model.files import ENCODER, TOKENIZER, VOCABULARY
from coldframe.model.tokenizer import TextWindows, content_tokens, normalise
from layers.model.embeddings.embed import ServedEncoder, embed_windows, pool, served_encoder
from layers.model.embeddings.embedding_store import EmbeddedWindows
from layers.model.embeddings.matrices import to_matrix
from layers.model.encoder_build.export import export_fp32, load_original
from layers.model.encoder_build.graph import OUTPUT, LeanEncoder, LeanOnnxConfig, sum_over_tokens
from layers.model.encoder_build.quantize import Ranges, quantize
from layers.model.encoder_build.weights import find_weights
from layers.model.files.paths import CACHE, CALIBRATION, DEFAULT_ENCODER, EXAMPLE, MODELS, ROOT
from layers.model.report.figures.paired import pair
from layers.model.thresholds.estimator import cascade, choose_certainty
from layers.model.thresholds.estimator_outputs import Guesses, Ids, guesses
from layers.model.thresholds.lexical import Tokens, fit_lexical, tokens_of, vocabulary_size
from layers.model.thresholds.long_texts import Steps, choose_margin, steps_of, windows_read
from layers.model.training.head_trainers import new_head, scale_parameters
from layers.model.training.newsgroups import load_task
from layers.model.training_data.checks import check_table
from layers.model.training_data.samples import SEED, Rows, Samples, Task
from layers.model.training_data.table import Columns, Table, read_table
from layers.model.training_data.table_task import task_of

Answers = NDArray[np.floating]
"""Probabilities, (n, k)."""

DEPTHS = (3, 4, 6)  # layers after which there is an embedding; the last is the whole encoder
WEIGHTS = (0.3, 0.5, 0.7)  # of the static head beside the guess
LOSSES = (0.001, 0.003)  # accuracy that a tier may cost on validation
_BOUNDS = np.linspace(0.2, 0.99, 80)
CANDIDATES: dict[str, Sequence[float]] = {
    "guess alone": (0,),
    "static": WEIGHTS,
    "leaving early": DEPTHS[:-1],
}
_PASSES = 15
_TIMED = 500  # texts whose tokens and guess are timed
_LENGTHS = (8, 16, 32, 64, 128, 192, 256)
_STATIC_MS = 0.05
_TICKETS = ROOT / "layers" / "model" / "examples" / "tickets"


class Depths(LeanEncoder):
    """The encoder with its embeddings after DEPTHS layers, one behind the other."""

    def forward(self, input_ids: Tensor) -> dict[str, Tensor]:  # (B, T) -> (B, depths * d)
        x = self.norm(self.words(input_ids) + self.positions[: input_ids.shape[1]])
        embeddings = []
        for depth, layer in enumerate(self.layers, start=1):
            x = layer(x)
            if depth in DEPTHS:
                embeddings.append(nn.functional.normalize(sum_over_tokens(x), dim=-1))
        return {OUTPUT: torch.cat(embeddings, dim=-1)}


def build_depths(served: ServedEncoder) -> tuple[ServedEncoder, dict[int, Path]]:
    """The encoder with all embeddings, and the folders of encoders that end after DEPTHS layers."""
    weights = find_weights(None, CACHE / "weights")
    ranges = msgspec.json.decode(CALIBRATION.read_bytes(), type=Ranges)
    folders = {name: CACHE / "tiers" / name for name in ("all", *map(str, DEPTHS))}
    for name, folder in folders.items():
        if (folder / ENCODER).exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        fp32 = folder / "fp32.onnx"
        if name == "all":
            _export_all(weights, fp32)
        else:
            export_fp32(weights, fp32, int(name))
        quantize(fp32, ranges, folder / ENCODER)
    for name in (TOKENIZER, VOCABULARY):
        shutil.copy(served.folder / name, folders["all"])
    facts = msgspec.structs.replace(served.facts, dimension=served.facts.dimension * len(DEPTHS))
    manifest = msgspec.structs.replace(served.manifest, name="depths", facts=facts)
    manifest = msgspec.structs.replace(manifest, version=manifest.digest())
    return ServedEncoder(folders["all"], manifest), {depth: folders[str(depth)] for depth in DEPTHS}


def _export_all(weights: Path, target: Path) -> None:
    original = load_original(weights)
    config = LeanOnnxConfig(original.config, task="feature-extraction")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as `export_fp32`
        export(Depths(original, None, "mean").eval(), config, target, opset=20)


class Part(NamedTuple):
    """One side of a task, as tokens and as texts whose windows are embedded where somebody reads them."""

    samples: Samples
    ids: Tokens
    encoder: ServedEncoder

    def windows(self, form: str, rows: Rows, read: NDArray[np.bool_] | None = None) -> list[EmbeddedWindows]:
        """Windows of some samples after all DEPTHS. read: samples to embed; others get an empty text's."""
        texts = [self.samples.forms[form][row] for row in rows]
        inputs = (
            texts
            if read is None
            else [text if is_read else "" for text, is_read in zip(texts, read, strict=True)]
        )
        return embed_windows(form, inputs, self.encoder)


def part_of(name: str, samples: Samples, encoder: ServedEncoder) -> Part:
    """One side of a task."""
    return Part(samples, tokens_of(name, samples, encoder), encoder)


def at(depth: int, texts: Sequence[EmbeddedWindows]) -> list[EmbeddedWindows]:
    """Windows with their embeddings after `depth` layers."""
    return [text._replace(embeddings=_at(depth, text.embeddings)) for text in texts]


def _at(depth: int, embeddings: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.ascontiguousarray(np.split(embeddings, len(DEPTHS), axis=1)[DEPTHS.index(depth)])


class Static:
    """A logistic regression on the mean of token vectors, rare tokens counting for more."""

    def __init__(self, vectors: NDArray[np.float32], documents: Tokens, target: NDArray[np.int64]) -> None:
        """vectors: of each token (V, d). Weights: Arora et al. 2017. C and `log1p`: by a first look."""
        counts = np.bincount(list(chain.from_iterable(documents.as_sent)), minlength=len(vectors))
        self._vectors = vectors * (1e-3 / (1e-3 + counts / counts.sum()))[:, None]
        rows = np.concatenate([self._means(ids) for ids in documents.forms.values()])
        self._head = LogisticRegression(C=30.0, max_iter=300).fit(rows, np.tile(target, len(documents.forms)))

    def predict(self, documents: Ids) -> Answers:
        answers: Answers = self._head.predict_proba(self._means(documents))
        return answers

    def _means(self, documents: Ids) -> NDArray[np.floating]:
        ends = np.cumsum([0, *map(len, documents)])
        tokens = np.fromiter(chain.from_iterable(documents), dtype=np.int64)
        counts = sp.csr_matrix((np.ones(len(tokens)), tokens, ends), (len(documents), len(self._vectors)))
        counts.sum_duplicates()
        means = counts.log1p() @ self._vectors
        unit: NDArray[np.floating] = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        return unit


def token_vectors(encoder: ServedEncoder, vocabulary: int) -> NDArray[np.float32]:
    """The encoder's embedding of each token by itself, (V, d), without their mean."""
    begin, *_, end = TextWindows(encoder.folder, encoder.facts).cut(["a"])[0][0]
    rows, run = [[begin, token, end] for token in range(vocabulary)], Encoder(*encoder[:1], encoder.facts, 1)
    vectors = np.concatenate(
        [_at(6, to_matrix(run.encode(rows[start : start + 170]))) for start in range(0, vocabulary, 170)]
    )
    centred: NDArray[np.float32] = vectors - vectors.mean(axis=0)
    return centred


class Outputs(NamedTuple):
    """Outputs of all parts for samples in one form. early: after the first window, by depth."""

    estimates: Guesses
    static: Answers
    early: dict[int, Answers]
    steps: Steps
    tokens: list[NDArray[np.int32]]
    target: NDArray[np.int64]


def fit_and_see(
    train: Part,
    fit: Rows,
    part: Part,
    rows: Rows,
    vectors: NDArray[np.float32],
    unread: "Certainty | None" = None,
) -> dict[str, Outputs]:
    """Outputs for some rows of `part`, by form, of models trained on the rows `fit` of `train`.

    unread: with these, what the estimator is sure of is not embedded.
    """
    tokens, target = train.ids.take(fit), train.samples.target[fit]
    labels = int(train.samples.target.max()) + 1
    parameters = scale_parameters(len(train.samples.target), labels, SEED)["mlp"]
    static, heads, forms = Static(vectors, tokens, target), {}, list(train.samples.forms)
    windows = [train.windows(form, fit) for form in forms]
    for depth in DEPTHS:
        inputs = np.concatenate([pool(at(depth, texts)) for texts in windows])
        heads[depth] = new_head("mlp", parameters).fit(inputs, np.tile(target, len(forms)))
    outputs = {}
    with tempfile.TemporaryDirectory() as scratch:
        facts = fit_lexical(tokens, target, len(vectors), Path(scratch))
        for form, documents in part.ids.take(rows).forms.items():
            estimates = guesses(facts, documents, Path(scratch))
            read = None if unread is None else ~estimates.at(unread.temperature).sure(unread.threshold)
            texts = part.windows(form, rows, read)
            steps = {depth: steps_of(head.predict_proba, at(depth, texts)) for depth, head in heads.items()}
            early = {depth: steps[depth].after[0] for depth in DEPTHS[:-1]}
            lengths = [text.tokens for text in texts]
            outputs[form] = Outputs(
                estimates,
                static.predict(documents),
                early,
                steps[DEPTHS[-1]],
                lengths,
                part.samples.target[rows],
            )
    return outputs


class Costs(NamedTuple):
    """Milliseconds: of tokens and guess of a text; of a pass over one row of _LENGTHS, by depth."""

    guess_ms: float
    passes_ms: dict[int, list[float]]

    def of(self, lengths: NDArray[np.int32], depth: int) -> NDArray[np.floating]:
        """Milliseconds of passes over rows of these lengths."""
        return np.interp(lengths, _LENGTHS, self.passes_ms[depth])


class Certainty(NamedTuple):
    """Settings that serving takes from validation today."""

    temperature: float
    threshold: float
    margin: float


class Tier(NamedTuple):
    """A tier and its bound. part: weight of the static head, or layers before leaving; 0: the guess alone."""

    part: float
    bound: float


class Outcome(NamedTuple):
    """Each row, (n,): whether its answer is right, whether the encoder read it, and its time."""

    right: NDArray[np.bool_]
    encoded: NDArray[np.bool_]
    taken_ms: NDArray[np.floating]

    @property
    def texts_s(self) -> float:
        return float(1e3 / self.taken_ms.mean())


def serve(outputs: Outputs, certainty: Certainty, costs: Costs, tier: Tier | None = None) -> Outcome:
    """Answers of `auto`, with a tier or without, and their times."""
    estimates = outputs.estimates.at(certainty.temperature)
    read = windows_read(estimates, outputs.steps, certainty.margin)
    answers, encoded = (
        cascade(estimates, outputs.steps.at(read), certainty.threshold),
        ~estimates.sure(certainty.threshold),
    )
    rest_ms = np.array(
        [costs.of(tokens[:n], DEPTHS[-1]).sum() for tokens, n in zip(outputs.tokens, read, strict=True)]
    )
    taken_ms = np.full(len(read), costs.guess_ms)
    if tier:
        tier_answers, first_ms = _ask(outputs, estimates, tier, costs)
        leaves = encoded & estimates.known & (tier_answers.max(axis=1) > tier.bound)
        taken_ms += encoded * first_ms
        answers, rest_ms = (
            np.where(leaves[:, None], tier_answers, answers),
            rest_ms - first_ms * (tier.part > 1),
        )
        encoded = encoded & ~leaves
    return Outcome(answers.argmax(axis=1) == outputs.target, encoded, taken_ms + encoded * rest_ms)


def _ask(
    outputs: Outputs, estimates: Guesses, tier: Tier, costs: Costs
) -> tuple[Answers, NDArray[np.floating]]:
    none = np.zeros(len(outputs.target))
    if not tier.part:
        return estimates.probabilities, none
    if tier.part > 1:
        first = np.array([tokens[0] for tokens in outputs.tokens])
        return _mix(estimates.probabilities, outputs.early[int(tier.part)], 0.5), costs.of(
            first, int(tier.part)
        )
    return _mix(estimates.probabilities, outputs.static, tier.part), none + _STATIC_MS


def _mix(guess: Answers, other: Answers, weight: float) -> Answers:
    mixed = (guess + 1e-3) ** (1 - weight) * (other + 1e-3) ** weight
    means: Answers = mixed / mixed.sum(axis=1, keepdims=True)
    return means


def choose_tier(
    outputs: Outputs, certainty: Certainty, costs: Costs, parts: Sequence[float], loss: float
) -> Tier | None:
    """The tier that takes the least time on validation rows and costs at most `loss` there; None: no tier."""
    today = serve(outputs, certainty, costs)
    least = today.right.mean() - loss
    outcomes = {
        Tier(part, bound): serve(outputs, certainty, costs, Tier(part, bound))
        for part in parts
        for bound in _BOUNDS
    }
    times_ms = {
        tier: outcome.taken_ms.mean() for tier, outcome in outcomes.items() if outcome.right.mean() >= least
    }
    best = min(times_ms, key=times_ms.__getitem__, default=None)
    return best if best and times_ms[best] < today.taken_ms.mean() else None


def measure(
    served: ServedEncoder, folders: Mapping[int, Path], texts: Sequence[str], facts: EstimatorFacts
) -> Costs:
    """Costs on one thread of this machine: the median of passes in turns."""
    dice = np.random.default_rng(SEED)
    passes_ms: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
    runs = {depth: Encoder(folder, served.facts, threads=1).encode for depth, folder in folders.items()}
    for length in _LENGTHS:
        row = [dice.integers(1000, 29_000, length).tolist()]
        taken_ms = [[_time_ms(partial(run, row)) for run in runs.values()] for _ in range(_PASSES)]
        for depth, median_ms in zip(runs, np.median(taken_ms, axis=0), strict=True):
            passes_ms[depth].append(float(median_ms))
    cutter, estimator = TextWindows(served.folder, served.facts), Estimator(MODELS / EXAMPLE, facts)

    def guess(text: str) -> None:
        estimator.predict(content_tokens(cutter.cut([normalise(text)])[0]))

    guess_ms = [_time_ms(partial(guess, text)) for text in texts]
    return Costs(float(np.mean(guess_ms)), passes_ms)


def _time_ms(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e3


def rows_of(
    name: str,
    held_out: Mapping[str, Outputs],
    test: Mapping[str, Outputs],
    certainty: Certainty,
    costs: Costs,
) -> Iterator[str]:
    """Lines of the table, settings chosen on validation rows in the form that callers send."""
    default_form = next(iter(held_out.values()))
    for title, parts in CANDIDATES.items():
        for loss in LOSSES:
            tier = choose_tier(default_form, certainty, costs, parts, loss)
            for form, outputs in test.items():
                comparison = _compare(outputs, certainty, costs, tier)
                yield f"| {name}, {form} | {title} | {100 * loss:.1f} | {comparison} |"


def _compare(outputs: Outputs, certainty: Certainty, costs: Costs, tier: Tier | None) -> str:
    today = serve(outputs, certainty, costs)
    if tier is None:
        return f"none | {today.encoded.mean():.3f} | {today.right.mean():.4f} | 0 | 1.00"
    outcome = serve(outputs, certainty, costs, tier)
    points, rate = pair(outcome.right, today.right).difference, _rate(outcome.taken_ms, today.taken_ms)
    return (
        f"{tier.part:g}, {tier.bound:.2f} | {today.encoded.mean():.3f} → {outcome.encoded.mean():.3f}"
        f" | {outcome.right.mean():.4f}"
        f" | {100 * points.value:+.2f} ({100 * points.low:+.2f} to {100 * points.high:+.2f})"
        f" | {rate[0]:.2f} ({rate[1]:.2f} to {rate[2]:.2f})"
    )


def _rate(taken_ms: NDArray[np.floating], today_ms: NDArray[np.floating]) -> tuple[float, float, float]:
    """Texts per second against today's, with the 95 % interval over texts, by bootstrap."""
    resamples = np.random.default_rng(SEED).integers(len(taken_ms), size=(1000, len(taken_ms)))
    low, high = np.percentile(
        today_ms[resamples].mean(axis=1) / taken_ms[resamples].mean(axis=1), (2.5, 97.5)
    )
    return float(today_ms.mean() / taken_ms.mean()), float(low), float(high)


def tickets() -> Task:
    """The tickets with those of the second table, judged with the later ones."""
    columns = Columns("body", "queue", "customer")
    first, second, later = (
        read_table(_TICKETS / f"{name}.csv", columns, None)
        for name in ("tickets", "tickets-2", "tickets-test")
    )
    groups = [*(first.groups or ()), *(second.groups or ())]
    both = Table([*first.texts, *second.texts], [*first.labels, *second.labels], groups)
    return task_of(check_table(both), check_table(later, is_test=True), 0.2).task


def main() -> None:
    """Prints the table and the passes that it is computed from."""
    served = served_encoder(MODELS, DEFAULT_ENCODER)
    encoder, folders = build_depths(served)
    vectors = token_vectors(encoder, vocabulary_size(served))
    news = load_task()
    texts = next(iter(news.test.forms.values()))[:_TIMED]
    costs = measure(served, folders, texts, load_manifest(MODELS, EXAMPLE).estimator)
    print("| texts | tier | may cost, points | setting | to the encoder | accuracy | points | texts/s |")
    print("|---" * 8 + "|")
    for name, task in (("20 Newsgroups", news), ("tickets", tickets())):
        train, test = part_of("train", task.train, encoder), part_of("test", task.test, encoder)
        held_out = fit_and_see(train, task.fit, train, task.validation, vectors)
        default_form = next(iter(held_out.values()))
        temperature, threshold = choose_certainty(
            default_form.estimates, default_form.steps.whole, default_form.target
        )
        margin = choose_margin(
            default_form.estimates.at(temperature), default_form.steps, threshold, default_form.target
        )
        certainty = Certainty(temperature, threshold, margin)
        rows, test_rows = np.arange(len(task.train.target)), np.arange(len(task.test.target))
        outputs = fit_and_see(train, rows, test, test_rows, vectors, certainty)
        print("\n".join(rows_of(name, held_out, outputs, certainty, costs)))
    print(f"\n{costs}")


if __name__ == "__main__":
    main()
