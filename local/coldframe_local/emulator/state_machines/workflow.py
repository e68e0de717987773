"""A workflow: its states, one after the other. A state machine is one, and each child of a Distributed Map.

Source: https://states-language.net/spec.html (Retriers: "Errors"), read 2026-11-22.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from coldframe_local.emulator.state_machines.definition import (
    Choice,
    Fail,
    Map,
    Pass,
    Retry,
    State,
    Succeed,
    Task,
)
from coldframe_local.emulator.state_machines.paths import Context, PathNotFound, filled, value_at

_ALL = "States.ALL"
_TASK_FAILED = "States.TaskFailed"
_NOT_RETRIED_BY_ALL = frozenset({"States.Runtime", "States.DataLimitExceeded"})


class Failed(Exception):
    """A workflow that ended with an error. cause: as AWS has it, JSON of the function's error for a task."""

    def __init__(self, error: str, cause: str) -> None:
        super().__init__(error)
        self.error, self.cause = error, cause


class Invoke(Protocol):
    """Invokes a function; returns what `lambda:invoke` gives a state. Raises Failed."""

    def __call__(self, parameters: Mapping[str, Any]) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Workflow:
    """Runs by its definition. Safe for threads, if `invoke` is.

    sleep: for seconds, before an attempt. jitter: a number in [0, 1) for each wait of a retrier with jitter.
    run_map: runs a Distributed Map on its input; a child has none.
    """

    start_at: str
    states: Mapping[str, State]
    invoke: Invoke
    sleep: Callable[[float], object]
    jitter: Callable[[], float] = field(default=random.random)
    run_map: Callable[[Map, Any], Any] | None = None

    def run(self, state_input: Any, context: Context) -> Any:
        """The output for this input. Raises Failed."""
        name = self.start_at
        while name:
            try:
                state_input, name = self._enter(name, state_input, context)
            except PathNotFound as exc:
                raise Failed("States.Runtime", str(exc)) from exc
        return state_input

    def _enter(self, name: str, state_input: Any, context: Context) -> tuple[Any, str]:
        """The output of a state, and the next one; "" at the end."""
        match self.states[name]:
            case Task() as task:
                return self._task(task, state_input, context), task.Next
            case Map() as state if self.run_map is not None:
                return self.run_map(state, state_input), state.Next
            case Pass(Parameters=None) as state:
                return state_input, state.Next
            case Pass() as state:
                return filled(state.Parameters, state_input, context), state.Next
            case Choice() as choice:
                return state_input, chosen(choice, state_input, context)
            case Fail() as fail:
                raise Failed(fail.Error, fail.Cause)
            case Succeed():
                return state_input, ""
        raise AssertionError(name)  # every state is one of these

    def _task(self, task: Task, state_input: Any, context: Context) -> Any:
        parameters = filled(task.Parameters, state_input, context)
        attempts = dict.fromkeys(range(len(task.Retry)), 0)
        while True:
            try:
                result: Any = self.invoke(parameters)
                break
            except Failed as failed:
                number = _retrier(task.Retry, failed.error)
                if number is None or attempts[number] >= task.Retry[number].MaxAttempts:
                    raise
                self.sleep(wait_s(task.Retry[number], attempts[number], self.jitter))
                attempts[number] += 1
        if task.ResultSelector is not None:
            result = filled(task.ResultSelector, result, context)
        return value_at(task.OutputPath, result, context)


def chosen(choice: Choice, state_input: Any, context: Context) -> str:
    """The state after a choice. Raises Failed where no rule holds."""
    for rule in choice.Choices:
        if value_at(rule.Variable, state_input, context) == rule.StringEquals:
            return rule.Next
    if not choice.Default:
        raise Failed("States.NoChoiceMatched", "No rule of the choice holds.")
    return choice.Default


def wait_s(retry: Retry, attempts: int, jitter: Callable[[], float]) -> float:
    """Seconds before the next attempt, by the number of attempts."""
    most_s = min(retry.IntervalSeconds * retry.BackoffRate**attempts, retry.MaxDelaySeconds)
    return most_s * jitter() if retry.JitterStrategy == "FULL" else most_s


def _retrier(retriers: list[Retry], error: str) -> int | None:
    """The first retrier that names the error."""
    for number, retry in enumerate(retriers):
        names = set(retry.ErrorEquals)
        if error in names or (error not in _NOT_RETRIED_BY_ALL and names & {_ALL, _TASK_FAILED}):
            return number
    return None
