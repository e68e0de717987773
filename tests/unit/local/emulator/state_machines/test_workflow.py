"""How a workflow runs its states."""

from collections.abc import Mapping
from typing import Any

import pytest

from coldframe_local.emulator.state_machines.definition import (
    LAMBDA_INVOKE,
    Choice,
    Fail,
    Pass,
    Retry,
    Rule,
    State,
    Succeed,
    Task,
)
from coldframe_local.emulator.state_machines.workflow import Failed, Workflow

CONTEXT = {"Execution": {"Id": "e"}}


class Function:
    """Fails with each of these errors, then answers what it was sent."""

    def __init__(self, *errors: str) -> None:
        self.errors = list(errors)
        self.asked: list[Mapping[str, Any]] = []

    def __call__(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(parameters)
        if self.errors:
            raise Failed(self.errors.pop(0), "{}")
        return {"Payload": {"Results": [parameters["Payload"]]}, "StatusCode": 200}


def workflow(states: dict[str, State], function: Function, waits_s: list[float] | None = None) -> Workflow:
    waited = [] if waits_s is None else waits_s
    return Workflow(next(iter(states)), states, function, waited.append, jitter=lambda: 0.5)


def task(*retriers: Retry, **changes: Any) -> Task:
    parameters = {"FunctionName": "f", "Payload.$": "$.item", "Of.$": "$$.Execution.Id"}
    return Task(
        LAMBDA_INVOKE, parameters, OutputPath="$.Payload.Results", Retry=list(retriers), End=True, **changes
    )


def test_a_task_sends_what_its_paths_find() -> None:
    """Names that end in `.$` are filled from input and context; OutputPath chooses of the result."""
    function = Function()
    assert workflow({"T": task()}, function).run({"item": [1]}, CONTEXT) == [[1]]
    assert function.asked == [{"FunctionName": "f", "Payload": [1], "Of": "e"}]


def test_retriers_wait_longer_each_time() -> None:
    """The wait grows by the rate up to its bound, and jitter takes a share of it."""
    waits_s: list[float] = []
    retry = Retry(["States.ALL"], 2, 4, 3.0, 10)
    workflow({"T": task(retry)}, Function("A", "B", "C"), waits_s).run({"item": 1}, CONTEXT)
    assert waits_s == [2, 6, 10]
    waits_s.clear()
    full = Retry(["A"], 2, 4, JitterStrategy="FULL")
    workflow({"T": task(full)}, Function("A", "A"), waits_s).run({"item": 1}, CONTEXT)
    assert waits_s == [1, 2]


@pytest.mark.parametrize(
    ("retriers", "errors", "asked"),
    [
        ([], ["A"], 1),
        ([Retry(["B"])], ["A"], 1),
        ([Retry(["States.TaskFailed"], MaxAttempts=2)], ["A"] * 5, 3),
        ([Retry(["A"], MaxAttempts=0), Retry(["States.ALL"])], ["A"], 1),
        ([Retry(["A"], MaxAttempts=1), Retry(["B"], MaxAttempts=1)], ["A", "B", "A"], 3),
        ([Retry(["States.ALL"])], ["States.DataLimitExceeded"], 1),
    ],
)
def test_the_first_retrier_that_names_the_error_counts(
    retriers: list[Retry], errors: list[str], asked: int
) -> None:
    """An error that no retrier names, or that has used its attempts, ends the workflow."""
    function = Function(*errors)
    with pytest.raises(Failed) as caught:
        workflow({"T": task(*retriers)}, function).run({"item": 1}, CONTEXT)
    assert caught.value.error == errors[asked - 1]
    assert len(function.asked) == asked


def test_states_follow_each_other() -> None:
    """Choice, Pass, Succeed and Fail do what the language says."""
    states: dict[str, State] = {
        "Which": Choice([Rule("$.kind", "a", "A"), Rule("$.kind", "b", "B")]),
        "A": Pass({"kept.$": "$.kind"}, Next="End"),
        "B": Fail("Bad", "because"),
        "End": Succeed(),
    }
    flow = workflow(states, Function())
    assert flow.run({"kind": "a"}, CONTEXT) == {"kept": "a"}
    for kind, error in (("b", "Bad"), ("c", "States.NoChoiceMatched")):
        with pytest.raises(Failed) as caught:
            flow.run({"kind": kind}, CONTEXT)
        assert caught.value.error == error


def test_a_path_that_leads_nowhere_fails_the_workflow() -> None:
    """The error is AWS's, and names the path."""
    with pytest.raises(Failed, match=r"States\.Runtime") as caught:
        workflow({"T": task()}, Function()).run({}, CONTEXT)
    assert caught.value.cause == "The path $.item leads nowhere."
