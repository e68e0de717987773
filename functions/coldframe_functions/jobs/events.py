"""Events of SQS for both functions of jobs, and the time limit of an invocation."""

from collections.abc import Mapping
from typing import Any, Protocol

from coldframe.jobs.worker import Message
from coldframe.timing import Deadline

# Part of the function's timeout that is reserved for recording answers.
_KEPT_S, _KEPT_SHARE = 10.0, 0.3


class Context(Protocol):
    """Attributes of Lambda's context object that the functions use."""

    def get_remaining_time_in_millis(self) -> int: ...


def deadline_of(context: Context) -> Deadline:
    """When work has to be over, so that its results can still be recorded."""
    left_s = context.get_remaining_time_in_millis() / 1e3
    return Deadline(left_s - min(_KEPT_S, _KEPT_SHARE * left_s))


def read_messages(event: Mapping[str, Any]) -> list[Message]:
    """The messages of an event. Raises ValueError for an event that does not come from SQS."""
    messages = [_read(record) for record in event.get("Records", [])]
    if not messages:
        raise ValueError("This event has no SQS messages. Send jobs to the queue with POST /v1/jobs.")
    return messages


def _read(record: Mapping[str, Any]) -> Message:
    return Message(
        id=record["messageId"],
        receipt_handle=record["receiptHandle"],
        body=record["body"],
        received=int(record["attributes"]["ApproximateReceiveCount"]),
    )


def not_over(message_ids: list[str]) -> dict[str, Any]:
    """Answer to Lambda about a batch: the messages to receive again."""
    return {"batchItemFailures": [{"itemIdentifier": each} for each in message_ids]}
