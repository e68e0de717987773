"""Parameters of a template, as CloudFormation takes them: declared, given, checked.

Pure. https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html
(read 2026-11).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from coldframe_local.emulator.lambda_service.settings import ACCOUNT_ID
from coldframe_local.emulator.template.syntax.errors import TemplateError
from coldframe_local.emulator.template.syntax.intrinsics import as_text
from coldframe_local.emulator.template.syntax.values import as_list, as_map, as_number, as_word

STACK_NAME = "coldframe"
REGION = "us-east-1"

_MOST_SHOWN = 40  # characters
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def pseudo_parameters(region: str = REGION) -> dict[str, Any]:
    """Pseudo parameters of every template, for a stack of this machine."""
    return {
        "AWS::AccountId": ACCOUNT_ID,
        "AWS::NotificationARNs": [],
        "AWS::Partition": "aws",
        "AWS::Region": region,
        "AWS::StackId": f"arn:aws:cloudformation:{region}:{ACCOUNT_ID}:stack/{STACK_NAME}/local",
        "AWS::StackName": STACK_NAME,
        "AWS::URLSuffix": "amazonaws.com",
    }


def declared_parameters(document: Mapping[str, Any], overrides: Mapping[str, str]) -> Mapping[str, Any]:
    """Parameters of a template. Raises TemplateError for a value of a parameter that does not exist."""
    declared = as_map(document.get("Parameters"), "Parameters")
    for name in overrides:
        if name not in declared:
            names = ", ".join(map(str, declared)) or "none"
            raise TemplateError(f"The template has no parameter {name}; its parameters: {names}.")
    return {name: as_map(declaration, f"Parameters.{name}") for name, declaration in declared.items()}


def parameter_values(declared: Mapping[str, Any], overrides: Mapping[str, str]) -> dict[str, Any]:
    """The value of each parameter: the one that was given, or the default as it is written. Lists are split.

    One that is read from SSM has its value in the account: it is missing here unless it was given.
    Raises TemplateError for one that has neither.
    """
    values: dict[str, Any] = {}
    for name, declaration in declared.items():
        value = overrides.get(name, declaration.get("Default"))
        if value is None:
            raise TemplateError(f"The parameter {name} has no default. Give it: --parameter {name}=VALUE.")
        if name in overrides or not _is_read_from_ssm(declaration):
            as_word(value, f"Parameters.{name}.Default")
            values[name] = _items(value) if _is_list(declaration) else value
    return values


def accepted_values(declared: Mapping[str, Any], overrides: Mapping[str, str]) -> dict[str, Any]:
    """The value of every parameter. Raises TemplateError for one that CloudFormation would not take."""
    values = parameter_values(declared, overrides)
    for name, declaration in declared.items():
        if name not in values:
            raise TemplateError(
                f"The parameter {name} is read from SSM on AWS. Give its value: --parameter {name}=VALUE."
            )
        if reason := why_refused(name, declaration, values[name]):
            raise TemplateError(f"The parameter {reason}.")
    return values


def _is_read_from_ssm(declaration: Mapping[str, Any]) -> bool:
    """Whether a parameter names one of Systems Manager, which holds the value."""
    return str(declaration.get("Type")).startswith("AWS::SSM::")


def why_refused(name: str, declaration: Mapping[str, Any], value: Any) -> str | None:
    """CloudFormation's objection to a parameter's value, as a clause; None without one."""
    for item in map(as_text, value if isinstance(value, list) else [value]):
        expected = _expected(name, declaration, item)
        if expected is not None:
            problem = f"{name} is {_shown(declaration, item)}"
            description = declaration.get("ConstraintDescription")
            return f"{problem}: it {description}" if description else f"{problem}, expected {expected}"
    return None


def _shown(declaration: Mapping[str, Any], item: str) -> str:
    """A value for people. A secret is not shown, nor a long value, which may be a key in the wrong place."""
    if _is_true(declaration.get("NoEcho")) or len(item) > _MOST_SHOWN:
        return f"a text of {len(item):,} characters"
    return item if _NUMBER.fullmatch(item) else repr(item)


def _is_true(value: Any) -> bool:
    return value is True or str(value).lower() == "true"


def _expected(name: str, declaration: Mapping[str, Any], item: str) -> str | None:
    """The constraint that a value, or an item of a list, breaks."""
    allowed = as_list(declaration.get("AllowedValues"), f"Parameters.{name}.AllowedValues")
    pattern = declaration.get("AllowedPattern")
    if allowed and item not in map(as_text, allowed):
        return f"one of {allowed}"
    if pattern and not _matches(pattern, item, f"Parameters.{name}.AllowedPattern"):
        return f"the pattern {pattern}"
    bounds = {
        key: as_number(declaration[key], f"Parameters.{name}.{key}")
        for key in ("MinLength", "MaxLength", "MinValue", "MaxValue")
        if declaration.get(key) is not None
    }
    if declaration.get("Type") not in ("Number", "List<Number>"):
        return _bounds(len(item), bounds.get("MinLength"), bounds.get("MaxLength"), " characters")
    if not _NUMBER.fullmatch(item):
        return "a number"
    return _bounds(float(item), bounds.get("MinValue"), bounds.get("MaxValue"))


def _matches(pattern: Any, item: str, where: str) -> bool:
    try:
        return re.fullmatch(as_word(pattern, where), item) is not None
    except re.error as exc:
        raise TemplateError(f"{where} is {pattern!r}, which is not a regular expression: {exc}.") from exc


def _bounds(number: float, low: float | None, high: float | None, unit: str = "") -> str | None:
    """Both bounds in words, if the number is outside."""
    if (low is None or low <= number) and (high is None or number <= high):
        return None
    words = [f"at least {low:g}{unit}"] if low is not None else []
    words += [f"at most {high:g}{unit}"] if high is not None else []
    return " and ".join(words)


def _is_list(declaration: Mapping[str, Any]) -> bool:
    kind = str(declaration.get("Type"))
    return kind == "CommaDelimitedList" or "List<" in kind


def _items(value: Any) -> list[str]:
    return [item.strip() for item in as_text(value).split(",")]
