"""Application Auto Scaling's scheduled actions for boto3: provisioned concurrency, set at a moment.

Only what happens once, `at(…)`, and only actions that set the minimum: what is provisioned is the minimum, as
without target tracking. https://docs.aws.amazon.com/autoscaling/application/APIReference/, read 2026-11-22.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from coldframe_local.emulator.aws_api.aws_json import AwsJson, Refused
from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.lambda_types import LambdaException
from coldframe_local.emulator.lambda_service.telemetry.log_pipe import Log

PATH = "/_aws/application-autoscaling"

_AT = re.compile(r"at\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\)")
_RESOURCE = re.compile(r"function:([^:]+):([^:$]+)")
_DIMENSION = "lambda:function:ProvisionedConcurrency"


class ScheduledActions:
    """Actions that are due later, by name. now: seconds since 1970. nap: how they wait."""

    def __init__(
        self,
        service: LambdaService,
        log: Log,
        now: Callable[[], float],
        nap: Callable[[float], Awaitable[None]],
    ) -> None:
        self._service, self._log = service, log
        self._now, self._nap = now, nap
        self._waiting: dict[tuple[str, str], asyncio.Task[None]] = {}

    def handler(self) -> AwsJson:
        """Handler of the requests."""
        return AwsJson("Application Auto Scaling", {"PutScheduledAction": self.put})

    async def put(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Plans an action; one of the same name for the same alias is replaced."""
        resource, schedule = parameters["ResourceId"], parameters.get("Schedule", "")
        alias, moment = _RESOURCE.fullmatch(resource), _AT.fullmatch(schedule)
        if parameters["ScalableDimension"] != _DIMENSION or alias is None:
            raise Refused("ValidationException", f"{resource} is not function:NAME:ALIAS of {_DIMENSION}.")
        if moment is None:
            raise Refused(
                "ValidationException", f"{schedule!r} is not at(yyyy-mm-ddThh:mm:ss), all there is."
            )
        count = int(parameters["ScalableTargetAction"]["MinCapacity"])
        self._service.functions.hosted(alias[1]).resolve(alias[2])  # raises when there is no such alias
        due_s = datetime.fromisoformat(moment[1]).replace(tzinfo=UTC).timestamp()
        key = resource, parameters["ScheduledActionName"]
        if (before := self._waiting.pop(key, None)) is not None:
            before.cancel()
        self._waiting[key] = asyncio.create_task(self._run(alias[1], alias[2], count, due_s))
        return {}

    async def close(self) -> None:
        """Forgets what is still to come."""
        for task in self._waiting.values():
            task.cancel()
        await asyncio.gather(*self._waiting.values(), return_exceptions=True)

    async def _run(self, function: str, alias: str, count: int, due_s: float) -> None:
        await self._nap(max(0.0, due_s - self._now()))
        concurrency = self._service.concurrency
        try:
            if count:
                concurrency.put_provisioned(function, alias, count)
            elif alias in self._service.functions.hosted(function).provisioned:
                concurrency.delete_provisioned(function, alias)
        except LambdaException as exc:
            self._log(f"Application Auto Scaling cannot provision {count} of {function}:{alias}: {exc}")
            return
        self._log(f"Application Auto Scaling provisions {count} of {function}:{alias}.")
