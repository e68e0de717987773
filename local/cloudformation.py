"""The stack that CloudFormation would make of a SAM template: translated, its conditions decided.

What only exists once it is deployed (an ARN, a generated name) stays the reference that it is.
"""

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coldframe.errors import ColdframeError

_ROOT = Path(__file__).resolve().parent.parent
SAM_PYTHON = _ROOT / ".venv-sam" / "bin" / "python"
PSEUDO_PARAMETERS = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "us-east-1",
    "AWS::StackName": "coldframe",
    "AWS::URLSuffix": "amazonaws.com",
}


class TemplateError(ColdframeError):
    """The template cannot be read or translated, or a parameter is none of its own."""


@dataclass(frozen=True)
class Refusal:
    """Why CloudFormation refuses parameters, and what asks for it: a parameter or a rule of the template."""

    name: str
    reason: str


@dataclass(frozen=True)
class Stack:
    """What would be created.

    resources: by logical id, each with Type and Properties; those whose condition does not hold are left out.
    folders: of the code and content that functions and layers are made of, by logical id as it is written.
    refusals: what is wrong with the parameters.
    """

    path: Path
    parameters: Mapping[str, Any]
    resources: Mapping[str, dict[str, Any]]
    folders: Mapping[str, Path]
    refusals: tuple[Refusal, ...]

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Properties of the resources of a type, by logical id."""
        return {
            name: resource.get("Properties", {})
            for name, resource in self.resources.items()
            if resource["Type"] == kind
        }


def load_stack(path: Path, given: Mapping[str, str] | None = None) -> Stack:
    """The stack of the template at `path`; `given` are parameters over its defaults. Raises TemplateError."""
    documents = translated(path, given or {})
    return stack_of(path, documents["written"], documents["translated"], given or {})


def stack_of(
    path: Path, written: dict[str, Any], translated: dict[str, Any], given: Mapping[str, str]
) -> Stack:
    """The stack of a template that is translated already. Raises TemplateError."""
    declared: dict[str, Any] = written.get("Parameters", {})
    parameters = {name: given.get(name, facts.get("Default")) for name, facts in declared.items()}
    for name in given.keys() - declared.keys():
        raise TemplateError(f"{name} is no parameter of {path}. Known: {', '.join(sorted(declared))}.")
    for name, value in parameters.items():
        if value is None:
            raise TemplateError(f"Parameter {name} of {path} has no default. Add --parameter {name}=VALUE.")
    # Those of Systems Manager have their values in the account.
    known = {n: v for n, v in parameters.items() if not declared[n].get("Type", "").startswith("AWS::SSM")}
    resolver = Resolver(known, translated.get("Conditions", {}))
    resources = {
        name: resolver.resolve(resource)
        for name, resource in translated["Resources"].items()
        if "Condition" not in resource or resolver.condition(resource["Condition"])
    }
    refusals = (*_refused_values(declared, parameters), *_broken_rules(written.get("Rules", {}), resolver))
    return Stack(path, parameters, resources, _folders(path, written), refusals)


class Resolver:
    """Evaluates intrinsic functions as far as parameters decide them."""

    def __init__(self, parameters: Mapping[str, Any], conditions: Mapping[str, Any]) -> None:
        self._names = {**PSEUDO_PARAMETERS, **parameters}
        self._conditions = conditions

    def resolve(self, value: Any) -> Any:
        """`value` with everything decided that can be; references to resources stay."""
        if isinstance(value, list):
            return [self.resolve(item) for item in value if not self._is_nothing(item)]
        if not isinstance(value, dict):
            return value
        match value:
            case {"Ref": name} if name in self._names:
                return self._names[name]
            case {"Fn::If": [name, then, otherwise]}:
                return self.resolve(then if self.condition(name) else otherwise)
            case {"Fn::Sub": [str(text), dict(variables)]}:
                return self._substitute(text, {k: self.resolve(v) for k, v in variables.items()})
            case {"Fn::Sub": str(text)}:
                return self._substitute(text, {})
        return {key: self.resolve(item) for key, item in value.items() if not self._is_nothing(item)}

    def condition(self, value: Any) -> bool:
        """Whether a condition, by its name or written out, holds."""
        match value:
            case str(name) | {"Condition": str(name)}:
                return self.condition(self._conditions[name])
            case {"Fn::Equals": [one, other]}:
                return _text(self.resolve(one)) == _text(self.resolve(other))
            case {"Fn::Not": [inner]}:
                return not self.condition(inner)
            case {"Fn::And": list(inner)}:
                return all(self.condition(item) for item in inner)
            case {"Fn::Or": list(inner)}:
                return any(self.condition(item) for item in inner)
        raise TemplateError(f"Condition {json.dumps(value)} cannot be decided from parameters.")

    def _is_nothing(self, value: Any) -> bool:
        """Whether a value ends as AWS::NoValue, which takes its property away."""
        match value:
            case {"Ref": "AWS::NoValue"}:
                return True
            case {"Fn::If": [name, then, otherwise]}:
                return self._is_nothing(then if self.condition(name) else otherwise)
        return False

    def _substitute(self, text: str, variables: dict[str, Any]) -> Any:
        """`text` with the names that are known; a plain string once none is left."""
        left: dict[str, Any] = {}

        def replaced(found: re.Match[str]) -> str:
            name = found[1]
            value = variables.get(name, self._names.get(name))
            if value is None or isinstance(value, dict):
                if name in variables:
                    left[name] = value
                return found[0]
            return _text(value)

        done = re.sub(r"\$\{([^!}][^}]*)\}", replaced, text)
        if not re.search(r"\$\{[^!]", done):
            return done
        return {"Fn::Sub": [done, left] if left else done}


def _text(value: Any) -> str:
    """A value as CloudFormation compares and inserts it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def translated(path: Path, given: Mapping[str, str]) -> dict[str, Any]:
    """The template as it is `written` and as SAM has `translated` it. Raises TemplateError."""
    if not SAM_PYTHON.exists():
        raise TemplateError(
            f"{SAM_PYTHON} is missing: AWS's own translator reads the template. Run `make check`."
        )
    pairs = [f"{name}={value}" for name, value in given.items()]
    script = Path(__file__).with_name("translate.py")
    done = subprocess.run([SAM_PYTHON, script, path, *pairs], capture_output=True, text=True)
    if done.returncode:
        raise TemplateError(f"{path} {done.stderr.strip().splitlines()[-1]}.")
    documents: dict[str, Any] = json.loads(done.stdout)
    return documents


