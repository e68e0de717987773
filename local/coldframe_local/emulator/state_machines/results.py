"""Results of children in S3, and the manifest of their files, as Step Functions' ResultWriter writes them.

Source: https://docs.aws.amazon.com/step-functions/latest/dg/input-output-resultwriter.html, read 2026-11-22.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any

import msgspec

from coldframe_local.emulator.state_machines.definition import WriterConfig
from coldframe_local.emulator.state_machines.journal import Ended, Journal


@dataclass(frozen=True)
class Destination:
    """Where the results of one run go. prefix: of the run, without a slash at its end."""

    bucket: str
    prefix: str


@dataclass(frozen=True)
class Names:
    """ARNs of a run. machine and execution are parts of those of its children."""

    map_run: str
    machine: str
    execution: str


def write_results(s3: Any, to: Destination, names: Names, config: WriterConfig, journal: Journal) -> str:
    """Writes a file for each outcome that there was, and the manifest; returns the manifest's key.

    The same outputs give the same bytes, whichever children were repeated; NONE has times beside them.
    """
    files: dict[str, list[dict[str, object]]] = {"FAILED": [], "PENDING": [], "SUCCEEDED": []}
    unchanged = WriterConfig()  # a child that failed is written as it is
    for status, form in (("SUCCEEDED", config), ("FAILED", unchanged)):
        succeeded = status == "SUCCEEDED"
        if not journal.items(succeeded):
            continue
        suffix = "jsonl" if form.OutputType == "JSONL" else "json"
        key = f"{to.prefix}/{status}_0.{suffix}"
        with tempfile.TemporaryFile() as file:
            _write(file, _transformed(journal.ends(succeeded), status, form, names), form)
            size = file.tell()
            file.seek(0)
            s3.upload_fileobj(file, to.bucket, key)
        files[status].append({"Key": key, "Size": size})
    manifest = {"DestinationBucket": to.bucket, "MapRunArn": names.map_run, "ResultFiles": files}
    key = f"{to.prefix}/manifest.json"
    s3.put_object(Bucket=to.bucket, Key=key, Body=msgspec.json.encode(manifest))
    return key


def _transformed(ends: Iterable[Ended], status: str, config: WriterConfig, names: Names) -> Iterator[Any]:
    for ended in ends:
        if config.Transformation == "NONE":
            yield _execution(ended, status, names)
        elif config.Transformation == "FLATTEN" and isinstance(ended.output, list):
            yield from ended.output
        else:
            yield ended.output


def _execution(ended: Ended, status: str, names: Names) -> dict[str, object]:
    """A child as AWS describes its execution."""
    name = f"{ended.number:08x}"
    texts = {"Input": msgspec.json.encode(ended.input).decode(), "InputDetails": {"Included": True}}
    if ended.error:
        texts |= {"Error": ended.error, "Cause": ended.cause}
    else:
        texts |= {"Output": msgspec.json.encode(ended.output).decode(), "OutputDetails": {"Included": True}}
    return {
        "ExecutionArn": f"{names.execution}:{name}",
        "Name": name,
        "StartDate": _iso(ended.started_s),
        "StateMachineArn": names.machine,
        "Status": status,
        "StopDate": _iso(ended.stopped_s),
        **texts,
    }


def _write(file: IO[bytes], results: Iterable[Any], config: WriterConfig) -> None:
    if config.OutputType == "JSONL":
        file.writelines(msgspec.json.encode(result) + b"\n" for result in results)
        return
    separator = b"["
    for result in results:
        file.write(separator + msgspec.json.encode(result))
        separator = b","
    file.write(b"]")


def _iso(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
