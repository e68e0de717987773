"""Values that a definition takes from its input or its context, by JSONPath."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonpath_ng import JSONPath
from jsonpath_ng.parser import parse

from coldframe_local.emulator.state_machines.definition import DefinitionUnusable

Context = Mapping[str, Any]


class PathNotFound(Exception):
    """A path that leads nowhere; `States.ParameterPathFailure` on AWS."""


def value_at(path: str, state_input: Any, context: Context) -> Any:
    """Value at `$…` in the input, or at `$$…` in the context. Raises PathNotFound."""
    if path == "$":
        return state_input
    root, root_path = (context, path[1:]) if path.startswith("$$") else (state_input, path)
    values = [match.value for match in _parsed(root_path).find(root)]
    if not values:
        raise PathNotFound(f"The path {path} leads nowhere.")
    return values if "*" in root_path or ".." in root_path else values[0]


def filled(template: Any, state_input: Any, context: Context) -> Any:
    """A payload template: where a name ends in `.$`, the value at its path."""
    if isinstance(template, list):
        return [filled(each, state_input, context) for each in template]
    if not isinstance(template, dict):
        return template
    return {
        name.removesuffix(".$"): (
            value_at(value, state_input, context)
            if name.endswith(".$")
            else filled(value, state_input, context)
        )
        for name, value in template.items()
    }


@cache
def _parsed(path: str) -> JSONPath:
    if not path.startswith("$"):
        raise DefinitionUnusable(f"{path} is not a path that can be run here: intrinsic functions are not.")
    try:
        return parse(path)
    except Exception as exc:  # the library has no type of its own for this
        raise DefinitionUnusable(f"{path} is not a JSONPath.") from exc