def _folders(path: Path, written: dict[str, Any]) -> dict[str, Path]:
    found = {}
    for name, resource in written["Resources"].items():
        properties = resource.get("Properties") or {}
        place = properties.get("CodeUri") or properties.get("ContentUri")
        if isinstance(place, str):
            found[name] = path.resolve().parent / place
    return found


def _refused_values(declared: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[Refusal]:
    refusals = []
    for name, facts in declared.items():
        value = _text(parameters[name])
        if why := _why_refused(value, facts):
            expected = facts.get("ConstraintDescription", why)
            refusals.append(Refusal(name, f'{name} is "{value}": it {expected}'))
    return refusals


def _why_refused(value: str, facts: Mapping[str, Any]) -> str | None:
    """What is said of a value that breaks a constraint of its parameter."""
    allowed = [_text(item) for item in facts.get("AllowedValues", [])]
    if allowed and value not in allowed:
        return f"must be one of {', '.join(allowed)}"
    if "AllowedPattern" in facts and not re.fullmatch(facts["AllowedPattern"], value):
        return f"must match {facts['AllowedPattern']}"
    if facts.get("Type") == "Number":
        if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value):
            return "must be a number"
        if "MinValue" in facts and float(value) < facts["MinValue"]:
            return f"must be {facts['MinValue']} or more"
        if "MaxValue" in facts and float(value) > facts["MaxValue"]:
            return f"must be {facts['MaxValue']} or less"
    return None


def _broken_rules(rules: Mapping[str, Any], resolver: Resolver) -> list[Refusal]:
    return [
        Refusal(name, assertion["AssertDescription"])
        for name, rule in rules.items()
        if "RuleCondition" not in rule or resolver.condition(rule["RuleCondition"])
        for assertion in rule["Assertions"]
        if not resolver.condition(assertion["Assert"])
    ]
