"""Right labels in a DynamoDB table: an item for each labelled answer, below the day of the answer.

Every write is conditional and changes one item, so a repeated write alters nothing.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from coldframe.errors import ColdframeError
from coldframe.feedback.ids import Answer
from coldframe.monitoring.reading import Label
from coldframe.timing import Clock

_REFUSED = "ConditionalCheckFailedException"
_NAMES = {"#day": "day", "#label": "label", "#expires_at_s": "expires_at_s"}
_IS_NEW_OR_EQUAL = "attribute_not_exists(#day) OR #label = :label OR #expires_at_s <= :now"


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

    def add(self, answer: Answer, label: str, expires_s: float) -> bool:
        """Keeps the right label. False, without a change, where another label is kept. Raises TableFails."""
        values = {":label": {"S": label}, ":now": {"N": str(int(self._now()))}}
        item = _key(answer) | {
            "model": {"S": answer.model},
            "head": {"S": answer.head},
            "label": {"S": label},
            "probability": {"N": str(answer.probability)},
            "right": {"BOOL": label == answer.label},
            "drawn": {"S": "random" if answer.is_drawn else "complaint"},
            "answered_s": {"N": str(answer.moment_s)},
            "expires_at_s": {"N": str(int(expires_s))},
        }
        arguments = {
            "Item": item,
            "ConditionExpression": _IS_NEW_OR_EQUAL,
            "ExpressionAttributeNames": _NAMES,
            "ExpressionAttributeValues": values,
        }
        return self._call("put_item", **arguments) is not None

    def remove(self, answer: Answer) -> None:
        """Forgets the label of an answer, if there is one. Raises TableFails."""
        self._call("delete_item", Key=_key(answer))

    def labels(self, since_s: float, until_s: float) -> Iterator[Label]:
        """Labels of answers given from `since_s` until before `until_s`, day by day. Raises TableFails.

        Expired labels are left out, even while their items exist.
        """
        day = datetime.fromtimestamp(since_s, UTC).date()
        while day <= datetime.fromtimestamp(until_s, UTC).date():
            for item in self._items(day.isoformat()):
                is_alive = int(item["expires_at_s"]["N"]) > self._now()
                if is_alive and since_s <= int(item["answered_s"]["N"]) < until_s:
                    yield _label_of(item)
            day += timedelta(days=1)

    def _items(self, day: str) -> Iterator[dict[str, Any]]:
        start: dict[str, Any] = {}
        while True:
            answer = self._call(
                "query",
                KeyConditionExpression="#day = :day",
                ExpressionAttributeNames={"#day": "day"},
                ExpressionAttributeValues={":day": {"S": day}},
                ConsistentRead=True,
                **start,
            )
            assert answer is not None  # noqa: S101 - a query has no condition that may be refused
            yield from answer["Items"]
            if not (last := answer.get("LastEvaluatedKey")):
                return
            start = {"ExclusiveStartKey": last}

    def _call(self, operation: str, **arguments: Any) -> Any | None:
        """boto3's answer; None where the condition does not hold."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return getattr(self._client(), operation)(TableName=self._table, **arguments)
        except ClientError as exc:
            code = exc.response.get("Error", {}).get("Code", "unknown")
            if code == _REFUSED:
                return None
            raise TableFails(f"DynamoDB: {code}") from exc
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
