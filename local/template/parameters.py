"""Parameters of a template, as CloudFormation takes them: declared, given, checked.

Pure. https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html
(read 2026-11).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from local.lambda_service.settings import ACCOUNT_ID
from local.template.intrinsics import TemplateError, as_text

STACK_NAME = "coldframe"
REGION = "us-east-1"

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def pseudo_parameters(region: str = REGION) -> dict[str, Any]:
    """Those that every template has, for a stack of this machine."""
    return {
        "AWS::AccountId": ACCOUNT_ID,
        "AWS::NotificationARNs": [],
        "AWS::Partition": "aws",
        "AWS::Region": region,
        "AWS::StackId": f"arn:aws:cloudformation:{region}:{ACCOUNT_ID}:stack/{STACK_NAME}/local",
        "AWS::StackName": STACK_NAME,
        "AWS::URLSuffix": "amazonaws.com",
    }


def parameter_values(declared: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    """The value of each parameter: the one that was given, or the default as it is written. Lists are split.

    One that is read from SSM has its value in the account: it is missing here unless it was given.
    Raises TemplateError for one that has neither.
    """
    values = {}
    for name, declaration in declared.items():
        value = given.get(name, declaration.get("Default"))
        if value is None:
            raise TemplateError(f"The parameter {name} has no default. Give it: --parameter {name}=VALUE.")
        if name in given or not _is_read_from_ssm(declaration):
            values[name] = _items(value) if _is_list(declaration) else value
    return values


def _is_read_from_ssm(declaration: Mapping[str, Any]) -> bool:
    """Whether a parameter names one of Systems Manager, which holds the value."""
    return str(declaration.get("Type")).startswith("AWS::SSM::")


def why_refused(name: str, declaration: Mapping[str, Any], value: Any) -> str | None:
    """What CloudFormation has against a parameter's value, as a clause; None: nothing."""
    for item in map(as_text, value if isinstance(value, list) else [value]):
        expected = _expected(declaration, item)
        if expected is not None:
            found = f"{name} is {item if _NUMBER.fullmatch(item) else repr(item)}"
            description = declaration.get("ConstraintDescription")
            return f"{found}: it {description}" if description else f"{found}, expected {expected}"
    return None


def _expected(declaration: Mapping[str, Any], item: str) -> str | None:
    """The constraint that a value, or an item of a list, breaks."""
    allowed, pattern = declaration.get("AllowedValues"), declaration.get("AllowedPattern")
    if allowed and item not in map(as_text, allowed):
        return f"one of {allowed}"
    if pattern and not re.fullmatch(pattern, item):
        return f"the pattern {pattern}"
    if declaration.get("Type") not in ("Number", "List<Number>"):
        return _bounds(len(item), declaration.get("MinLength"), declaration.get("MaxLength"), " characters")
    if not _NUMBER.fullmatch(item):
        return "a number"
    return _bounds(float(item), declaration.get("MinValue"), declaration.get("MaxValue"))


def _bounds(number: float, low: Any, high: Any, unit: str = "") -> str | None:
    """Both bounds in words, if the number is outside."""
    if (low is None or float(low) <= number) and (high is None or number <= float(high)):
        return None
    words = [f"at least {low}{unit}"] * (low is not None) + [f"at most {high}{unit}"] * (high is not None)
    return " and ".join(words)


def _is_list(declaration: Mapping[str, Any]) -> bool:
    kind = str(declaration.get("Type"))
    return kind == "CommaDelimitedList" or "List<" in kind


def _items(value: Any) -> list[str]:
    return [item.strip() for item in as_text(value).split(",")]
