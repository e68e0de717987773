"""Tables, buckets and queues of a template."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coldframe_local.emulator.template.syntax.errors import NotKnown, TemplateError
from coldframe_local.emulator.template.syntax.properties import Properties
from coldframe_local.emulator.template.syntax.ref_names import QUEUE, SIMPLE_TABLE
from coldframe_local.emulator.template.syntax.resources import Resources
from coldframe_local.emulator.template.syntax.template_warnings import Effect, Note
from coldframe_local.emulator.template.syntax.values import as_map, as_whole_number

_TABLE_PARAMETERS = (
    "AttributeDefinitions",
    "KeySchema",
    "GlobalSecondaryIndexes",
    "LocalSecondaryIndexes",
    "StreamSpecification",
)
_QUEUE_ATTRIBUTES = (
    "ContentBasedDeduplication",
    "DelaySeconds",
    "FifoQueue",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "VisibilityTimeout",
)
DEFAULT_VISIBILITY_S = 30
"""https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html, 2026-11-22."""
_KEY_TYPES = {"String": "S", "Number": "N", "Binary": "B"}


@dataclass(frozen=True, slots=True)
class Table:
    """A DynamoDB table. parameters: of boto3's `create_table`. ttl_attribute: when an item expires."""

    name: str
    parameters: Mapping[str, Any]
    ttl_attribute: str | None


@dataclass(frozen=True, slots=True)
class Bucket:
    """An S3 bucket."""

    name: str


@dataclass(frozen=True, slots=True)
class Queue:
    """An SQS queue. url: what `Ref` gives. attributes: of boto3's `create_queue`.

    visibility_s: how long a message stays hidden after it was received.
    """

    name: str
    arn: str
    url: str
    attributes: Mapping[str, str]
    visibility_s: int = DEFAULT_VISIBILITY_S


def read_table(resources: Resources, name: str, properties: Properties) -> Table:
    """Raises TemplateError, as all of these do; NotKnown for what depends on AWS alone."""
    if resources.kind(name) == SIMPLE_TABLE:
        parameters = _simple_table(properties)
    else:
        values = {key: properties.value(key) for key in _TABLE_PARAMETERS}
        parameters = {key: value for key, value in values.items() if value is not None}
    ttl = properties.map("TimeToLiveSpecification")
    attribute, enabled = ttl.word("AttributeName"), ttl.value("Enabled")
    defaults = {"TableName": resources.name(name), "BillingMode": "PAY_PER_REQUEST"}
    return Table(resources.name(name), parameters | defaults, attribute if enabled else None)


def read_bucket(resources: Resources, name: str, properties: Properties) -> Bucket:
    """An S3 bucket."""
    return Bucket(resources.name(name))


def read_queue(resources: Resources, notes: list[Note], name: str, properties: Properties) -> Queue:
    """An SQS queue. Of a dead-letter queue that is not made here, a note says that it gets nothing."""
    values = {key: properties.word(key) for key in _QUEUE_ATTRIBUTES}
    attributes = {key: value for key, value in values.items() if value is not None}
    visibility_s = properties.whole_number("VisibilityTimeout", 0)
    redrive = _redrive(resources, properties, notes)
    if redrive is not None:
        attributes["RedrivePolicy"] = redrive
    return Queue(
        resources.name(name),
        resources.attribute(name, "Arn"),
        resources.reference(name),
        attributes,
        DEFAULT_VISIBILITY_S if visibility_s is None else visibility_s,
    )


def _redrive(resources: Resources, properties: Properties, notes: list[Note]) -> str | None:
    """Redrive policy for messages that fail, in boto3's form."""
    place = properties.place("RedrivePolicy")
    try:
        policy = as_map(properties.value("RedrivePolicy"), place)
    except NotKnown:
        policy = {"deadLetterTargetArn": "", "maxReceiveCount": 1}
    if not policy:
        return None
    if "deadLetterTargetArn" not in policy or "maxReceiveCount" not in policy:
        raise TemplateError(f"{place} needs deadLetterTargetArn and maxReceiveCount.")
    target = str(policy["deadLetterTargetArn"])
    if target not in {resources.attribute(name, "Arn") for name, _ in resources.of_types(QUEUE)}:
        notes.append(Note(Effect.IGNORED, place, "the queue for failed messages is not in this template"))
        return None
    most = as_whole_number(policy["maxReceiveCount"], f"{place}.maxReceiveCount")
    return json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": most})


def _simple_table(properties: Properties) -> dict[str, Any]:
    """SAM's table with one key: https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-resource-simpletable.html."""
    key = properties.map("PrimaryKey")
    name, kind = key.word("Name") or "id", key.word("Type") or "String"
    if kind not in _KEY_TYPES:
        raise TemplateError(f"{key.place('Type')} is {kind!r}, expected one of {', '.join(_KEY_TYPES)}.")
    return {
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": _KEY_TYPES[kind]}],
        "KeySchema": [{"AttributeName": name, "KeyType": "HASH"}],
    }
