"""Values of a template as they should be, or errors that name them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from coldframe_local.emulator.template.syntax.errors import TemplateError


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


def as_word(value: Any, where: str) -> str:
    """The text; a number or a truth value as CloudFormation writes it."""
    if not isinstance(value, (str, int, float)):
        raise TemplateError(f"{where} is {value!r}, expected text.")
    return str(value).lower() if isinstance(value, bool) else str(value)


def as_number(value: Any, where: str) -> float:
    """The finite number, which may be written as text."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise TemplateError(f"{where} is {value!r}, expected a number.")
    return number


def as_whole_number(value: Any, where: str) -> int:
    """The whole number, which may be written as text."""
    try:
        number = as_number(value, where)
    except TemplateError:
        number = math.nan
    if not number.is_integer():
        raise TemplateError(f"{where} is {value!r}, expected a whole number.")
    return int(number)
