"""Values of a template as they should be, or errors that name them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.template.intrinsics import TemplateError


def as_map(value: Any, where: str) -> Mapping[str, Any]:
    """The map, or an empty one where there is no value. Raises TemplateError, as all of these do."""
    if value is not None and not isinstance(value, dict):
        raise TemplateError(f"{where} is {value!r}, expected a map.")
    return value or {}


def as_list(value: Any, where: str) -> list[Any]:
    """The list, or an empty one where there is no value."""
    if value is not None and not isinstance(value, list):
        raise TemplateError(f"{where} is {value!r}, expected a list.")
    return value or []


def as_number(value: Any, where: str) -> float:
    """The number, which may be written as text."""
    try:
        return float(value)
    except (TypeError, ValueError) as exc:
        raise TemplateError(f"{where} is {value!r}, expected a number.") from exc


def as_whole_number(value: Any, where: str) -> int:
    """The whole number, which may be written as text."""
    try:
        return int(value)
    except (TypeError, ValueError) as exc:
        raise TemplateError(f"{where} is {value!r}, expected a whole number.") from exc
