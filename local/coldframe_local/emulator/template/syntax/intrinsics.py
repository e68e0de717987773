"""CloudFormation's intrinsic functions, evaluated before there is a stack.

What only deployment decides, an ARN or a generated name, is unknown until then. Evaluation is complete where
somebody says what resources are called on this machine: anything unknown is an error. It is partial where
nobody does: a function of something unknown stays as it is written.

Pure. https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
(read 2026-11).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from coldframe_local.emulator.template.syntax.errors import NotKnown, TemplateError

# What a resource is called: of (logical id, attribute), or of (logical id, None) for `Ref`.
# None: there is no such resource. Raises NotKnown for one whose name or attribute only AWS knows.
Identity = Callable[[str, str | None], str | None]

# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/dynamic-references.html, read 2026-11-21.
_DYNAMIC = "{{resolve:"
_PUT_A_PARAMETER = "Put a parameter in its place, and give it with --parameter"
_VARIABLE = re.compile(r"\$\{([^}]+)\}")
_KNOWN = {
    "Ref", "Condition", "Fn::And", "Fn::Base64", "Fn::Contains", "Fn::EachMemberEquals", "Fn::EachMemberIn",
    "Fn::Equals", "Fn::FindInMap", "Fn::GetAtt", "Fn::If", "Fn::Join", "Fn::Not", "Fn::Or", "Fn::Select",
    "Fn::Split", "Fn::Sub",
}  # fmt: skip


class _NoValue:
    """`AWS::NoValue`: the property is left out, and nothing is put into a string."""

    def __str__(self) -> str:
        return ""


_NO_VALUE = _NoValue()


def as_text(value: Any) -> str:
    """A value as CloudFormation hands it on, compares it and puts it into a string."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(as_text, value)) if isinstance(value, list) else str(value)


