"""Items of an object in S3, one after the other, as Step Functions' ItemReader reads them.

Source: https://docs.aws.amazon.com/step-functions/latest/dg/input-output-itemreader.html, read 2026-11-22.
"""

from __future__ import annotations

import codecs
import csv
import io
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO

import msgspec

from coldframe.errors import ColdframeError
from coldframe_local.emulator.state_machines.definition import ReaderConfig

_DELIMITERS = {"COMMA": ",", "PIPE": "|", "SEMICOLON": ";", "SPACE": " ", "TAB": "\t"}
_ROWS_AT_ONCE = 4096


class ItemsUnusable(ColdframeError):
    """An object is not of the form that the definition says; `States.ItemReaderFailed` on AWS."""


def read_items(body: BinaryIO, config: ReaderConfig) -> Iterator[Any]:
    """Every item of an object. body: its bytes, read as far as items are asked for, except for JSON arrays.

    Raises ItemsUnusable.
    """
    readers = {"CSV": _csv, "JSON": _json, "JSONL": _json_lines, "PARQUET": _parquet}
    items = readers[config.InputType](body, config)
    return islice(items, config.MaxItems) if config.MaxItems else items


def _csv(body: BinaryIO, config: ReaderConfig) -> Iterator[dict[str, str]]:
    csv.field_size_limit(sys.maxsize)
    names = config.CSVHeaders if config.CSVHeaderLocation == "GIVEN" else None
    text = io.TextIOWrapper(io.BufferedReader(body), encoding="utf-8-sig", newline="")  # type: ignore[type-var]
    rows = csv.DictReader(text, fieldnames=names, delimiter=_DELIMITERS[config.CSVDelimiter], strict=True)
    try:
        for number, row in enumerate(rows):
            if None in row or None in row.values():
                cells = len(rows.fieldnames or [])
                raise ItemsUnusable(
                    f"Row {number} of the CSV object has not as many cells as its header, {cells}."
                )
            yield row
    except (csv.Error, UnicodeDecodeError) as exc:
        raise ItemsUnusable(f"The object is not CSV of UTF-8 text: {_reason(exc)}.") from exc


def _json_lines(body: BinaryIO, config: ReaderConfig) -> Iterator[Any]:
    decode = msgspec.json.Decoder().decode
    for number, line in enumerate(io.BufferedReader(body)):  # type: ignore[type-var]
        text = line if number else line.removeprefix(codecs.BOM_UTF8)
        if not text.strip():
            continue
        try:
            yield decode(text)
        except (msgspec.DecodeError, RecursionError) as exc:
            raise ItemsUnusable(f"Line {number} of the object is not JSON, or nests too deep.") from exc


def _json(body: BinaryIO, config: ReaderConfig) -> Iterator[Any]:
    try:
        items = msgspec.json.decode(body.read())
    except (msgspec.DecodeError, RecursionError) as exc:
        raise ItemsUnusable(
            "The object is not JSON, or nests too deep. For one value in each line, say JSONL."
        ) from exc
    if not isinstance(items, list):
        raise ItemsUnusable("The object is JSON, but no array.")
    yield from items


def _parquet(body: BinaryIO, config: ReaderConfig) -> Iterator[dict[str, Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as exc:
        raise ItemsUnusable(
            "Parquet needs pyarrow. Run in the checkout: pip install --editable '.[files]'"
        ) from exc
    with tempfile.TemporaryFile() as file:  # its index is at its end
        while block := body.read(1 << 20):
            file.write(block)
        try:
            for rows in parquet.ParquetFile(file).iter_batches(_ROWS_AT_ONCE):
                yield from rows.to_pylist()
        except ArrowException as exc:
            raise ItemsUnusable("The object is not Parquet.") from exc


def _reason(exc: Exception) -> str:
    """Description of an error, without the text that caused it."""
    return "it is not UTF-8" if isinstance(exc, UnicodeDecodeError) else str(exc)
