"""A whole file on one machine: all cores, in order, and continued where it was killed.

The file is read in parts whose borders depend on its rows alone. Processes answer the parts, each in a file
of its own; at the end the parts are written in order, beside the columns of the input.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, Never

import pyarrow as pa

from coldframe.arrow import answer_fields
from coldframe.config import Settings
from coldframe.cpus import usable_cpus
from coldframe.model.bundle import Manifest
from coldframe.pipeline.models import load_predictor
from coldframe.progress import Progress
from coldframe_local.batch.predict_file.answering import answer, start
from coldframe_local.batch.predict_file.errors import BadFile, Stopped
from coldframe_local.batch.predict_file.parts import Parts, parts_folder, read_part
from coldframe_local.batch.predict_file.sink import check_schema, check_sink, open_sink
from coldframe_local.batch.predict_file.source import Source, open_source

_AHEAD = 2  # parts per process that wait: none is ever idle, and memory stays bounded


class Done(NamedTuple):
    """Result of a run. reused_rows: rows whose answers an earlier run had computed."""

    rows: int
    reused_rows: int


def predict_file(
    path: Path,
    column: str,
    out: Path,
    settings: Settings,
    heads: Sequence[str],
    prefix: str = "",
    processes: int | None = None,
) -> Done:
    """Writes the table in `path` to `out`, with the answers of each row in further columns.

    heads: empty for the model's default. processes: as many as there are cores, unless told.
    Raises BadFile, Stopped, Invalid for an unknown head, and a BundleError.
    """
    check_sink(out)
    if out.exists() and out.samefile(path):
        raise BadFile(f"{out} is the file to read. Name another --out.")
    predictor = load_predictor(settings)
    head_names = list(dict.fromkeys(heads)) or [predictor.manifest.default_head]
    predictor.check_heads(head_names)
    source = open_source(path, column)
    fields = answer_fields(head_names, prefix)
    schema = _joined(source, fields, predictor.manifest)
    check_schema(out, schema)
    with parts_folder(out) as folder:
        parts = Parts(folder, predictor.manifest.version, head_names)
        reused_rows = _answer_all(source, parts, settings, processes or usable_cpus())
        _write(source, parts, out, folder, schema)
    return Done(source.rows, reused_rows)


def _joined(source: Source, fields: Sequence[pa.Field], model: Manifest) -> pa.Schema:
    """The columns of the input and of the answers. Parquet keeps the schema's metadata."""
    for field in fields:
        if field.name in source.schema.names:
            raise BadFile(
                f"{source.path.name} has a column {field.name!r} already. Name the columns of the answers"
                " apart, for instance with --prefix predicted_."
            )
    metadata = {"coldframe.model": model.name, "coldframe.version": model.version}
    return pa.schema([*source.schema, *fields], {**(source.schema.metadata or {}), **metadata})


def _answer_all(source: Source, parts: Parts, settings: Settings, processes: int) -> int:
    """Answers every part without answers; returns the number of rows that had answers."""
    reused_rows = computed_rows = 0
    # Spawned: onnxruntime's threads would not survive a fork.
    pool = ProcessPoolExecutor(processes, get_context("spawn"), start, (settings,))
    pending: dict[Future[None], int] = {}
    with Progress(total=source.rows, desc="classifying", unit="row") as bar:
        try:
            for path, texts in _unanswered(source, parts):
                if path is None:
                    reused_rows += len(texts)
                    bar.update(len(texts))
                    continue
                pending[pool.submit(answer, path, texts, parts.heads, parts.version)] = len(texts)
                if len(pending) >= processes * _AHEAD:
                    computed_rows += _take(pending, bar)
            while pending:
                computed_rows += _take(pending, bar)
        except (KeyboardInterrupt, BrokenProcessPool) as exc:
            interrupted = isinstance(exc, KeyboardInterrupt)
            why = "Interrupted" if interrupted else "A process was killed, perhaps for want of memory"
            raise Stopped(
                f"{why}: {reused_rows + computed_rows:,} of {source.rows:,} rows are answered."
                " Run the same command again to continue."
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)
    return reused_rows


def _unanswered(source: Source, parts: Parts) -> Iterator[tuple[Path | None, list[str | None]]]:
    """The texts of each part, and where their answers go; None where they are already, or will be."""
    paths: set[Path] = set()
    for part in source.parts():
        texts = source.texts(part)
        path = parts.path(texts)
        yield (None if path in paths or path.exists() else path), texts
        paths.add(path)


def _take(pending: "dict[Future[None], int]", bar: "Progress[Never]") -> int:
    """Waits until a part is answered, or several; their rows."""
    finished, _ = wait(pending, return_when=FIRST_COMPLETED)
    for future in finished:
        future.result()
    rows = sum(pending.pop(future) for future in finished)
    bar.update(rows)
    return rows


def _write(source: Source, parts: Parts, out: Path, folder: Path, schema: pa.Schema) -> None:
    """Input and answers, part by part and in order; `out` appears as a whole."""
    aside = folder / "whole"
    sink = open_sink(aside, out.suffix, schema)
    for part in source.parts():
        answers = read_part(parts.path(source.texts(part)))
        sink.write(pa.table([*part.columns, *answers.columns], schema=schema))
    sink.close()
    aside.replace(out)
