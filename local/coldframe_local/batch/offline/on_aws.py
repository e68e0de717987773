"""A run on AWS: started, watched, and begun again where it failed, by the Step Functions API."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from botocore.exceptions import ClientError

from coldframe.errors import ColdframeError
from coldframe_local.batch.offline.request import OfflineRequest

_POLL_S = 5.0
_OVER = frozenset({"SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"})


class RunFailed(ColdframeError):
    """A run on AWS ended without its results."""


@dataclass(frozen=True)
class OnAws:
    """One run of a state machine. states: a boto3 client. sleep: for seconds, between questions."""

    request: OfflineRequest
    name: str
    states: Any
    state_machine_arn: str
    sleep: Callable[[float], object] = field(default=time.sleep)

    def run(self, on_counts: Callable[[int, int], object]) -> dict[str, Any]:
        """Its output. A run of this name that failed is redriven: only its failed children run again.

        on_counts: is told how many items are done, and how many there are. Raises RunFailed.
        """
        arn = self._start()
        while True:
            execution = self.states.describe_execution(executionArn=arn)
            for run in self.states.list_map_runs(executionArn=arn)["mapRuns"]:
                counts = self.states.describe_map_run(mapRunArn=run["mapRunArn"])["itemCounts"]
                on_counts(counts["succeeded"] + counts["failed"], counts["total"])
            if execution["status"] in _OVER:
                break
            self.sleep(_POLL_S)
        if execution["status"] != "SUCCEEDED":
            raise RunFailed(
                f"{arn} ended as {execution['status']}: {execution.get('error', '')}"
                f" {execution.get('cause', '')}. Start it again with the same arguments: only its"
                " failed batches are repeated."
            )
        output: dict[str, Any] = msgspec.json.decode(execution["output"])
        return output

    def _start(self) -> str:
        """The execution: a new one, the one that runs already, or the one that failed, started again.

        Raises RunFailed if an execution of this name has another input.
        """
        execution_input = msgspec.json.encode(self.request.as_input(), order="sorted").decode()
        try:
            started = self.states.start_execution(
                stateMachineArn=self.state_machine_arn, name=self.name, input=execution_input
            )
            return str(started["executionArn"])
        except ClientError as exc:
            if exc.response["Error"]["Code"] != "ExecutionAlreadyExists":
                raise
        arn = f"{self.state_machine_arn.replace(':stateMachine:', ':execution:')}:{self.name}"
        execution = self.states.describe_execution(executionArn=arn)
        if msgspec.json.decode(execution["input"]) | {"traceparent": ""} != self.request.content() | {
            "traceparent": ""
        }:
            raise RunFailed(
                f"{arn} was started with another request, object or model version. Give another --name."
            )
        if execution["status"] not in {"RUNNING", "SUCCEEDED"}:
            self.states.redrive_execution(executionArn=arn)
        return arn
