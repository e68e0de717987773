"""The stack that CloudFormation would make of a SAM template: translated, its conditions decided.

What only exists once it is deployed (an ARN, a generated name) stays the reference that it is: intrinsic
functions are evaluated partially.
"""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coldframe_local.emulator.template.syntax.applications import local_applications, read_with_applications
from coldframe_local.emulator.template.syntax.documents import read_document
from coldframe_local.emulator.template.syntax.errors import TemplateError
from coldframe_local.emulator.template.syntax.intrinsics import Intrinsics
from coldframe_local.emulator.template.syntax.parameters import (
    declared_parameters,
    parameter_values,
    pseudo_parameters,
    why_refused,
)
from coldframe_local.emulator.template.syntax.rules import broken_rules
from coldframe_local.paths import SAM_PYTHON


@dataclass(frozen=True)
class Refusal:
    """Why CloudFormation refuses parameters, and what asks for it: a parameter or a rule of the template."""

    name: str
    reason: str


@dataclass(frozen=True)
class Stack:
    """Resources that CloudFormation would create.

    resources: by logical id, each with Type and Properties; those whose condition does not hold are left out.
    folders: of the code and content that functions and layers are made of, by logical id as it is written.
    refusals: what is wrong with the parameters.
    """

    path: Path
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


def load_stack(path: Path, overrides: Mapping[str, str] | None = None) -> Stack:
    """The stack of the template at `path`. overrides: of parameters' defaults. Raises TemplateError."""
    documents = translated(path, overrides or {})
    return stack_of(path, documents["written"], documents["translated"], overrides or {})


def stack_of(
    path: Path, source: dict[str, Any], translated: dict[str, Any], overrides: Mapping[str, str]
) -> Stack:
    """The stack of a template that is translated already. Raises TemplateError."""
    declared = declared_parameters(source, overrides)
    parameters = parameter_values(declared, overrides)
    conditions, mappings = translated.get("Conditions", {}), translated.get("Mappings", {})
    intrinsics = Intrinsics(pseudo_parameters() | parameters, None, conditions, mappings)
    resources = {
        name: intrinsics.resolve(resource, name)
        for name, resource in translated["Resources"].items()
        if "Condition" not in resource or intrinsics.holds(resource["Condition"], f"{name}.Condition")
    }
    broken = (Refusal(name, reason) for name, reason in broken_rules(source, intrinsics))
    refusals = (*_refused(declared, parameters), *broken)
    return Stack(path, resources, _folders(path, source), refusals)


def translated(path: Path, overrides: Mapping[str, str]) -> dict[str, Any]:
    """The file's template, as `written`, and SAM's translation, as `translated`. Raises TemplateError."""
    if not SAM_PYTHON.exists():
        raise TemplateError(
            f"{SAM_PYTHON} is missing: AWS's own translator reads the template. Run `make check`."
        )
    whole = _with_applications(path)
    pairs = [f"{name}={value}" for name, value in overrides.items()]
    script = Path(__file__).with_name("translate.py")
    command = [SAM_PYTHON, script, "-" if whole else path, *pairs]
    done = subprocess.run(command, input=whole, capture_output=True, text=True)
    if done.returncode:
        raise TemplateError(f"{path} {done.stderr.strip().splitlines()[-1]}.")
    documents: dict[str, Any] = json.loads(done.stdout)
    return documents


def _with_applications(path: Path) -> str | None:
    """The template with its nested applications, as JSON; None: the translator reads the file as it is."""
    try:
        document = read_document(path)
    except TemplateError:
        return None  # the translator says what is wrong with it
    if not dict(local_applications(document, path)):
        return None
    return json.dumps(read_with_applications(path), default=str)


def _folders(path: Path, source: dict[str, Any]) -> dict[str, Path]:
    folders = {}
    for name, resource in source["Resources"].items():
        properties = resource.get("Properties") or {}
        place = properties.get("CodeUri") or properties.get("ContentUri")
        if isinstance(place, str):
            folders[name] = path.resolve().parent / place
    return folders


def _refused(declared: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[Refusal]:
    return [
        Refusal(name, reason)
        for name, value in parameters.items()
        if (reason := why_refused(name, declared[name], value)) is not None
    ]
