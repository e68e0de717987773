"""Words that decided an answer, imported only where a request asks for them.

The estimator is linear in its tokens: its explanation is exact. Other answers are computed again without each
span of words, all spans of a text in one batch. Source: occlusion, Zeiler & Fergus 2014, and erasure,
Li, Monroe & Jurafsky 2016. An explanation is not cached: offsets belong to the caller's own spelling.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from coldframe.contract import MAX_EXPLAINED_WORDS, MAX_SPANS, SCORE_DIGITS
from coldframe.errors import BundleError, OutOfTime, RequestError
from coldframe.model.estimator import UNTEMPERED, Guess, mean_with, temper
from coldframe.model.files import AUTO, ENSEMBLE
from coldframe.model.tokenizer import PrefixedWindow, Window, content_tokens, normalise
from coldframe.pipeline.predictor import Predictor
from coldframe.pipeline.words import Span, WordsUnknown, spans_of, words_of
from coldframe.schemas import DecidingWord, Explanation, HeadAnswer, TextAnswer, Unexplained, Usage
from coldframe.timing import Deadline
from coldframe.vectors import Vector, to_floats, to_vector

T = TypeVar("T")

_LEAST = 1e-9  # probability: a label that a head finds impossible has finite odds

Reading = tuple[Sequence[Window], Sequence[Vector]]
"""Windows of a text, as many as were read, and their embeddings."""


def explain_answers(
    predictor: Predictor,
    texts: Sequence[str],
    answers: Iterable[TextAnswer],
    usage: Usage,
    deadline: Deadline,
) -> None:
    """Adds an explanation to each answer, or why it has none; never raises for a lack of time.

    usage: the encoder's work for explanations is added to it.
    """
    first: dict[str, TextAnswer] = {}
    for text, answer in zip(texts, answers, strict=True):
        if text not in first:
            first[text] = answer
            _explain_text(predictor, text, answer, usage, deadline)
        for head, head_answer in answer.heads.items():
            same = first[text].heads[head]
            head_answer.explanation, head_answer.unexplained = same.explanation, same.unexplained


def _explain_text(
    predictor: Predictor, text: str, answer: TextAnswer, usage: Usage, deadline: Deadline
) -> None:
    exact = {head: head_answer for head, head_answer in answer.heads.items() if head_answer.by == "estimator"}
    others = {head: head_answer for head, head_answer in answer.heads.items() if head not in exact}
    for cut in (head for head, head_answer in answer.heads.items() if head_answer.rushed and head in others):
        others[cut].explanation, others.pop(cut).unexplained = None, "time"

    def explain_exactly() -> None:
        read = Read(predictor, text, deadline)
        for head_answer in exact.values():
            head_answer.explanation = read.exactly(_best(predictor, head_answer))

    def explain_others() -> None:
        read = Read(predictor, text, deadline)
        labels = {head: _best(predictor, head_answer) for head, head_answer in others.items()}
        for head, explanation in read.by_leaving_out(labels, usage).items():
            others[head].explanation = explanation

    if exact:
        _try(explain_exactly, exact)
    if others:
        _try(explain_others, others)


def _try(explain: Callable[[], None], answers: Mapping[str, HeadAnswer]) -> None:
    """Explains answers, or says why there is no explanation."""
    reason: Unexplained
    try:
        return explain()
    except RequestError:  # out of time, or a server with too many requests
        reason = "time"
    except WordsUnknown:
        reason = "words"
    except BundleError:
        reason = "failed"
    for head_answer in answers.values():
        head_answer.explanation, head_answer.unexplained = None, reason


def _best(predictor: Predictor, answer: HeadAnswer) -> int:
    """The label to explain: the most probable one, also where the answer abstains."""
    return predictor.manifest.labels.index(answer.top[0].label)


class Read:
    """A text as the model reads it, for one request."""

    def __init__(self, predictor: Predictor, text: str, deadline: Deadline) -> None:
        """Raises WordsUnknown, and the errors of `Deadline.check`."""
        self._predictor = predictor
        self._deadline = deadline
        (self._windows,) = predictor.tokenizer.cut([normalise(text)], deadline)
        self._content = content_tokens(self._windows)
        self._words = words_of(text, self._content, predictor.tokenizer, deadline)

    def exactly(self, label: int) -> Explanation:
        """Each word's part in an answer by the estimator alone."""
        facts, estimator = self._predictor.manifest.estimator, self._predictor.estimator
        alone, _ = facts.answer_temperatures or UNTEMPERED
        evidence = estimator.token_evidence(self._content)
        counts = Counter(self._content)
        parts = list(zip(*evidence.values(), strict=True)) or [()] * len(facts.bias)
        scale = 1 / (facts.temperature * alone)
        logits = [(math.fsum(part) + bias) * scale for part, bias in zip(parts, facts.bias, strict=True)]
        others, shares = _others(logits, label)
        weights = {
            token: scale * (row[label] - math.fsum(map(float.__mul__, shares, row))) / counts[token]
            for token, row in evidence.items()
        }
        span_weights = [
            (word, math.fsum(weights[token] for token in self._content[word.first : word.last]))
            for word in self._words
        ]
        words = _deciding(span_weights)
        rest = logits[label] - others - math.fsum(word.weight for word in words)
        return Explanation("exact", words, round(rest, SCORE_DIGITS))

    def by_leaving_out(self, labels: Mapping[str, int], usage: Usage) -> dict[str, Explanation]:
        """By head: how much less its label's log-odds are without each span of words.

        labels: the best label by head. Raises OutOfTime, and the encoder's errors.
        """
        vectors = self._encode(self._windows, usage)
        counts = {head: self._windows_read(head, vectors) for head in labels}
        most = max(counts.values())
        starts = self._starts()
        spans = spans_of([word for word in self._words if word.first < starts[most]], MAX_SPANS)
        shorter = [self._without(span, most, starts) for span in spans]
        rows = self._encode([row for one in shorter for row in one.values()], usage)
        new_vectors = iter(rows)
        variants = [{number: next(new_vectors) for number in one} for one in shorter]
        explanations = {}
        for head, label in labels.items():
            count = counts[head]
            whole = self._windows[:count], vectors[:count]
            readings = [whole] + [
                (_replaced(whole[0], one), _replaced(whole[1], new))
                for one, new in zip(shorter, variants, strict=True)
            ]
            odds, *others = self._log_odds(head, label, readings, spans)
            span_weights = [(span, odds - other) for span, other in zip(spans, others, strict=True)]
            explanations[head] = Explanation("left-out", _deciding(span_weights))
        return explanations

    def _encode(self, rows: Sequence[Window], usage: Usage) -> list[Vector]:
        """Embeddings of rows, each a text of its own to the encoder. Raises OutOfTime."""
        encoder = self._predictor.model.encoder
        if encoder.expected_s(sum(map(len, rows))) > self._deadline.remaining_s():
            raise OutOfTime("There is too little time to explain the answer. Raise `budget_ms`.")
        done = encoder.embed([[row] for row in rows], self._deadline)
        usage.tokens += done.tokens
        usage.padded_tokens += done.tokens
        usage.windows += done.windows
        usage.batches += done.batches
        vectors = [vector for vector in done.vectors if vector is not None]
        if len(vectors) < len(rows):
            raise OutOfTime("There is too little time to explain the answer. Raise `budget_ms`.")
        return vectors

    def _windows_read(self, head: str, vectors: Sequence[Vector]) -> int:
        """How many windows the answer rests on: `auto` stops where it is settled."""
        facts, windows = self._predictor.manifest.estimator, self._windows
        if head != AUTO or facts.settled_margin >= 1:
            return len(windows)
        guess = self._predictor.estimator.guess(self._content, self._deadline)
        for count in range(1, len(windows)):
            (partner,) = self._of_head(facts.partner, [(windows[:count], vectors[:count])])
            if self._predictor.estimator.is_settled(mean_with(guess, partner)):
                return count
        return len(windows)

    def _starts(self) -> list[int]:
        """Where each window's content starts among the tokens of the text, and where the last one ends."""
        starts = [0]
        for window in self._windows:
            starts.append(starts[-1] + len(content_tokens([window])))
        return starts

    def _without(self, span: Span, most: int, starts: Sequence[int]) -> dict[int, Window]:
        """The windows that a span is in, without it, by their number. most: windows that are read."""
        shorter: dict[int, Window] = {}
        for number, window in enumerate(self._windows[:most]):
            first, last = max(span.first, starts[number]), min(span.last, starts[number + 1])
            if first < last:
                shift = (window.content_start if isinstance(window, PrefixedWindow) else 1) - starts[number]
                shorter[number] = window[: first + shift] + window[last + shift :]
        return shorter

    def _log_odds(
        self, head: str, label: int, readings: Sequence[Reading], spans: Sequence[Span]
    ) -> list[float]:
        """Log-odds of a label for the text, and for the text without each span."""
        if head == ENSEMBLE:
            rows = self._of_members(readings, spans)
        elif head == AUTO:
            rows = self._of_both(readings, spans)
        else:
            rows = self._of_head(head, readings)
        return [_log_odds(row, label) for row in rows]

    def _of_head(self, head: str, readings: Sequence[Reading]) -> list[list[float]]:
        """Probabilities by one head, for each reading."""
        rows = self._predictor.model.heads.probabilities(self._pooled(readings), head)
        return [to_floats(row) for row in rows]

    def _of_both(self, readings: Sequence[Reading], spans: Sequence[Span]) -> list[list[float]]:
        """Probabilities of `auto` by the estimator and its partner, for the text and without each span."""
        guesses, partner = self._guesses(spans), self._predictor.manifest.estimator.partner
        return [
            temper(mean_with(guess, others), guess.temperatures[1])
            for guess, others in zip(guesses, self._of_head(partner, readings), strict=True)
        ]

    def _of_members(self, readings: Sequence[Reading], spans: Sequence[Span]) -> list[list[float]]:
        """Probabilities of `ensemble`, for the text and without each span."""
        from coldframe.pipeline.ensemble import mean_answers

        facts = self._predictor.manifest.ensemble
        weights = facts.weights if facts else {}
        rows = {
            name: self._of_auto(readings, spans) if name == AUTO else self._of_head(name, readings)
            for name in weights
        }
        answers = {name: [to_vector([*row, 0.0]) for row in part] for name, part in rows.items()}
        return [to_floats(answer)[:-1] for answer in mean_answers(answers, weights)]

    def _of_auto(self, readings: Sequence[Reading], spans: Sequence[Span]) -> list[list[float]]:
        """Probabilities of `auto` as a member: by the parts and windows that its answer rests on."""
        guesses = self._guesses(spans)
        if guesses[0].sure:
            return [temper(guess.probabilities, guess.temperatures[0]) for guess in guesses]
        count = self._windows_read(AUTO, readings[0][1])
        return self._of_both([(windows[:count], vectors[:count]) for windows, vectors in readings], spans)

    def _guesses(self, spans: Sequence[Span]) -> list[Guess]:
        """The estimator's guess for the text, and for the text without each span."""
        contents = [self._content] + [
            self._content[: span.first] + self._content[span.last :] for span in spans
        ]
        return [self._predictor.estimator.guess(content, self._deadline) for content in contents]

    def _pooled(self, readings: Sequence[Reading]) -> list[Vector]:
        encoder = self._predictor.model.encoder
        return encoder.pool([windows for windows, _ in readings], [vectors for _, vectors in readings])


def _deciding(span_weights: Iterable[tuple[Span, float]]) -> list[DecidingWord]:
    """The words that speak most for a label, largest weight first."""
    words = [DecidingWord(span.start, span.end, round(weight, SCORE_DIGITS)) for span, weight in span_weights]
    words.sort(key=lambda word: (-word.weight, word.start))
    return [word for word in words[:MAX_EXPLAINED_WORDS] if word.weight > 0]


def _others(logits: Sequence[float], label: int) -> tuple[float, list[float]]:
    """The logit of all labels but one together, and the share that each of them has in it."""
    highest = max(logit for i, logit in enumerate(logits) if i != label)
    powers = [0.0 if i == label else math.exp(logit - highest) for i, logit in enumerate(logits)]
    total = math.fsum(powers)
    return highest + math.log(total), [power / total for power in powers]


def _log_odds(probabilities: Sequence[float], label: int) -> float:
    others = math.fsum(value for i, value in enumerate(probabilities) if i != label)
    return math.log(max(probabilities[label], _LEAST)) - math.log(max(others, _LEAST))


def _replaced(values: Sequence[T], changes: Mapping[int, T]) -> list[T]:
    return [changes.get(i, value) for i, value in enumerate(values)]
