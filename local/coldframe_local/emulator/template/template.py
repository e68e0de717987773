"""template.yaml as the emulator runs it: functions, APIs, tables, buckets, queues, and what else calls.

Reads SAM's own resources and plain functions, the way SAM's translator and CloudFormation would make them:
parameters, conditions, Globals, implicit APIs. `tests/integration/test_emulated_template.py`
holds both readings side by side. What cannot be run is left out, and named with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from coldframe_local.emulator.gateway.definitions import Api
from coldframe_local.emulator.template.apis.apis import read_apis
from coldframe_local.emulator.template.apis.routes import ApiSource
from coldframe_local.emulator.template.event_sources import EventSourceReader, EventSources
from coldframe_local.emulator.template.functions.functions import Function, FunctionReader
from coldframe_local.emulator.template.ignored import unread
from coldframe_local.emulator.template.stores import Bucket, Queue, Table, read_bucket, read_queue, read_table
from coldframe_local.emulator.template.syntax.applications import read_with_applications
from coldframe_local.emulator.template.syntax.errors import NotKnown, NotRunnable, TemplateError
from coldframe_local.emulator.template.syntax.parameters import (
    REGION,
    accepted_values,
    declared_parameters,
    pseudo_parameters,
)
from coldframe_local.emulator.template.syntax.properties import Properties
from coldframe_local.emulator.template.syntax.ref_names import (
    BUCKET,
    FUNCTION,
    PLAIN_FUNCTION,
    QUEUE,
    SIMPLE_TABLE,
    TABLE,
)
from coldframe_local.emulator.template.syntax.resources import Resources
from coldframe_local.emulator.template.syntax.template_warnings import Effect, Note, lines

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Template:
    """A template to run. event_sources: callers of functions besides APIs. notes: differences from AWS."""

    functions: tuple[Function, ...]
    apis: tuple[Api, ...] = ()
    tables: tuple[Table, ...] = ()
    buckets: tuple[Bucket, ...] = ()
    queues: tuple[Queue, ...] = ()
    event_sources: EventSources = field(default_factory=EventSources)
    notes: tuple[Note, ...] = ()

    def with_settings(
        self,
        reserved_concurrency: int | None = None,
        provisioned_concurrency: int | None = None,
        **changes: Any,
    ) -> Template:
        """Copy of the template with other settings for every function.

        changes: fields of `FunctionSettings`. None leaves what the template says.
        """
        concurrency = _given(
            reserved_concurrency=reserved_concurrency, provisioned_concurrency=provisioned_concurrency
        )
        functions = tuple(
            replace(function, settings=replace(function.settings, **_given(**changes)), **concurrency)
            for function in self.functions
        )
        return replace(self, functions=functions)

    def values_of(self, variable: str) -> set[str]:
        """Values of a variable in the functions."""
        environs = [function.settings.environ for function in self.functions]
        return {environ[variable] for environ in environs if variable in environ}


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def load_template(
    path: Path, parameters: Mapping[str, str] | None = None, region: str = REGION, url: str = ""
) -> Template:
    """The template at `path`.

    parameters: values of the template's parameters, over their defaults.
    url: where the emulator listens, for what refers to the API's address.
    Raises TemplateError when it is wrong, or has no function that can be run.
    """
    overrides = parameters or {}
    try:
        document = read_with_applications(path)
        names = pseudo_parameters(region) | accepted_values(
            declared_parameters(document, overrides), overrides
        )
        return _Reader(path, Resources(document, names, url), region).read()
    except RecursionError as exc:
        raise TemplateError(f"{path} refers to itself, or is nested too deeply. Write it flat.") from exc


class _Reader:
    """Reads one template, and notes what of it cannot be run."""

    def __init__(self, path: Path, resources: Resources, region: str) -> None:
        self._path = path
        self._resources = resources
        self._region = region
        self._notes: list[Note] = []
        self._left_out: set[str] = set()
        self._functions = FunctionReader(resources, path.resolve().parent, region, self._notes)

    def read(self) -> Template:
        resources = self._resources
        functions = tuple(self._runnable(self._functions.read, FUNCTION, PLAIN_FUNCTION))
        if not functions:
            raise TemplateError(self._nothing_to_run())
        apis = read_apis(ApiSource(resources, functions), self._notes)
        tables = tuple(self._runnable(partial(read_table, resources), TABLE, SIMPLE_TABLE))
        buckets = tuple(self._runnable(partial(read_bucket, resources), BUCKET))
        queues = tuple(self._runnable(partial(read_queue, resources, self._notes), QUEUE))
        sources = EventSourceReader(resources, functions, self._region, self._notes).read(queues)
        notes = (*self._notes, *unread(resources, self._left_out))
        return Template(functions, apis, tables, buckets, queues, sources, notes)

    def _runnable(self, read: Callable[[str, Properties], Read], *types: str) -> Iterator[Read]:
        """Results of `read` for resources of some types, without resources that cannot run here."""
        for name, properties in self._resources.of_types(*types):
            try:
                yield read(name, properties)
            except (NotRunnable, NotKnown) as exc:
                self._left_out.add(name)
                self._notes.append(Note(Effect.LEFT_OUT, name, str(exc)))

    def _nothing_to_run(self) -> str:
        left_out = " ".join(lines(self._notes))
        return (
            f"{self._path} has no function that can be run here: there is nothing to run. "
            f"{left_out or f'No resource is of type {FUNCTION} or {PLAIN_FUNCTION}.'} "
            "Add a function, or name another template with --template."
        )
