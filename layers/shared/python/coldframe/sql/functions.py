"""SQL functions over columns of plain values, for all engines and DuckDB."""

from collections.abc import Sequence
from typing import TypeAlias

from coldframe.columns import Answer, embed_column, predict_column, refuse_rushed
from coldframe.errors import Invalid
from coldframe.model.files import AUTO
from coldframe.pipeline.predictor import Predictor
from coldframe.sql.rejecting import EXACT, are_topic
from coldframe.timing import NO_DEADLINE, Deadline
from coldframe.vectors import to_floats

FUNCTIONS = {"topic": 1, "topic_score": 2, "is_topic": 2, "embedding": 1}
"""Number of arguments of each function: a text, and for two of them a label."""

Value: TypeAlias = str | float | bool | list[float] | None
Column: TypeAlias = Sequence[str | None]

_SHOWN_LABELS = 30


class SqlFunctions:
    """The functions of one model. NULL in, NULL out; one value per row, in order.

    Safe for threads, as `Predictor` is. head: the head that answers; None: the model's default.
    rejecting_odds: see `are_topic`.
    """

    def __init__(self, predictor: Predictor, head: str | None = None, rejecting_odds: float = EXACT) -> None:
        """Raises Invalid for a head that the model lacks."""
        self._predictor, self._rejecting_odds = predictor, rejecting_odds
        self._head = predictor.manifest.default_head if head is None else head
        predictor.check_heads([self._head])
        labels = predictor.manifest.labels
        self._positions = {label: position for position, label in enumerate(labels)}

    def call(self, function: str, columns: Sequence[Column], deadline: Deadline) -> Sequence[Value]:
        """The values of one of FUNCTIONS. columns: its arguments.

        Raises Invalid for an unknown label, OutOfTime, and a BundleError.
        """
        if function == "topic":
            return self.topic(columns[0], deadline)
        if function == "topic_score":
            return self.topic_score(columns[0], columns[1], deadline)
        if function == "is_topic":
            return self.is_topic(columns[0], columns[1], deadline)
        return self.embedding(columns[0], deadline)

    def topic(self, texts: Column, deadline: Deadline = NO_DEADLINE) -> list[str | None]:
        """The label of each text; None also where the head abstains."""
        return [None if answer is None else answer.label for answer in self._answers(texts, deadline)]

    def topic_score(
        self, texts: Column, labels: Column, deadline: Deadline = NO_DEADLINE
    ) -> list[float | None]:
        """The probability of a label for each text."""
        self._check(labels)
        answers = self._answers(_beside(texts, labels), deadline)
        return [
            None if answer is None or label is None else answer.scores[self._positions[label]]
            for answer, label in zip(answers, labels, strict=True)
        ]

    def is_topic(self, texts: Column, labels: Column, deadline: Deadline = NO_DEADLINE) -> list[bool | None]:
        """Whether the label of each text is this one; false where the head abstains."""
        self._check(labels)
        results: list[bool | None] = [None] * len(texts)
        for label in dict.fromkeys(labels):  # nearly always one label
            if label is not None:
                rows = [row for row, other in enumerate(labels) if other == label]
                values = self._are(label, [texts[row] for row in rows], deadline)
                for row, value in zip(rows, values, strict=True):
                    results[row] = value
        return results

    def embedding(self, texts: Column, deadline: Deadline = NO_DEADLINE) -> list[list[float] | None]:
        """The embedding of each text, (d,)."""
        vectors = embed_column(self._predictor, texts, deadline)
        return [None if vector is None else to_floats(vector) for vector in vectors]

    def _answers(self, texts: Column, deadline: Deadline) -> list[Answer | None]:
        answers = predict_column(self._predictor, texts, [self._head], deadline=deadline)[self._head]
        refuse_rushed(answers)
        return answers

    def _are(self, label: str, texts: Column, deadline: Deadline) -> list[bool | None]:
        if self._head == AUTO and self._rejecting_odds < EXACT:
            return are_topic(self._predictor, texts, label, self._rejecting_odds, deadline)
        return [
            None if answer is None else answer.label == label for answer in self._answers(texts, deadline)
        ]

    def _check(self, labels: Column) -> None:
        for label in dict.fromkeys(labels):
            if label is not None and label not in self._positions:
                names = ", ".join([*self._positions][:_SHOWN_LABELS])
                more = ", …" if len(self._positions) > _SHOWN_LABELS else ""
                raise Invalid(f"Found a label that this model does not have. Use one of: {names}{more}.")


def _beside(texts: Column, labels: Column) -> list[str | None]:
    """The texts, with None where the row has no label."""
    return [None if label is None else text for text, label in zip(texts, labels, strict=True)]
