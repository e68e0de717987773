"""The resources of a template: which of them exist, their properties, and what they are called here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from coldframe_local.emulator.lambda_service.settings import ACCOUNT_ID
from coldframe_local.emulator.template.syntax.errors import NotKnown, TemplateError
from coldframe_local.emulator.template.syntax.intrinsics import Intrinsics, is_intrinsic
from coldframe_local.emulator.template.syntax.parameters import STACK_NAME
from coldframe_local.emulator.template.syntax.properties import Properties
from coldframe_local.emulator.template.syntax.ref_names import (
    BUCKET,
    FUNCTION,
    HTTP_API,
    IDENTITIES,
    PLAIN_FUNCTION,
    QUEUE,
    REST_API,
)
from coldframe_local.emulator.template.syntax.rules import broken_rules
from coldframe_local.emulator.template.syntax.values import as_map, as_word

FOR_EACH = "Fn::ForEach::"
_CALLED_BY_LOGICAL_ID = (FUNCTION, PLAIN_FUNCTION, HTTP_API, REST_API)
_FIFO = {QUEUE: "FifoQueue", "AWS::SNS::Topic": "FifoTopic"}


class Resources:
    """Resources of one template, by logical id.

    names: parameters and pseudo parameters. url: what refers to an API's address gets.
    Every method raises TemplateError for a resource that is written wrongly, and the constructor for
    parameters that a rule of the template refuses.
    """

    def __init__(self, document: Mapping[str, Any], names: Mapping[str, Any], url: str) -> None:
        self._declared = as_map(document["Resources"], "Resources")
        self._globals = as_map(document.get("Globals"), "Globals")
        self._url = url
        self._region: str = names["AWS::Region"]
        self._properties: dict[str, Properties] = {}
        self._kinds: dict[str, str] | None = None
        conditions = as_map(document.get("Conditions"), "Conditions")
        mappings = as_map(document.get("Mappings"), "Mappings")
        self._intrinsics = Intrinsics(names, self._identity, conditions, mappings)

        for name, reason in broken_rules(document, self._intrinsics):
            raise TemplateError(f"The rule {name} refuses the parameters: {reason}.")

    def resolve(self, value: Any, where: str) -> Any:
        """`value` without intrinsic functions; `where` is its place."""
        return self._intrinsics.resolve(value, where)

    def __contains__(self, name: object) -> bool:
        return name in self._declared

    def loops(self) -> Iterator[str]:
        """Where `Fn::ForEach` would make resources: it is not expanded here."""
        return (name for name in self._declared if str(name).startswith(FOR_EACH))

    def kinds(self) -> Iterator[tuple[str, str]]:
        """(logical id, type) of all that exist: their condition holds, or they have none."""
        if self._kinds is None:
            names = [name for name in self._declared if not str(name).startswith(FOR_EACH)]
            self._kinds = {name: kind for name in names if (kind := self.kind(name)) and self._exists(name)}
        yield from self._kinds.items()

    def of_types(self, *types: str) -> Iterator[tuple[str, Properties]]:
        """(logical id, properties) of those of some types that exist."""
        for name, kind in self.kinds():
            if kind in types:
                yield name, self.properties(name)

    def kind(self, name: str) -> str:
        """Its type."""
        resource = self._declared[name]
        if not isinstance(resource, dict) or not isinstance(resource.get("Type"), str):
            raise TemplateError(f"Resources.{name} has no Type. Expected one like {FUNCTION}.")
        return str(resource["Type"])

    def properties(self, name: str) -> Properties:
        """Properties with Globals merged in: always the same object, which records the properties read."""
        if name not in self._properties:
            section = self.kind(name).removeprefix("AWS::Serverless::")
            defaults = as_map(self._globals.get(section), f"Globals.{section}")
            own = as_map(self._declared[name].get("Properties"), f"{name}.Properties")
            self._properties[name] = Properties(with_defaults(defaults, own), name, self.resolve)
        return self._properties[name]

    def metadata(self, name: str) -> Properties:
        """Metadata for tools that build the template."""
        metadata = as_map(self._declared[name].get("Metadata"), f"{name}.Metadata")
        return Properties(metadata, f"{name}.Metadata", self.resolve)

    def name(self, name: str) -> str:
        """The physical name: the one that the template gives, or one that tells where it is from."""
        kind = self.kind(name)
        properties = self.properties(name)
        physical_name = properties.word(IDENTITIES[kind].name) if kind in IDENTITIES else None
        if physical_name is not None:
            return physical_name
        if kind in _CALLED_BY_LOGICAL_ID:
            return name
        fifo = ".fifo" if kind in _FIFO and properties.value(_FIFO[kind]) else ""
        return f"{STACK_NAME}-{name.lower() if kind == BUCKET else name}{fifo}"

    def reference(self, name: str) -> str:
        """Value of `Ref`. Raises NotKnown where only AWS knows."""
        identity = IDENTITIES.get(self.kind(name))
        return self._called(name, identity.reference if identity else None, "Ref")

    def attribute(self, name: str, attribute: str) -> str:
        """Value of `Fn::GetAtt`. Raises NotKnown where only AWS knows."""
        identity = IDENTITIES.get(self.kind(name))
        return self._called(name, identity.attributes.get(attribute) if identity else None, attribute)

    def alias(self, function: str) -> str | None:
        """Alias that events of a function invoke; None: the function itself, `$LATEST`."""
        return self.properties(function).word("AutoPublishAlias") or None

    def _called(self, name: str, pattern: str | None, what: str) -> str:
        if pattern is None:
            raise NotKnown(f"{what} of {name} ({self.kind(name)}) has no value on this machine")
        return pattern.format(name=self.name(name), region=self._region, account=ACCOUNT_ID, url=self._url)

    def _exists(self, name: str) -> bool:
        condition = self._declared[name].get("Condition")
        where = f"{name}.Condition"
        return condition is None or self._intrinsics.holds(as_word(condition, where), where)

    def _identity(self, name: str, attribute: str | None) -> str | None:
        """Name of a resource or of its attribute in CloudFormation; None if it does not exist."""
        function, dot, of_function = name.partition(".")
        if dot and function in self._declared and of_function in ("Alias", "Version"):
            return self._qualified_arn(function, of_function)
        if name not in self._declared:
            return None
        return self.reference(name) if attribute is None else self.attribute(name, attribute)

    def _qualified_arn(self, function: str, attribute: str) -> str | None:
        alias = self.alias(function)
        if alias is None:
            return None
        return f"{self.attribute(function, 'Arn')}:{alias if attribute == 'Alias' else '1'}"


def with_defaults(defaults: Any, own: Any) -> Any:
    """Globals under a resource's own properties: maps are merged, lists joined, anything else replaced.

    https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-specification-template-anatomy-globals.html
    """
    if isinstance(defaults, dict) and isinstance(own, dict):
        if is_intrinsic(defaults) or is_intrinsic(own):
            return own
        return {**defaults, **{name: with_defaults(defaults.get(name), value) for name, value in own.items()}}
    if isinstance(defaults, list) and isinstance(own, list):
        return defaults + own
    return own
