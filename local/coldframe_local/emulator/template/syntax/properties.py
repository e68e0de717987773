"""The properties of a resource, read by name: each is resolved, checked, and remembered as read.

The emulator ignores the properties that nobody has read: see `coldframe_local.emulator.template.ignored`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from coldframe_local.emulator.template.syntax.errors import TemplateError
from coldframe_local.emulator.template.syntax.intrinsics import is_intrinsic
from coldframe_local.emulator.template.syntax.values import as_list, as_map, as_whole_number, as_word

# Evaluates the intrinsic functions of (value, its place in the template). Raises TemplateError.
Resolve = Callable[[Any, str], Any]


class Properties:
    """A map of a template. Every method that reads a value raises TemplateError where it is of another kind.

    where: its place in the template, "F.Environment". `resolve` is called for what is read and for nothing
    else: a property of no interest here may refer to what only an account knows.
    """

    def __init__(self, values: Mapping[str, Any], where: str, resolve: Resolve) -> None:
        self._values = values
        self._where = where
        self._resolve = resolve
        self._read: set[str] = set()
        self._maps: dict[str, Properties] = {}

    def place(self, key: str) -> str:
        """Where a property stands, for errors."""
        return f"{self._where}.{key}"

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def written(self, key: str) -> Any:
        """The value as it is written, intrinsic functions included; None where there is none."""
        self._read.add(key)
        return self._values.get(key)

    def value(self, key: str) -> Any:
        """The value; None where there is none, or `AWS::NoValue`."""
        return self._resolve(self.written(key), self.place(key))

    def word(self, key: str) -> str | None:
        """A text."""
        value = self.value(key)
        return None if value is None else as_word(value, self.place(key))

    def whole_number(self, key: str, least: int) -> int | None:
        """A whole number that is not below `least`."""
        value = self.value(key)
        number = None if value is None else as_whole_number(value, self.place(key))
        if number is not None and number < least:
            raise TemplateError(f"{self.place(key)} is {number}, expected at least {least}.")
        return number

    def items(self, key: str) -> list[Any]:
        """A list; empty where there is none."""
        return as_list(self.value(key), self.place(key))

    def map(self, key: str) -> Properties:
        """A map, whose properties are remembered one by one; empty where there is none."""
        if key not in self._maps:
            value = self._values.get(key)
            if is_intrinsic(value):
                value = self._resolve(value, self.place(key))
            place = self.place(key)
            self._maps[key] = Properties(as_map(value, place), place, self._resolve)
        return self._maps[key]

    def maps(self) -> Iterator[tuple[str, Properties]]:
        """All values, each of which must be a map, with their keys."""
        for key in self._values:
            yield key, self.map(key)

    def unread(self, path: str = "") -> Iterator[tuple[str, Any]]:
        """(path below the resource, value as it is written) of each property that nobody has read."""
        for key, value in self._values.items():
            inner = f"{path}.{key}" if path else str(key)
            if key in self._maps:
                yield from self._maps[key].unread(inner)
            elif key not in self._read and value is not None:
                yield inner, value