def is_intrinsic(value: Any) -> bool:
    """Whether a value is a function: a map whose one key is the function's name."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    [(name, argument)] = value.items()
    # A policy has conditions of its own, which are maps.
    is_condition = name == "Condition" and isinstance(argument, str)
    return is_condition or name == "Ref" or str(name).startswith("Fn::")


class Intrinsics:
    """Evaluates values of one template.

    names: parameters and pseudo parameters, by name.
    identity: what resources are called; None for partial evaluation.
    """

    def __init__(
        self,
        names: Mapping[str, Any],
        identity: Identity | None,
        conditions: Mapping[str, Any],
        mappings: Mapping[str, Any],
    ) -> None:
        self._names = names
        self._is_partial = identity is None
        self._identity = identity or (lambda name, attribute: None)
        self._conditions = conditions
        self._deciding: list[str] = []
        self._mappings = mappings

    def resolve(self, value: Any, where: str) -> Any:
        """`value` with its intrinsic functions evaluated; `where` is its place, for errors.

        Raises TemplateError for a function that is used wrongly, for a condition that cannot be decided and,
        unless evaluation is partial, for whatever is unknown.
        """
        resolved = self._resolve(value, where)
        return None if resolved is _NO_VALUE else resolved

    def holds(self, condition: Any, where: str) -> bool:
        """Whether a condition, by its name or written out, holds. Raises TemplateError if that is unknown."""
        if isinstance(condition, str):
            return self._named_condition(condition, where)
        value = self._resolve(condition, where)
        if not isinstance(value, bool):
            raise TemplateError(
                f"{where}: the condition {json.dumps(condition, default=str)} cannot be decided from "
                "parameters. Compare nothing else, and give parameters of SSM with --parameter."
            )
        return value

    def _named_condition(self, name: str, where: str) -> bool:
        if name not in self._conditions:
            raise TemplateError(
                f"{where} uses the condition {name}, expected one of {sorted(map(str, self._conditions))}. "
                "Add it to the template's Conditions."
            )
        if name in self._deciding:
            raise TemplateError(f"Conditions.{name} depends on itself. Write it without.")
        self._deciding.append(name)
        try:
            return self.holds(self._conditions[name], f"Conditions.{name}")
        finally:
            self._deciding.pop()

    def _resolve(self, value: Any, where: str) -> Any:
        if isinstance(value, list):
            items = [self._resolve(item, f"{where}[{index}]") for index, item in enumerate(value)]
            return [item for item in items if item is not _NO_VALUE]
        if is_intrinsic(value):
            [(function, argument)] = value.items()
            return self._evaluate(function, argument, where)
        if isinstance(value, dict):
            resolved = {name: self._resolve(item, f"{where}.{name}") for name, item in value.items()}
            return {name: item for name, item in resolved.items() if item is not _NO_VALUE}
        if isinstance(value, str) and _DYNAMIC in value and not self._is_partial:
            raise NotKnown(f"{value!r} is read by AWS during a deployment. {_PUT_A_PARAMETER}", where)
        return value

    def _evaluate(self, function: str, argument: Any, where: str) -> Any:
        """Those functions that look up names, or take less than all of their arguments."""
        match function, argument:
            case "Ref", "AWS::NoValue":
                return _NO_VALUE
            case "Ref", str(name):
                return self._ref(name, where)
            case "Fn::GetAtt", [str(resource), attribute]:
                return self._get_att(resource, self._resolve(attribute, where), where)
            case "Fn::GetAtt", str(path) if "." in path:
                return self._evaluate(function, path.split(".", 1), where)
            case "Fn::Sub", str(pattern):
                return self._sub(pattern, {}, where)
            case "Fn::Sub", [str(pattern), dict(own)]:
                return self._sub(pattern, {k: self._resolve(v, where) for k, v in own.items()}, where)
            case "Fn::If", [condition, then, otherwise]:
                return self._resolve(then if self.holds(condition, where) else otherwise, where)
            case "Condition", str(name):
                return self._named_condition(name, where)
            case "Fn::And", [*conditions]:
                return all(self.holds(each, where) for each in conditions)
            case "Fn::Or", [*conditions]:
                return any(self.holds(each, where) for each in conditions)
            case "Fn::Not", [condition]:
                return not self.holds(condition, where)
        if function not in _KNOWN and not self._is_partial:
            raise NotKnown(f"{function} cannot be evaluated on this machine. {_PUT_A_PARAMETER}", where)
        return self._apply(function, self._resolve(argument, f"{where}.{function}"), where)

    def _apply(self, function: str, argument: Any, where: str) -> Any:
        """Functions of values alone."""
        if function not in _KNOWN or _is_undecided(argument):
            return {function: argument}
        match function, argument:
            case "Fn::Equals", [one, other]:
                return as_text(one) == as_text(other)
            case "Fn::Contains", [[*items], item]:  # this one and the next two are for rules
                return as_text(item) in map(as_text, items)
            case "Fn::EachMemberEquals", [[*items], item]:
                return all(as_text(each) == as_text(item) for each in items)
            case "Fn::EachMemberIn", [[*items], [*others]]:
                return {*map(as_text, items)} <= {*map(as_text, others)}
            case "Fn::Join", [separator, [*items]]:
                return as_text(separator).join(map(as_text, items))
            case "Fn::Split", [separator, joined]:
                return as_text(joined).split(as_text(separator))
            case "Fn::Select", [index, [*items]] if as_text(index) in map(str, range(len(items))):
                return items[int(as_text(index))]
            case "Fn::FindInMap", [name, first, second]:
                return self._find_in_map(as_text(name), as_text(first), as_text(second), where)
            case "Fn::Base64", _:
                return base64.b64encode(as_text(argument).encode()).decode()
        raise TemplateError(f"{where}: {function} cannot take {argument!r}. Correct the template.")

    def _ref(self, name: str, where: str) -> Any:
        if name in self._names:
            return self._names[name]
        value = self._identified(name, None, where)
        return value if value is not None else self._unknown({"Ref": name}, name, where)

    def _identified(self, name: str, attribute: str | None, where: str) -> str | None:
        try:
            return self._identity(name, attribute)
        except NotKnown as exc:
            raise NotKnown(f"{exc.why}. {_PUT_A_PARAMETER}", where) from exc

    def _get_att(self, resource: str, attribute: Any, where: str) -> Any:
        value = self._identified(resource, as_text(attribute), where)
        if value is not None:
            return value
        return self._unknown({"Fn::GetAtt": [resource, attribute]}, f"{resource}.{as_text(attribute)}", where)

    def _unknown(self, reference: dict[str, Any], name: str, where: str) -> Any:
        """Unknown value: with partial evaluation the reference itself, otherwise an error."""
        if self._is_partial:
            return reference
        raise TemplateError(
            f"{where} refers to {name}, which is not a parameter, resource or attribute that exists here. "
            "Correct the name, or put a parameter in its place and give it with --parameter."
        )

    def _sub(self, pattern: str, own: Mapping[str, Any], where: str) -> Any:
        """own: variables of this `Fn::Sub` alone."""
        names = [
            name for variable in _VARIABLE.findall(pattern) if not (name := variable.strip()).startswith("!")
        ]
        values = {name: own[name] if name in own else self._variable(name, where) for name in names}
        is_decided = not any(map(_is_undecided, values.values()))
        # What could be taken for a variable once it has its place stays one, too.
        left = {
            name: value
            for name, value in values.items()
            if not is_decided and (_is_undecided(value) or not {*"${}"}.isdisjoint(as_text(value)))
        }

        def substitute(match: re.Match[str]) -> str:
            name = match[1].strip()
            if name.startswith("!"):  # ${!literal}
                return f"${{{name[1:]}}}" if is_decided else match[0]
            return match[0] if name in left else as_text(values[name])

        substituted = _VARIABLE.sub(substitute, pattern)
        if is_decided:
            return substituted
        own_left = {n: value for n, value in left.items() if n in own or not _is_undecided(value)}
        return {"Fn::Sub": [substituted, own_left] if own_left else substituted}

    def _variable(self, name: str, where: str) -> Any:
        """Value of `${name}`."""
        if name in self._names or "." not in name:
            return self._evaluate("Ref", name, where)
        # `Function.Alias` is SAM's: a reference with a dot.
        value = self._identified(name, None, where)
        return value if value is not None else self._evaluate("Fn::GetAtt", name, where)

    def _find_in_map(self, name: str, first: str, second: str, where: str) -> Any:
        try:
            return self._mappings[name][first][second]
        except (KeyError, TypeError) as exc:
            raise TemplateError(f"{where}: the template's Mappings have no {name}.{first}.{second}.") from exc


def _is_undecided(value: Any) -> bool:
    """Whether evaluation, a partial one, left some function in a value."""
    if isinstance(value, dict):
        return is_intrinsic(value) or any(map(_is_undecided, value.values()))
    return isinstance(value, list) and any(map(_is_undecided, value))
