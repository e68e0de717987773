"""CloudFormation's intrinsic functions, evaluated for a stack that exists on this machine only.

Pure. https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
(read 2026-11).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any

from coldframe.errors import ColdframeError

# What a resource is called: of (logical id, attribute), or of (logical id, None) for `Ref`.
# None: there is no such resource, or it has no such attribute.
Identity = Callable[[str, str | None], str | None]

_VARIABLE = re.compile(r"\$\{([^}]+)\}")


class TemplateError(ColdframeError):
    """A template that cannot be run; the text says what was found, expected and what to do."""


class _NoValue:
    """`AWS::NoValue`: the property is left out."""


_NO_VALUE = _NoValue()


class Intrinsics:
    """Evaluates values of one template.

    names: parameters and pseudo parameters, by name.
    """

    def __init__(
        self,
        names: Mapping[str, Any],
        identity: Identity,
        conditions: Mapping[str, Any],
        mappings: Mapping[str, Any],
    ) -> None:
        self._names = names
        self._identity = identity
        self._conditions = conditions
        self._mappings = mappings
        self._functions: dict[str, Callable[[Any, str], Any]] = {
            "Ref": self._ref,
            "Condition": self._condition,
            "Fn::Sub": self._sub,
            "Fn::GetAtt": self._get_att,
            "Fn::If": self._if,
            "Fn::Equals": lambda value, where: len({str(part) for part in self._list(value, where)}) == 1,
            "Fn::And": lambda value, where: all(self._list(value, where)),
            "Fn::Or": lambda value, where: any(self._list(value, where)),
            "Fn::Not": lambda value, where: not self._list(value, where)[0],
            "Fn::Join": self._join,
            "Fn::Split": self._split,
            "Fn::Select": self._select,
            "Fn::FindInMap": self._find_in_map,
            "Fn::Base64": lambda value, where: base64.b64encode(
                str(self.resolve(value, where)).encode()
            ).decode(),
        }

    def resolve(self, value: Any, where: str) -> Any:
        """`value` without intrinsic functions; `where` is its place, for errors.

        Raises TemplateError for a name that is not there and a function that is not known.
        """
        resolved = self._resolve(value, where)
        return None if resolved is _NO_VALUE else resolved

    def _resolve(self, value: Any, where: str) -> Any:
        if isinstance(value, dict):
            return self._resolve_mapping(value, where)
        if isinstance(value, list):
            resolved = [self._resolve(item, f"{where}[{index}]") for index, item in enumerate(value)]
            return [item for item in resolved if item is not _NO_VALUE]
        return value

    def _resolve_mapping(self, value: dict[str, Any], where: str) -> Any:
        if len(value) == 1:
            [(name, argument)] = value.items()
            if name in self._functions:
                return self._functions[name](argument, where)
            if isinstance(name, str) and name.startswith("Fn::"):
                raise TemplateError(
                    f"{where} uses {name}, which cannot be evaluated on this machine. "
                    "Put a parameter in its place, and give it with --parameter."
                )
        resolved = {name: self._resolve(item, f"{where}.{name}") for name, item in value.items()}
        return {name: item for name, item in resolved.items() if item is not _NO_VALUE}

    def _list(self, value: Any, where: str) -> list[Any]:
        if not isinstance(value, list) or not value:
            raise TemplateError(f"{where}: found {value!r}, expected a list. Correct the template.")
        return [self._resolve(item, where) for item in value]

    def _ref(self, name: Any, where: str) -> Any:
        if name == "AWS::NoValue":
            return _NO_VALUE
        if name in self._names:
            return self._names[name]
        return self._identified(str(name), None, where)

    def _get_att(self, value: Any, where: str) -> Any:
        parts = value.split(".", 1) if isinstance(value, str) else value
        if not isinstance(parts, list) or len(parts) != 2:
            raise TemplateError(f"{where}: found GetAtt {value!r}, expected a resource and its attribute.")
        return self._identified(str(parts[0]), str(self._resolve(parts[1], where)), where)

    def _identified(self, name: str, attribute: str | None, where: str) -> str:
        found = self._identity(name, attribute)
        if found is None:
            asked = name if attribute is None else f"{name}.{attribute}"
            raise TemplateError(
                f"{where} refers to {asked}, which is no parameter, resource or attribute that exists here. "
                "Correct the name, or put a parameter in its place and give it with --parameter."
            )
        return found

    def _sub(self, value: Any, where: str) -> str:
        text, own = (value, {}) if isinstance(value, str) else value
        variables = {name: self._resolve(item, where) for name, item in own.items()}

        def substitute(match: re.Match[str]) -> str:
            name = match[1].strip()
            if name.startswith("!"):  # ${!literal}
                return f"${{{name[1:]}}}"
            if name in variables:
                return _text(variables[name])
            resource, dot, attribute = name.partition(".")
            if name in self._names or not dot:
                return _text(self._ref(name, where))
            # `Function.Alias` is SAM's: a reference with a dot.
            found = self._identity(name, None)
            return found if found is not None else self._identified(resource, attribute, where)

        return _VARIABLE.sub(substitute, text)

    def _condition(self, name: Any, where: str) -> bool:
        if name not in self._conditions:
            raise TemplateError(
                f"{where} uses the condition {name}, expected one of {sorted(self._conditions)}. "
                "Add it to the template's Conditions."
            )
        return bool(self._resolve(self._conditions[name], f"Conditions.{name}"))

    def _if(self, value: Any, where: str) -> Any:
        condition, then, otherwise = value
        return self._resolve(then if self._condition(condition, where) else otherwise, where)

    def _join(self, value: Any, where: str) -> str:
        separator, items = value
        return str(separator).join(_text(item) for item in self._list(self._resolve(items, where), where))

    def _split(self, value: Any, where: str) -> list[str]:
        separator, text = value
        return str(self._resolve(text, where)).split(separator)

    def _select(self, value: Any, where: str) -> Any:
        index, items = value
        return self._list(self._resolve(items, where), where)[int(self._resolve(index, where))]

    def _find_in_map(self, value: Any, where: str) -> Any:
        name, first, second = (str(self._resolve(part, where)) for part in value)
        try:
            return self._mappings[name][first][second]
        except KeyError as exc:
            raise TemplateError(f"{where}: the template's Mappings have no {name}.{first}.{second}.") from exc


def _text(value: Any) -> str:
    """A value inside a string, as CloudFormation writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
