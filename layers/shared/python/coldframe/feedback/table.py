"""Right labels in a DynamoDB table: an item for each labelled answer, below the day of the answer.

Every write is conditional and changes one item, so a repeated write alters nothing. A sealed text is part of
its label's item: both expire together, and one deletion removes both.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import Struct

from coldframe.errors import ColdframeError
from coldframe.feedback.ids import Answer
from coldframe.feedback.texts import SealedText
from coldframe.monitoring.reading import Label
from coldframe.monitoring.sketch import Sketch
from coldframe.timing import Clock

_REFUSED = "ConditionalCheckFailedException"
_NAMES = {"#day": "day", "#label": "label", "#expires_at_s": "expires_at_s"}
_IS_NEW_OR_EQUAL = "attribute_not_exists(#day) OR #label = :label OR #expires_at_s <= :now"
_IS_NEW_OR_WITHOUT_TEXT = (
    "attribute_not_exists(#day) OR #expires_at_s <= :now"
    " OR (#label = :label AND attribute_not_exists(#sealed_text))"
)
_OF_LABELS = ("model", "head", "probability", "right", "drawn", "answered_s", "expires_at_s")
"""Attributes that the monitor reads: no text is among them."""


class StoredText(Struct, frozen=True):
    """A text with its right label, as the table keeps it.

    model: name of the model. answered_s: since 1970. is_random: whether chance chose the answer.
    """

    sealed: SealedText
    nonce: bytes
    label: str
    model: str
    version: str
    head: str
    is_random: bool
    answered_s: int


class TableFails(ColdframeError):
    """The table failed, and may work later. The text names the failure alone."""


class FeedbackTable:
    """The table. Safe for threads, as boto3's clients are.

    client: boto3's, created at its first use. now: seconds since 1970.
    """

    def __init__(self, table: str, client: Callable[[], Any], now: Clock) -> None:
        self._table = table
        self._client = client
        self._now = now

    def add(self, answer: Answer, label: str, expires_s: float, sealed: SealedText | None = None) -> bool:
        """Keeps the right label, and its text. False, without a change, where another label is kept.

        A label that comes again without its text leaves a stored text alone. Raises TableFails.
        """
        item = _key(answer) | {
            "name": {"S": answer.name},
            "model": {"S": answer.model},
            "head": {"S": answer.head},
            "label": {"S": label},
            "probability": {"N": str(answer.probability)},
            "right": {"BOOL": label == answer.label},
            "drawn": {"S": "random" if answer.is_drawn else "complaint"},
            "answered_s": {"N": str(answer.moment_s)},
            "expires_at_s": {"N": str(int(expires_s))},
        }
        condition, names = _IS_NEW_OR_WITHOUT_TEXT, _NAMES | {"#sealed_text": "sealed_text"}
        if sealed is not None:
            item |= {"sealed_text": {"B": sealed.content}, "sealed_for": {"S": sealed.key}}
            condition, names = _IS_NEW_OR_EQUAL, _NAMES
        current = self._put(
            Item=item,
            ConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={":label": {"S": label}, ":now": {"N": str(int(self._now()))}},
        )
        return current is None or current["label"]["S"] == label

    def remove(self, answer: Answer) -> None:
        """Forgets the label of an answer and its text, if there is one. Raises TableFails."""
        self._call("delete_item", Key=_key(answer))

    def labels(self, since_s: float, until_s: float) -> Iterator[Label]:
        """Labels of answers given from `since_s` until before `until_s`, day by day. Raises TableFails.

        Moments of answers are whole seconds. Expired labels are left out, even while their items exist.
        """
        day = datetime.fromtimestamp(since_s, UTC).date()
        while day <= datetime.fromtimestamp(until_s, UTC).date():
            for item in self._items(day.isoformat()):
                is_alive = int(item["expires_at_s"]["N"]) > self._now()
                if is_alive and int(since_s) <= int(item["answered_s"]["N"]) < until_s:
                    yield _label_of(item)
            day += timedelta(days=1)

    def labels_for(self, sketches: Sequence[Sketch]) -> Iterator[Label]:
        """Labels of answers from the time of the sketches; none without a sketch. Raises TableFails."""
        if sketches:
            since_s = min(sketch.start_s for sketch in sketches)
            yield from self.labels(since_s, max(sketch.end_s for sketch in sketches) + 1)

    def texts(self) -> Iterator[StoredText]:
        """All texts with their labels, in no order; expired ones are left out. Raises TableFails."""
        for item in self._pages("scan", FilterExpression="attribute_exists(sealed_text)"):
            if int(item["expires_at_s"]["N"]) > self._now():
                yield _text_of(item)

    def _items(self, day: str) -> Iterator[dict[str, Any]]:
        return self._pages(
            "query",
            KeyConditionExpression="#day = :day",
            ExpressionAttributeNames={"#day": "day"} | {f"#{name}": name for name in _OF_LABELS},
            ExpressionAttributeValues={":day": {"S": day}},
            ProjectionExpression=", ".join(f"#{name}" for name in _OF_LABELS),
        )

    def _pages(self, operation: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        start: dict[str, Any] = {}
        while True:
            answer = self._call(operation, ConsistentRead=True, **arguments, **start)
            yield from answer["Items"]
            if not (last := answer.get("LastEvaluatedKey")):
                return
            start = {"ExclusiveStartKey": last}

    def _put(self, **arguments: Any) -> dict[str, Any] | None:
        """None once an item is written; else, where the condition does not hold, the item that is kept."""
        from botocore.exceptions import ClientError

        try:
            self._call("put_item", ReturnValuesOnConditionCheckFailure="ALL_OLD", **arguments)
        except TableFails as exc:
            cause = exc.__cause__
            if isinstance(cause, ClientError) and cause.response["Error"].get("Code") == _REFUSED:
                current: dict[str, Any] = cause.response["Item"]
                return current
            raise
        return None

    def _call(self, operation: str, **arguments: Any) -> Any:
        """boto3's answer. Raises TableFails, also where a condition does not hold."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return getattr(self._client(), operation)(TableName=self._table, **arguments)
        except ClientError as exc:
            raise TableFails(f"DynamoDB: {exc.response.get('Error', {}).get('Code', 'unknown')}") from exc
        except BotoCoreError as exc:
            raise TableFails(f"DynamoDB: {type(exc).__name__}") from exc


def _key(answer: Answer) -> dict[str, Any]:
    day = datetime.fromtimestamp(answer.moment_s, UTC).date().isoformat()
    return {"day": {"S": day}, "nonce": {"S": answer.nonce.hex()}}


def _label_of(item: dict[str, Any]) -> Label:
    return Label(
        item["model"]["S"],
        item["head"]["S"],
        float(item["probability"]["N"]),
        item["right"]["BOOL"],
        item["drawn"]["S"],
    )


def _text_of(item: dict[str, Any]) -> StoredText:
    return StoredText(
        SealedText(item["sealed_text"]["B"], item["sealed_for"]["S"]),
        bytes.fromhex(item["nonce"]["S"]),
        item["label"]["S"],
        item["name"]["S"],
        item["model"]["S"],
        item["head"]["S"],
        item["drawn"]["S"] == "random",
        int(item["answered_s"]["N"]),
    )
