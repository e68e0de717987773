"""A Distributed Map: items of an object in batches, each batch a child, with limited concurrency.

Source: https://docs.aws.amazon.com/step-functions/latest/dg/state-map-distributed.html, read 2026-11-22.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Set
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import msgspec
from botocore.exceptions import ClientError

from coldframe.capacity import limits
from coldframe.errors import ColdframeError
from coldframe_local.emulator.state_machines.batches import Limits, batches
from coldframe_local.emulator.state_machines.definition import Map
from coldframe_local.emulator.state_machines.items import read_items
from coldframe_local.emulator.state_machines.journal import Ended, Journal
from coldframe_local.emulator.state_machines.paths import filled, value_at
from coldframe_local.emulator.state_machines.results import Destination, Names, write_results
from coldframe_local.emulator.state_machines.workflow import Failed, Invoke, Workflow

_CHANGED = frozenset({"PreconditionFailed", "NoSuchVersion", "412"})


class ObjectChanged(ColdframeError):
    """An object is not the one that a run was started with."""


@dataclass(frozen=True)
class MapRun:
    """Runs Distributed Maps on one input. Its children run in threads, all else in the caller's.

    at_once: children at most, whatever the definition says. on_items: is told how many items a child had that
    has ended, and first how many an earlier run has done. etag: as in `inputs`. clock: Unix time.
    sleep: between the attempts of a task.
    """

    s3: Any
    invoke: Invoke
    journal: Journal
    names: Names
    at_once: int
    on_items: Callable[[int], object]
    etag: str = ""
    sleep: Callable[[float], object] = field(default=time.sleep)
    clock: Callable[[], float] = field(default=time.time)

    def run(self, state: Map, state_input: Any) -> dict[str, Any]:
        """The output of the state: where its results are. Raises Failed, and what reading items raises."""
        self._run_children(state, state_input)
        failed = self.journal.items(succeeded=False)
        total = failed + self.journal.items(succeeded=True)
        where = filled(state.ResultWriter.Parameters, state_input, {})
        run_id = self.names.map_run.rpartition(":")[2]
        to = Destination(where["Bucket"], f"{where.get('Prefix', '').rstrip('/')}/{run_id}".lstrip("/"))
        key = write_results(self.s3, to, self.names, state.ResultWriter.WriterConfig, self.journal)
        if failed > tolerated(state, state_input, total):
            raise Failed(
                "States.ExceedToleratedFailureThreshold",
                f"{failed} of {total} items failed; s3://{to.bucket}/{key} names the file of them.",
            )
        return {
            "MapRunArn": self.names.map_run,
            "ResultWriterDetails": {"Bucket": to.bucket, "Key": key},
        }

    def _run_children(self, state: Map, state_input: Any) -> None:
        """Until every child has ended, or too many items have failed."""
        child = Workflow(state.ItemProcessor.StartAt, state.ItemProcessor.States, self.invoke, self.sleep)
        concurrency = (
            _by_path(state.MaxConcurrencyPath, state.MaxConcurrency, state_input) or limits.MAP_CHILDREN.value
        )
        workers = min(int(concurrency), self.at_once)
        done = self.journal.succeeded()
        self.on_items(self.journal.items(succeeded=True))
        keep_input = state.ResultWriter.WriterConfig.Transformation == "NONE"
        failed, running = 0, set[Future[Ended]]()
        with ThreadPoolExecutor(workers, thread_name_prefix="child") as pool:
            try:
                for number, batch in enumerate(inputs(self.s3, state, state_input, self.etag)):
                    if number in done:
                        continue
                    running.add(pool.submit(self._run_child, child, number, batch, keep_input))
                    if len(running) == workers:
                        ended_now, running = wait(running, return_when=FIRST_COMPLETED)
                        failed += self._keep(ended_now)
                    if failed > tolerated(state, state_input, None):
                        break
                ended_now, running = wait(running)
                self._keep(ended_now)
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _keep(self, ended: Set[Future[Ended]]) -> int:
        """Keeps the ends of children; the number of items that failed with them."""
        ends = sorted((future.result() for future in ended), key=lambda end: end.number)
        for end in ends:
            self.journal.add(end)
            self.on_items(end.items)
        return sum(end.items for end in ends if end.error)

    def _run_child(self, child: Workflow, number: int, child_input: Any, keep_input: bool) -> Ended:
        started_s = self.clock()
        items = len(child_input["Items"]) if isinstance(child_input, dict) and "Items" in child_input else 1
        try:
            output = child.run(child_input, {"Execution": {"Id": self.names.execution}})
            if len(msgspec.json.encode(output)) > limits.EXECUTION_DATA.value:
                raise Failed("States.DataLimitExceeded", "The output of the child is over 256 KiB.")
        except Failed as exc:
            return Ended(number, items, started_s, self.clock(), child_input, None, exc.error, exc.cause)
        return Ended(number, items, started_s, self.clock(), child_input if keep_input else None, output)


def inputs(s3: Any, state: Map, state_input: Any, etag: str = "") -> Iterator[Any]:
    """The input of each child, in order. s3: a boto3 client. etag: the object has to have it, unless empty.

    Raises ObjectChanged, and what reading items raises.
    """
    body = _open(s3, filled(state.ItemReader.Parameters, state_input, {}), etag)
    items: Iterator[Any] = read_items(body, state.ItemReader.ReaderConfig)
    if state.ItemSelector is not None:
        items = _selected(items, state.ItemSelector, state_input)
    batcher = state.ItemBatcher
    if batcher is None:
        return items
    most_items = _by_path(batcher.MaxItemsPerBatchPath, batcher.MaxItemsPerBatch, state_input)
    most_bytes = _by_path(batcher.MaxInputBytesPerBatchPath, batcher.MaxInputBytesPerBatch, state_input)
    most = Limits(int(most_items), int(most_bytes))
    return batches(items, most, filled(batcher.BatchInput, state_input, {}))


def _open(s3: Any, where: dict[str, Any], etag: str) -> Any:
    """The body of an object. Raises ObjectChanged."""
    try:
        return s3.get_object(**where, **({"IfMatch": etag} if etag else {}))["Body"]
    except ClientError as exc:
        if exc.response["Error"]["Code"] in _CHANGED:
            raise ObjectChanged(
                f"s3://{where['Bucket']}/{where['Key']} has changed after this run was started."
                " Start the run again: a run reads one version of an object."
            ) from exc
        raise


def tolerated(state: Map, state_input: Any, total: int | None) -> float:
    """Items that may fail: what the count and the percentage say, the lower of the two.

    total: None while it is not known; then a percentage sets no bound.
    """
    percentage = _by_path(state.ToleratedFailurePercentagePath, state.ToleratedFailurePercentage, state_input)
    bounds: list[float] = [state.ToleratedFailureCount] if state.ToleratedFailureCount else []
    if percentage:
        bounds.append(float("inf") if total is None else percentage / 100 * total)
    return min(bounds, default=0)


def _selected(items: Iterator[Any], selector: dict[str, Any], state_input: Any) -> Iterator[Any]:
    for index, value in enumerate(items):
        yield filled(selector, state_input, {"Map": {"Item": {"Index": index, "Value": value}}})


def _by_path(path: str, plain: float, state_input: Any) -> float:
    return float(value_at(path, state_input, {})) if path else plain
