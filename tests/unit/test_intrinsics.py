"""CloudFormation's intrinsic functions, evaluated without CloudFormation."""

from __future__ import annotations

from typing import Any

import pytest

from local.intrinsics import Intrinsics, TemplateError

NAMES = {"Stage": "prod", "Zones": ["a", "b"], "AWS::Region": "us-east-1"}
CONDITIONS = {
    "IsProd": {"Fn::Equals": [{"Ref": "Stage"}, "prod"]},
    "IsTest": {"Fn::Not": [{"Condition": "IsProd"}]},
    "Either": {"Fn::Or": [{"Condition": "IsTest"}, {"Condition": "IsProd"}]},
    "Both": {"Fn::And": [{"Condition": "IsTest"}, {"Condition": "IsProd"}]},
}
MAPPINGS = {"Sizes": {"prod": {"memory": 1769}}}


def identity(name: str, attribute: str | None) -> str | None:
    known = {
        ("Table", None): "table-1",
        ("Table", "Arn"): "arn:table-1",
        ("Function.Alias", None): "arn:live",
    }
    return known.get((name, attribute))


def resolved(value: Any) -> Any:
    return Intrinsics(NAMES, identity, CONDITIONS, MAPPINGS).resolve(value, "Here")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", "text"),
        (3, 3),
        ({"Ref": "Stage"}, "prod"),
        ({"Ref": "Table"}, "table-1"),
        ({"Ref": "Function.Alias"}, "arn:live"),
        ({"Fn::GetAtt": ["Table", "Arn"]}, "arn:table-1"),
        ({"Fn::GetAtt": "Table.Arn"}, "arn:table-1"),
        ({"Fn::Sub": "${AWS::Region}/${Table}/${Table.Arn}"}, "us-east-1/table-1/arn:table-1"),
        ({"Fn::Sub": "${Function.Alias}"}, "arn:live"),
        ({"Fn::Sub": ["${own}-${Stage}", {"own": {"Ref": "Table"}}]}, "table-1-prod"),
        ({"Fn::Sub": "${!literal}"}, "${literal}"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Stage"}, 1]]}, "a-prod-1"),
        ({"Fn::Join": [",", {"Ref": "Zones"}]}, "a,b"),
        ({"Fn::Split": ["-", "a-b"]}, ["a", "b"]),
        ({"Fn::Select": [1, {"Fn::Split": ["-", "a-b"]}]}, "b"),
        ({"Fn::Select": ["0", {"Ref": "Zones"}]}, "a"),
        ({"Fn::FindInMap": ["Sizes", {"Ref": "Stage"}, "memory"]}, 1769),
        ({"Fn::Base64": {"Ref": "Stage"}}, "cHJvZA=="),
        ({"Fn::If": ["IsProd", "yes", "no"]}, "yes"),
        ({"Fn::If": ["IsTest", "yes", "no"]}, "no"),
        ({"Fn::If": ["Either", "yes", "no"]}, "yes"),
        ({"Fn::If": ["Both", "yes", "no"]}, "no"),
        ({"a": {"Ref": "AWS::NoValue"}, "b": 1}, {"b": 1}),
        ([{"Fn::If": ["IsTest", 1, {"Ref": "AWS::NoValue"}]}, 2], [2]),
        ({"Ref": "AWS::NoValue"}, None),
        ({"nested": [{"deep": {"Ref": "Stage"}}]}, {"nested": [{"deep": "prod"}]}),
    ],
)  # fmt: skip
def test_values(value: Any, expected: Any) -> None:
    """Each function gives what CloudFormation would."""
    assert resolved(value) == expected


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"Ref": "Nowhere"}, "Here refers to Nowhere"),
        ({"Fn::GetAtt": ["Table", "Colour"]}, "Here refers to Table.Colour"),
        ({"deep": [{"Fn::Sub": "${Nowhere.Arn}"}]}, r"Here.deep\[0\] refers to Nowhere.Arn"),
        ({"Fn::ImportValue": "other-stack"}, "Here uses Fn::ImportValue"),
        ({"Fn::If": ["Never", 1, 2]}, "the condition Never, expected one of"),
        ({"Fn::FindInMap": ["Sizes", "test", "memory"]}, "have no Sizes.test.memory"),
    ],
)
def test_what_cannot_be_evaluated_is_named(value: Any, said: str) -> None:
    """An error says where in the template, what was found, and what to do."""
    with pytest.raises(TemplateError, match=said):
        resolved(value)
