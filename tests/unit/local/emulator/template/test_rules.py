"""Rules: what a template asks of its parameters together."""

from typing import Any

import pytest

from coldframe_local.emulator.template.syntax.errors import TemplateError
from coldframe_local.emulator.template.syntax.intrinsics import Intrinsics
from coldframe_local.emulator.template.syntax.rules import broken_rules

NAMES = {"Mode": "on", "Key": "", "Zones": ["a", "b"]}


def broken(assertion: Any, partially: bool = False, **rule: Any) -> list[tuple[str, str]]:
    identity = None if partially else (lambda name, attribute: None)
    document = {"Rules": {"R": {"Assertions": [{"Assert": assertion, "AssertDescription": "no"}], **rule}}}
    return list(broken_rules(document, Intrinsics(NAMES, identity, {}, {})))


@pytest.mark.parametrize("partially", [False, True])
@pytest.mark.parametrize(
    ("assertion", "holds"),
    [
        ({"Fn::Equals": [{"Ref": "Mode"}, "on"]}, True),
        ({"Fn::Equals": [{"Ref": "Key"}, "k"]}, False),
        ({"Fn::Contains": [["on", "off"], {"Ref": "Mode"}]}, True),
        ({"Fn::Contains": [["off"], {"Ref": "Mode"}]}, False),
        ({"Fn::EachMemberIn": [{"Ref": "Zones"}, ["a", "b", "c"]]}, True),
        ({"Fn::EachMemberIn": [{"Ref": "Zones"}, ["a"]]}, False),
        ({"Fn::EachMemberEquals": [{"Ref": "Zones"}, "a"]}, False),
        ({"Fn::EachMemberEquals": [["a", "a"], "a"]}, True),
    ],
)
def test_assertions(assertion: Any, holds: bool, partially: bool) -> None:
    """One that does not hold is named with its description, by the emulator and by `coldframe check`."""
    assert broken(assertion, partially) == ([] if holds else [("R", "no")])


def test_a_rule_whose_condition_does_not_hold_asks_for_nothing() -> None:
    """Its assertions are not looked at."""
    never = {"Fn::Equals": [{"Ref": "Mode"}, "off"]}
    assert broken({"Fn::Equals": ["a", "b"]}, RuleCondition=never) == []


def test_a_rule_about_an_account_is_left_to_aws() -> None:
    """The emulator has no VPCs: it runs the template."""
    assert broken({"Fn::Contains": [{"Fn::RefAll": "AWS::EC2::VPC::Id"}, "vpc-1"]}) == []


def test_an_assertion_without_description_has_its_place() -> None:
    """Somebody has to find it."""
    rules = {"Rules": {"R": {"Assertions": [{"Assert": {"Fn::Equals": ["a", "b"]}}]}}}
    [(_, reason)] = broken_rules(rules, Intrinsics({}, None, {}, {}))
    assert reason == "Rules.R.Assertions[0] does not hold"


@pytest.mark.parametrize("rules", [[], {"R": 1}, {"R": {"Assertions": [1]}}, {"R": {"Assertions": [{}]}}])
def test_rules_of_another_form(rules: Any) -> None:
    """They are an error of the template."""
    with pytest.raises(TemplateError, match="Rules"):
        list(broken_rules({"Rules": rules}, Intrinsics({}, None, {}, {})))
