"""Rules of a template: what CloudFormation asks of parameters together, before it makes anything.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/rules-section-structure.html (read 2026-11).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from coldframe_local.emulator.template.syntax.errors import NotKnown, TemplateError
from coldframe_local.emulator.template.syntax.intrinsics import Intrinsics
from coldframe_local.emulator.template.syntax.values import as_list, as_map


def broken_rules(document: Mapping[str, Any], intrinsics: Intrinsics) -> Iterator[tuple[str, str]]:
    """(name, reason) of each assertion that does not hold.

    A rule about facts of an account, such as its VPCs, is left to AWS.
    Raises TemplateError for rules of another form.
    """
    for name, rule in as_map(document.get("Rules"), "Rules").items():
        place = f"Rules.{name}"
        try:
            for reason in _broken_assertions(as_map(rule, place), intrinsics, place):
                yield name, reason
        except NotKnown:
            continue


def _broken_assertions(rule: Mapping[str, Any], intrinsics: Intrinsics, place: str) -> Iterator[str]:
    if "RuleCondition" in rule and not intrinsics.holds(rule["RuleCondition"], f"{place}.RuleCondition"):
        return
    for number, item in enumerate(as_list(rule.get("Assertions"), f"{place}.Assertions")):
        where = f"{place}.Assertions[{number}]"
        assertion = as_map(item, where)
        if "Assert" not in assertion:
            raise TemplateError(f"{where} has no Assert. Add a condition.")
        if not intrinsics.holds(assertion["Assert"], f"{where}.Assert"):
            yield str(assertion.get("AssertDescription") or f"{where} does not hold")
