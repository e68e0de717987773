"""Pins a run to one object and one model, so that no other version of either answers a part of its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from botocore.exceptions import ClientError

from coldframe.capacity.limits import EXECUTION_DATA
from coldframe_local.batch.offline.request import NO_VERSION, OfflineRequest, RequestUnusable
from coldframe_local.emulator.state_machines.map_run import ObjectChanged
from coldframe_local.emulator.state_machines.workflow import Invoke

_LONGER_BYTES = 64
"""Bytes by which the answer of a head may be longer than that of an empty text: labels and digits differ."""


def pin(request: OfflineRequest, s3: Any, invoke: Invoke, function: str) -> OfflineRequest:
    """The request with ETag and version of its object, and with its model's version.

    s3: a boto3 client. Raises RequestUnusable for batches whose answers no child can return, Failed, and S3's
    errors.
    """
    head = _head(request, s3)
    row = _one_row(request, invoke, function)
    if "version" not in row:
        raise RequestUnusable(f"{function} does not tell the version of its model. Deploy it anew.")
    _check_batch(request.batch_items, row)
    version_id = head.get("VersionId", NO_VERSION)
    return replace(request, etag=head["ETag"], version_id=version_id, version=row["version"])


def check_unchanged(request: OfflineRequest, s3: Any) -> None:
    """Raises ObjectChanged if the object of a finished run is not the one that it was started with.

    A version of an object does not change, so nothing is asked about one.
    """
    if request.version_id != NO_VERSION:
        return
    source = request.source
    if _head(request, s3)["ETag"] != request.etag:
        raise ObjectChanged(
            f"{source} changed while the run read it: its results may mix two objects."
            " Start the run again, and turn the bucket's versioning on to have a run read one version."
        )


def _head(request: OfflineRequest, s3: Any) -> dict[str, Any]:
    """S3's facts of the object. Raises RequestUnusable where there is none."""
    source = request.source
    try:
        head: dict[str, Any] = s3.head_object(Bucket=source.bucket, Key=source.key)
    except ClientError as exc:
        if exc.response["Error"]["Code"] == "404":  # an answer to HEAD has no body that names the error
            raise RequestUnusable(f"{source} does not exist. Check its bucket, key and region.") from exc
        raise
    return head


def _one_row(request: OfflineRequest, invoke: Invoke, function: str) -> dict[str, Any]:
    """The result of an empty text."""
    settings = {"text": "text", "model": request.model, "heads": request.heads, "cache": False}
    batch = {"Items": [{"id": 0, "row": ""}], "BatchInput": settings}
    row: dict[str, Any]
    (row,) = invoke({"FunctionName": function, "Payload": batch})["Payload"]["Results"]
    return row


def _check_batch(items: int, row: dict[str, Any]) -> None:
    """Raises RequestUnusable for more items than a child of a Distributed Map can answer."""
    row_bytes = len(msgspec.json.encode(row)) + _LONGER_BYTES * (1 + len(row["heads"]))
    most = EXECUTION_DATA.value // row_bytes
    if items > most:
        raise RequestUnusable(
            f"The answers of {items} rows may take {items * row_bytes:,} bytes, and Step Functions takes"
            f" {EXECUTION_DATA.value:,}. Give at most --batch {most}."
        )
