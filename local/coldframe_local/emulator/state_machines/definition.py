"""A state machine as Amazon States Language writes it, as far as it can be run here.

Fields that are not listed here are refused by name: a run that ignored one would be another run on AWS.
Source: https://states-language.net/spec.html and
https://docs.aws.amazon.com/step-functions/latest/dg/state-map-distributed.html, read 2026-11-22.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from coldframe.errors import ColdframeError

LAMBDA_INVOKE: Final = "arn:aws:states:::lambda:invoke"

_SUBSTITUTION = re.compile(r"\$\{([A-Za-z0-9]+)\}")

InputType = Literal["CSV", "JSON", "JSONL", "PARQUET"]


class DefinitionUnusable(ColdframeError):
    """A definition is wrong, or asks for what cannot be run here."""


class Retry(Struct, frozen=True, forbid_unknown_fields=True):
    """One retrier of a task. Of several, the first that names the error counts."""

    ErrorEquals: list[str]
    IntervalSeconds: int = 1
    MaxAttempts: int = 3
    BackoffRate: float = 2.0
    MaxDelaySeconds: int = 31_622_400
    JitterStrategy: Literal["FULL", "NONE"] = "NONE"


class Task(Struct, frozen=True, forbid_unknown_fields=True, tag_field="Type", tag="Task"):
    """An invocation of a function."""

    Resource: Literal["arn:aws:states:::lambda:invoke"]
    Parameters: dict[str, Any]
    ResultSelector: dict[str, Any] | None = None
    OutputPath: str = "$"
    Retry: list[Retry] = []
    Next: str = ""
    End: bool = False
    Comment: str = ""


class Pass(Struct, frozen=True, forbid_unknown_fields=True, tag_field="Type", tag="Pass"):
    """Its parameters, or else its input."""

    Parameters: dict[str, Any] | None = None
    Next: str = ""
    End: bool = False
    Comment: str = ""


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """One rule of a choice."""

    Variable: str
    StringEquals: str
    Next: str


class Choice(Struct, frozen=True, forbid_unknown_fields=True, tag_field="Type", tag="Choice"):
    """The state after the first rule that holds."""

    Choices: list[Rule]
    Default: str = ""
    Comment: str = ""


class Succeed(Struct, frozen=True, forbid_unknown_fields=True, tag_field="Type", tag="Succeed"):
    """The end."""

    Comment: str = ""


class Fail(Struct, frozen=True, forbid_unknown_fields=True, tag_field="Type", tag="Fail"):
    """The end, with an error."""

    Error: str = ""
    Cause: str = ""
    Comment: str = ""


class ReaderConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """How items are read. MaxItems: 0 for all."""

    InputType: InputType
    CSVHeaderLocation: Literal["FIRST_ROW", "GIVEN"] = "FIRST_ROW"
    CSVHeaders: list[str] = []
    CSVDelimiter: Literal["COMMA", "PIPE", "SEMICOLON", "SPACE", "TAB"] = "COMMA"
    MaxItems: int = 0


class ItemReader(Struct, frozen=True, forbid_unknown_fields=True):
    """Where items are read from."""

    Resource: Literal["arn:aws:states:::s3:getObject"]
    ReaderConfig: ReaderConfig
    Parameters: dict[str, Any]


class ItemBatcher(Struct, frozen=True, forbid_unknown_fields=True):
    """How many items a child gets. A path wins over the number beside it."""

    MaxItemsPerBatch: int = 0
    MaxItemsPerBatchPath: str = ""
    MaxInputBytesPerBatch: int = 0
    MaxInputBytesPerBatchPath: str = ""
    BatchInput: dict[str, Any] = {}


class WriterConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Fields of each child that are written, and their format."""

    Transformation: Literal["NONE", "COMPACT", "FLATTEN"] = "NONE"
    OutputType: Literal["JSON", "JSONL"] = "JSON"


class ResultWriter(Struct, frozen=True, forbid_unknown_fields=True):
    """Where results go."""

    Resource: Literal["arn:aws:states:::s3:putObject"]
    Parameters: dict[str, Any]
    WriterConfig: WriterConfig = WriterConfig()


class ProcessorConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether children are workflows of their own. Only those run here."""

    Mode: Literal["DISTRIBUTED"]
    ExecutionType: Literal["STANDARD", "EXPRESS"]


class ItemProcessor(Struct, frozen=True, forbid_unknown_fields=True):
    """The workflow of a child."""

    ProcessorConfig: ProcessorConfig
    StartAt: str
    States: dict[str, ChildState]


class Map(Struct, frozen=True, forbid_unknown_fields=True, tag_field="Type", tag="Map"):
    """A Distributed Map. MaxConcurrency: 0 for AWS's limit, 10,000."""

    ItemReader: ItemReader
    ItemProcessor: ItemProcessor
    ResultWriter: ResultWriter
    ItemSelector: dict[str, Any] | None = None
    ItemBatcher: ItemBatcher | None = None
    MaxConcurrency: int = 0
    MaxConcurrencyPath: str = ""
    ToleratedFailureCount: int = 0
    ToleratedFailurePercentage: float = 0.0
    ToleratedFailurePercentagePath: str = ""
    Label: str = ""
    Next: str = ""
    End: bool = False
    Comment: str = ""


ChildState: TypeAlias = Task | Pass | Choice | Succeed | Fail
State: TypeAlias = ChildState | Map


class Machine(Struct, frozen=True, forbid_unknown_fields=True):
    """A state machine."""

    StartAt: str
    States: dict[str, State]
    Comment: str = ""
    QueryLanguage: Literal["JSONPath"] = "JSONPath"


def load_machine(path: Path, substitutions: Mapping[str, str]) -> Machine:
    """The definition at `path`, with its `${Name}` replaced as DefinitionSubstitutions does.

    Raises DefinitionUnusable.
    """
    source = path.read_text()
    if missing := sorted(set(_SUBSTITUTION.findall(source)) - substitutions.keys()):
        raise DefinitionUnusable(f"{path} has ${{{missing[0]}}}, which is given no value.")
    text = _SUBSTITUTION.sub(lambda match: substitutions[match[1]], source)
    try:
        machine = msgspec.convert(json.loads(text), Machine)
    except (json.JSONDecodeError, msgspec.ValidationError) as exc:
        raise DefinitionUnusable(f"{path} cannot be run here: {exc}.") from exc
    _check_names(path, machine.StartAt, machine.States)
    for state in machine.States.values():
        if isinstance(state, Map):
            _check_names(path, state.ItemProcessor.StartAt, state.ItemProcessor.States)
    return machine


def _check_names(path: Path, first: str, states: Mapping[str, State]) -> None:
    names = {first} | {name for state in states.values() for name in _following(state)}
    if missing := sorted(names - states.keys()):
        raise DefinitionUnusable(
            f"{path} goes to the state {missing[0]!r}, which is not there. States: {', '.join(states)}."
        )
    for name, state in states.items():
        if isinstance(state, Task | Pass | Map) and bool(state.Next) == state.End:
            raise DefinitionUnusable(f"{path}: the state {name!r} needs either Next or End.")


def _following(state: State) -> list[str]:
    if isinstance(state, Choice):
        return [*(rule.Next for rule in state.Choices), *([state.Default] if state.Default else [])]
    return [state.Next] if isinstance(state, Task | Pass | Map) and state.Next else []
