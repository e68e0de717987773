"""A template with its nested applications written into it, as one template.

CloudFormation makes a stack of each application. Emulator and `coldframe check` look at what all stacks
together hold: here a resource `Function` of the application `Warmer` becomes the resource `WarmerFunction`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from coldframe_local.emulator.template.syntax.documents import read_document
from coldframe_local.emulator.template.syntax.errors import TemplateError
from coldframe_local.emulator.template.syntax.references import reference_to, renamed
from coldframe_local.emulator.template.syntax.resources import with_defaults
from coldframe_local.emulator.template.syntax.values import as_map

# Where each of them says which template it is made of.
_LOCATIONS = {"AWS::Serverless::Application": "Location", "AWS::CloudFormation::Stack": "TemplateURL"}
# Properties that name a folder or a file, from the folder of the template.
_FOLDERS = ("CodeUri", "ContentUri", "DefinitionUri", "DockerContext")
_OUTPUTS = "Outputs."


def read_with_applications(path: Path) -> dict[str, Any]:
    """The template at `path` and those of its applications, as one. Raises TemplateError.

    An application that is not on this machine (its Location is an address) stays as it is written.
    """
    document = read_document(path)
    locations = dict(local_applications(document, path))
    if not locations:
        return document
    whole = {
        **_without_globals(document),
        "Conditions": dict(_section(document, "Conditions", str(path))),
        "Mappings": dict(_section(document, "Mappings", str(path))),
    }
    outputs: dict[tuple[str, str], Any] = {}
    for name, location in locations.items():
        application = _Application(name, whole["Resources"].pop(name), location, path)
        whole["Resources"].update(application.resources())
        whole["Conditions"].update(application.conditions())
        whole["Mappings"].update(application.mappings())
        outputs.update(application.outputs())
    return dict(renamed(whole, lambda name, attribute: outputs.get((name, attribute or ""))))


def local_applications(document: Mapping[str, Any], path: Path) -> Iterator[tuple[str, Path]]:
    """(logical id, template) of the applications of the template at `path` that are files on this machine."""
    for name, resource in _section(document, "Resources", str(path)).items():
        key = _LOCATIONS.get(str(resource.get("Type"))) if isinstance(resource, dict) else None
        location = _section(resource, "Properties", name).get(key) if key else None
        if isinstance(location, str) and "://" not in location:
            yield name, path.parent / location


def _without_globals(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same template with its Globals in its resources: they are not for those of another template."""
    sections = _section(document, "Globals", "the template")
    resources = {name: _with_globals(each, sections) for name, each in document["Resources"].items()}
    return {**{key: value for key, value in document.items() if key != "Globals"}, "Resources": resources}


def _section(of: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    return as_map(of.get(name), f"{where}.{name}")


def _condition(resource: Mapping[str, Any], where: str) -> str | None:
    condition = resource.get("Condition")
    if condition is not None and not isinstance(condition, str):
        raise TemplateError(f"{where}.Condition is {condition!r}, expected the name of a condition.")
    return condition


def _with_globals(resource: Any, sections: Mapping[str, Any]) -> Any:
    if not isinstance(resource, dict):
        return resource
    defaults = sections.get(str(resource.get("Type")).removeprefix("AWS::Serverless::"))
    return (
        {**resource, "Properties": with_defaults(defaults, resource.get("Properties") or {})}
        if defaults
        else resource
    )


class _Application:
    """One application, under the names that it has in the whole."""

    def __init__(self, name: str, resource: Mapping[str, Any], path: Path, parent: Path) -> None:
        self._name = name
        self._document = _without_globals(read_with_applications(path))
        self._condition = _condition(resource, name)
        self._folder = os.path.relpath(path.parent.resolve(), parent.parent.resolve())
        values = _section(_section(resource, "Properties", name), "Parameters", name)
        self._parameters = self._values(_section(self._document, "Parameters", str(path)), values)

    def resources(self) -> dict[str, Any]:
        """Its resources; each has the application's condition, too."""
        declared = self._document["Resources"].items()
        return {self._name + name: self._resource(name, resource) for name, resource in declared}

    def conditions(self) -> dict[str, Any]:
        """Conditions of the application. A resource with a condition needs its own and the application's."""
        own = {
            self._name + name: self._of(value)
            for name, value in _section(self._document, "Conditions", self._name).items()
        }
        if self._condition is None:
            return own
        both = {
            self._both(name): {"Fn::And": [{"Condition": self._condition}, {"Condition": name}]}
            for name in own
        }
        return own | both

    def mappings(self) -> dict[str, Any]:
        """Its mappings."""
        return {
            self._name + name: value
            for name, value in _section(self._document, "Mappings", self._name).items()
        }

    def outputs(self) -> dict[tuple[str, str], Any]:
        """Values of `!GetAtt Application.Outputs.Name`, by application and attribute."""
        declared = _section(self._document, "Outputs", self._name)
        return {
            (self._name, _OUTPUTS + name): self._of(_section(declared, name, self._name).get("Value"))
            for name in declared
        }

    def _values(self, declared: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        for name in arguments:
            if name not in declared:
                names = ", ".join(declared) or "none"
                raise TemplateError(f"{self._name} is given the parameter {name}, expected one of: {names}.")
        values = {
            name: arguments.get(name, _section(declared, name, self._name).get("Default"))
            for name in declared
        }
        for name, value in values.items():
            if value is None:
                raise TemplateError(
                    f"{self._name} has no value for the parameter {name}. Add it to Parameters."
                )
        return values

    def _resource(self, name: str, resource: Any) -> Any:
        if not isinstance(resource, dict):
            return resource
        copy = dict(self._of(resource))
        for section in ("Properties", "Metadata"):
            if section in copy:
                copy[section] = self._with_folders(copy[section])
        if "DependsOn" in copy:
            on = copy["DependsOn"] if isinstance(copy["DependsOn"], list) else [copy["DependsOn"]]
            copy["DependsOn"] = [f"{self._name}{each}" for each in on]
        condition = _condition(copy, self._name + name)
        if condition is not None:
            own = self._name + condition
            copy["Condition"] = own if self._condition is None else self._both(own)
        elif self._condition is not None:
            copy["Condition"] = self._condition
        return copy

    def _with_folders(self, section: Any) -> Any:
        if not isinstance(section, dict):
            return section
        folders = {
            key: os.path.normpath(f"{self._folder}/{section[key]}")
            for key in _FOLDERS
            if isinstance(section.get(key), str)
        }
        return section | folders

    @staticmethod
    def _both(condition: str) -> str:
        return f"{condition}Too"

    def _of(self, value: Any) -> Any:
        return renamed(value, self._reference, self._own_name)

    def _reference(self, name: str, attribute: str | None) -> Any:
        if attribute is None and name == "AWS::StackName":
            return {"Fn::Sub": f"${{AWS::StackName}}-{self._name}"}
        if attribute is None and name in self._parameters:
            return self._parameters[name]
        if name.split(".")[0] not in self._document["Resources"]:
            return None
        return reference_to(self._name + name, attribute)

    def _own_name(self, name: str) -> str:
        return self._name + name
