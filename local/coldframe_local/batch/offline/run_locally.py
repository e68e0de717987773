"""A run on this machine: the state machine's definition against any Lambda API and any S3."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from coldframe_local.batch.offline.estimate import Usage, usage_of
from coldframe_local.batch.offline.request import OfflineRequest
from coldframe_local.emulator.state_machines.definition import (
    Choice,
    DefinitionUnusable,
    Machine,
    Map,
    load_machine,
)
from coldframe_local.emulator.state_machines.journal import Journal
from coldframe_local.emulator.state_machines.lambda_task import LambdaTask
from coldframe_local.emulator.state_machines.map_run import MapRun, inputs
from coldframe_local.emulator.state_machines.results import Names
from coldframe_local.emulator.state_machines.workflow import Failed, Workflow, chosen
from coldframe_local.paths import shipped_file
from coldframe_local.planner.traces.report_lines import Report, reports_in

DEFINITION = shipped_file("offline.asl.json")
_REGION, _ACCOUNT = "us-east-1", "000000000000"


class Here:
    """One run: its name, its request, and the folder of its journal.

    s3, lambda_: boto3 clients. function: name or ARN. For one thread; children have their own.
    """

    def __init__(
        self,
        request: OfflineRequest,
        name: str,
        s3: Any,
        lambda_: Any,
        function: str,
        folder: Path,
    ) -> None:
        self.request = request
        self.name = name
        self.path = folder / f"{name}.sqlite"
        self._s3 = s3
        self._reports: list[Report] = []
        self._lock = threading.Lock()
        self._invoke = LambdaTask(lambda_, self._keep_reports)
        self._machine = load_machine(DEFINITION, {"FunctionArn": function})
        self._function = function

    def batches(self) -> Iterator[dict[str, Any]]:
        """Every batch of the run, in order."""
        execution_input = self.request.as_input()
        return inputs(self._s3, _map_of(self._machine, execution_input), execution_input, self.request.etag)

    def probe(self, batch: dict[str, Any]) -> Report:
        """Invokes the function with a batch. Raises Failed."""
        self._invoke({"FunctionName": self._function, "Payload": batch})
        with self._lock:
            if not self._reports:
                raise Failed("NoReport", "The function's log has no REPORT line. Start with --no-estimate.")
            return self._reports.pop()

    def run(self, on_items: Callable[[int], object]) -> dict[str, Any]:
        """The output of the state machine. What an earlier process of this run has done is not done again.

        on_items: is told how many items have ended. Raises Failed, OtherRun, and what reading items raises.
        """
        with Journal(self.path) as journal:
            journal.belongs_to(self.request.identity())
            maps = self._map_run(journal, on_items)
            machine = Workflow(
                self._machine.StartAt, self._machine.States, self._invoke, maps.sleep, run_map=maps.run
            )
            output: dict[str, Any] = machine.run(self.request.as_input(), {})
            return output

    def usage(self) -> Usage:
        """Cost of the batches that this process has run."""
        with self._lock:
            return usage_of(self._reports)

    def _map_run(self, journal: Journal, on_items: Callable[[int], object]) -> MapRun:
        names = names_of("coldframe-offline", self.name)
        return MapRun(
            self._s3, self._invoke, journal, names, self.request.concurrency, on_items, self.request.etag
        )

    def _keep_reports(self, log: str) -> None:
        with self._lock:
            self._reports += reports_in(log)


def names_of(machine: str, run: str) -> Names:
    """ARNs like AWS's. The same run has the same ones, so that its results keep their place."""
    states = f"arn:aws:states:{_REGION}:{_ACCOUNT}"
    map_run = uuid.uuid5(uuid.NAMESPACE_URL, f"{machine}/{run}")
    return Names(
        map_run=f"{states}:mapRun:{machine}/Predict:{map_run}",
        machine=f"{states}:stateMachine:{machine}/Predict",
        execution=f"{states}:express:{machine}/Predict:{run}",
    )


def _map_of(machine: Machine, execution_input: dict[str, Any]) -> Map:
    """The map that reads the request's format."""
    name = machine.StartAt
    while not isinstance(state := machine.States[name], Map):
        if not isinstance(state, Choice):
            raise DefinitionUnusable(
                f"The state {name!r} of {DEFINITION} is not a map, and no choice of one."
            )
        name = chosen(state, execution_input, {})
    return state
