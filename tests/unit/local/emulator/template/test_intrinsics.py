"""CloudFormation's intrinsic functions, evaluated completely, and partially: as far as parameters go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe_local.emulator.template.syntax.errors import TemplateError
from coldframe_local.emulator.template.syntax.intrinsics import Intrinsics, as_text

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
        ({"Fn::Sub": "${Zones}${AWS::NoValue}"}, "a,b"),
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
        ({"Fn::ImportValue": "other-stack"}, "Here: Fn::ImportValue cannot be evaluated"),
        ({"Fn::If": ["Never", 1, 2]}, "the condition Never, expected one of"),
        ({"Fn::If": ["IsProd", 1]}, r"Here: Fn::If cannot take \['IsProd', 1\]"),
        ({"Fn::Join": ["-", "abc"]}, r"Here: Fn::Join cannot take \['-', 'abc'\]"),
        ({"Fn::Select": [2, {"Ref": "Zones"}]}, r"Here: Fn::Select cannot take \[2, \['a', 'b'\]\]"),
        ({"Fn::FindInMap": ["Sizes", "test", "memory"]}, "have no Sizes.test.memory"),
    ],
)
def test_what_cannot_be_evaluated_is_named(value: Any, said: str) -> None:
    """An error says where in the template, what was found, and what to do."""
    with pytest.raises(TemplateError, match=said):
        resolved(value)


# Partial evaluation: before a deployment.

MODES = {
    "Yes": {"Fn::Equals": [{"Ref": "Mode"}, "on"]},
    "No": {"Fn::Not": [{"Condition": "Yes"}]},
    "Both": {"Fn::And": [{"Condition": "Yes"}, {"Condition": "No"}]},
    "Either": {"Fn::Or": [{"Condition": "Yes"}, {"Condition": "No"}]},
}
PARTIAL = Intrinsics({"Mode": "on", "Size": 7, "AWS::Region": "us-east-1"}, None, MODES, MAPPINGS)
NOTHING = {"Ref": "AWS::NoValue"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Ref": "Size"}, 7),
        ({"Ref": "AWS::Region"}, "us-east-1"),
        ({"Ref": "Table"}, {"Ref": "Table"}),
        ({"Fn::GetAtt": ["Table", "Arn"]}, {"Fn::GetAtt": ["Table", "Arn"]}),
        ({"Fn::GetAtt": "Table.Arn"}, {"Fn::GetAtt": ["Table", "Arn"]}),
        ({"Fn::Sub": "${Size} MB in ${AWS::Region}"}, "7 MB in us-east-1"),
        ({"Fn::Sub": "${Table.Arn}/${Size}"}, {"Fn::Sub": "${Table.Arn}/7"}),
        ({"Fn::Sub": ["${A} ${Size}", {"A": {"Ref": "Mode"}}]}, "on 7"),
        ({"Fn::Sub": ["${A}", {"A": {"Ref": "Table"}}]}, {"Fn::Sub": ["${A}", {"A": {"Ref": "Table"}}]}),
        ({"Fn::Sub": "${!Size}"}, "${Size}"),
        ({"Fn::Sub": "${!Size} of ${Table}"}, {"Fn::Sub": "${!Size} of ${Table}"}),
        ({"Fn::If": ["Yes", "a", "b"]}, "a"),
        ({"Fn::If": ["No", "a", {"Fn::If": ["Yes", {"Ref": "Size"}, "c"]}]}, 7),
        ({"x": {"Fn::If": ["No", 1, NOTHING]}, "y": 2}, {"y": 2}),
        ([1, {"Fn::If": ["Yes", NOTHING, 3]}, {"Ref": "Size"}], [1, 7]),
        ({"x": {"Fn::If": ["Yes", {"Fn::If": ["Yes", NOTHING, 1]}, 2]}}, {}),
        ({"Fn::Join": ["-", ["a", {"Ref": "Size"}]]}, "a-7"),
        ({"Fn::Join": ["-", [{"Ref": "T"}, {"Ref": "Size"}]]}, {"Fn::Join": ["-", [{"Ref": "T"}, 7]]}),
        ({"Fn::FindInMap": ["Sizes", "prod", "memory"]}, 1769),
        ({"Fn::ImportValue": {"Fn::Sub": "x-${Size}"}}, {"Fn::ImportValue": "x-7"}),
        ({"Condition": {"Bool": {"aws:SecureTransport": "false"}}},) * 2,  # of a policy
    ],
)  # fmt: skip
def test_what_only_deployment_decides_stays(value: Any, expected: Any) -> None:
    """What parameters decide is decided; what only exists once deployed stays a reference."""
    assert PARTIAL.resolve(value, "Here") == expected


@pytest.mark.parametrize(("name", "holds"), [("Yes", True), ("No", False), ("Both", False), ("Either", True)])
def test_condition(name: str, holds: bool) -> None:
    """Conditions by name, and what they are made of."""
    assert PARTIAL.holds(name, "Here") is holds


def test_numbers_and_texts_are_compared_as_text() -> None:
    """CloudFormation compares a number with what is written like it."""
    assert PARTIAL.holds({"Fn::Equals": [{"Ref": "Size"}, "7"]}, "Here")
    assert PARTIAL.holds({"Fn::Equals": [True, "true"]}, "Here")
    assert resolved({"Fn::Equals": [True, "true"]})


@pytest.mark.parametrize(
    "condition", [{"Fn::RefAll": "AWS::EC2::VPC::Id"}, {"Fn::Equals": [{"Ref": "FromSsm"}, "on"]}]
)
def test_a_condition_about_something_unknown_cannot_be_decided(condition: dict[str, Any]) -> None:
    """What is not made of parameters is refused by name, not guessed."""
    [function] = condition
    with pytest.raises(TemplateError, match=f"Here: the condition .*{function}.* cannot be decided"):
        PARTIAL.holds(condition, "Here")


LATER = {"Table": "table-1", "Key": "${Mode}-${!x}"}  # as deployment decides them
KINDS = st.sampled_from(["Mode", "Table", "Key"])
TEXTS = st.sampled_from(["a", "b-c", "", "${", "${Mode}", "!"]) | KINDS.map(lambda name: {"Ref": name})
PATTERNS = st.lists(
    st.sampled_from(["${Mode}", "${Table}", "${Table.Arn}", "${Key}", "${own}", "${!Mode}", "x"]), max_size=4
).map("".join)


def functions(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.tuples(PATTERNS, inner).map(lambda drawn: {"Fn::Sub": [drawn[0], {"own": drawn[1]}]}),
        st.lists(inner, max_size=3).map(lambda items: {"Fn::Join": ["-", items]}),
        st.tuples(inner, inner).map(lambda items: {"Fn::Select": [1, [*items, NOTHING]]}),
        inner.map(lambda item: {"Fn::Select": [0, {"Fn::Split": ["-", item]}]}),
        inner.map(lambda item: {"Fn::Base64": item}),
        st.tuples(inner, inner).map(lambda items: {"Fn::If": ["Yes", *items]}),
    )


@given(st.recursive(TEXTS, functions, max_leaves=8))
def test_evaluation_in_two_steps_is_evaluation_in_one(value: Any) -> None:
    """What partial evaluation leaves, evaluated once all is known, is what it would have been at once."""

    def deployed(name: str, attribute: str | None) -> str | None:
        return LATER.get(name) if attribute is None else f"arn:{LATER[name]}"

    complete = Intrinsics({"Mode": "on"}, deployed, MODES, {})
    partial = Intrinsics({"Mode": "on"}, None, MODES, {})
    assert complete.resolve(partial.resolve(value, "Here"), "Here") == complete.resolve(value, "Here")


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (7, "7"), (0.7, "0.7"), (True, "true"), (["a", False, 1], "a,false,1")],
)
def test_text(value: Any, text: str) -> None:
    """A value has one form as text wherever CloudFormation needs one."""
    assert as_text(value) == text
