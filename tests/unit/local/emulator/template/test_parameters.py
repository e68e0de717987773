"""Parameters of a template: their values, and which of them CloudFormation refuses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe_local.emulator.lambda_service.settings import ACCOUNT_ID
from coldframe_local.emulator.template.syntax.errors import TemplateError
from coldframe_local.emulator.template.syntax.parameters import (
    parameter_values,
    pseudo_parameters,
    why_refused,
)

LIST = {"Type": "CommaDelimitedList", "Default": "a, b"}
SSM = {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/memory"}


@pytest.mark.parametrize(
    ("declaration", "given", "value"),
    [
        ({"Type": "String", "Default": "a"}, None, "a"),
        ({"Type": "String", "Default": "a"}, "b", "b"),
        ({"Type": "String", "Default": ""}, None, ""),
        ({"Type": "Number", "Default": 7}, None, 7),
        ({"Type": "Number", "Default": 7}, "8", "8"),
        (LIST, None, ["a", "b"]),
        (LIST, "c", ["c"]),
        ({"Type": "List<Number>", "Default": "1,2"}, None, ["1", "2"]),
        (SSM, "1769", "1769"),
    ],
)
def test_value(declaration: dict[str, Any], given: str | None, value: Any) -> None:
    """A parameter has the value that is given, or its default; lists are lists of their items."""
    assert parameter_values({"P": declaration}, {} if given is None else {"P": given}) == {"P": value}


def test_a_parameter_of_ssm_is_unknown() -> None:
    """Its default names a place in the account, which is not a value."""
    assert parameter_values({"P": SSM}, {}) == {}


def test_a_parameter_without_default_must_be_given() -> None:
    """The error shows how to give it."""
    with pytest.raises(TemplateError, match=r"P has no default\. Give it: --parameter P=VALUE"):
        parameter_values({"P": {"Type": "String"}}, {})


NUMBER = {"Type": "Number", "MinValue": 1, "MaxValue": 9}
WORD = {"Type": "String", "AllowedPattern": "[a-z]*", "MinLength": 2, "MaxLength": 3}
DESCRIBED = {**WORD, "ConstraintDescription": "must be a short word"}
CHOICE = {"Type": "String", "AllowedValues": [True, 1, "c"]}


@pytest.mark.parametrize(
    ("declaration", "value", "reason"),
    [
        (NUMBER, "0", "P is 0, expected at least 1 and at most 9"),
        (NUMBER, "9.5", "P is 9.5, expected at least 1 and at most 9"),
        (NUMBER, "much", "P is 'much', expected a number"),
        (NUMBER, "nan", "P is 'nan', expected a number"),
        ({"Type": "Number", "MaxValue": 9}, 10, "P is 10, expected at most 9"),
        ({"Type": "Number", "MinValue": "1"}, "0", "P is 0, expected at least 1"),
        ({"Type": "List<Number>"}, ["1", "a"], "P is 'a', expected a number"),
        (WORD, "A", "P is 'A', expected the pattern [a-z]*"),
        (WORD, "a", "P is 'a', expected at least 2 characters and at most 3 characters"),
        (DESCRIBED, "a", "P is 'a': it must be a short word"),
        (CHOICE, "d", "P is 'd', expected one of [True, 1, 'c']"),
        ({**LIST, "AllowedValues": ["a", "b"]}, ["a", "c"], "P is 'c', expected one of ['a', 'b']"),
        ({**WORD, "NoEcho": True}, "A", "P is a text of 1 characters, expected the pattern [a-z]*"),
        ({**NUMBER, "NoEcho": "true"}, "0", "P is a text of 1 characters, expected at least 1 and at most 9"),
        (WORD, "S3cret" * 10, "P is a text of 60 characters, expected the pattern [a-z]*"),
    ],
)  # fmt: skip
def test_what_is_refused(declaration: dict[str, Any], value: Any, reason: str) -> None:
    """The reason says what was found and what was expected, in the template's own words where it has some."""
    assert why_refused("P", declaration, value) == reason


@pytest.mark.parametrize(
    ("declaration", "values"),
    [
        (NUMBER, ["1", "9", "8.5", "1e0", 5]),
        (WORD, ["ab", "abc"]),
        (CHOICE, ["true", True, "1", 1, "c"]),
        ({**LIST, "AllowedValues": ["a", "b"]}, [["a", "b"], ["b"]]),
        ({"Type": "String"}, ["", "anything"]),
    ],
)
def test_what_is_accepted(declaration: dict[str, Any], values: list[Any]) -> None:
    """Bounds belong to what they bound; values are compared as text."""
    assert [why_refused("P", declaration, value) for value in values] == [None] * len(values)


@given(*[st.integers(-(2**53), 2**53)] * 3)
def test_numbers_between_their_bounds_are_accepted(number: int, low: int, high: int) -> None:
    """And no others."""
    declaration = {"Type": "Number", "MinValue": low, "MaxValue": high}
    assert (why_refused("P", declaration, str(number)) is None) == (low <= number <= high)


def test_pseudo_parameters_are_of_one_account_and_region() -> None:
    """The stack's own ARN is in the region and account that the others name."""
    names = pseudo_parameters("eu-west-1")
    assert names["AWS::AccountId"] == ACCOUNT_ID
    region, account = names["AWS::StackId"].split(":")[3:5]
    assert (region, account) == (names["AWS::Region"], names["AWS::AccountId"]) == ("eu-west-1", ACCOUNT_ID)
