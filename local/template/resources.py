"""The resources of a template: which of them exist, their properties, and what they are called here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from local.lambda_service.settings import ACCOUNT_ID
from local.template.intrinsics import Intrinsics, TemplateError, is_intrinsic
from local.template.parameters import STACK_NAME

FUNCTION = "AWS::Serverless::Function"
TABLE = "AWS::DynamoDB::Table"
SIMPLE_TABLE = "AWS::Serverless::SimpleTable"
BUCKET = "AWS::S3::Bucket"
QUEUE = "AWS::SQS::Queue"
EVENT_INVOKE_CONFIG = "AWS::Lambda::EventInvokeConfig"

_HTTP_API = "AWS::Serverless::HttpApi"
_REST_API = "AWS::Serverless::Api"
_LOG_GROUP = "AWS::Logs::LogGroup"
_NAME_PROPERTIES = {
    FUNCTION: "FunctionName",
    TABLE: "TableName",
    SIMPLE_TABLE: "TableName",
    BUCKET: "BucketName",
    QUEUE: "QueueName",
    _LOG_GROUP: "LogGroupName",
}
# Service and prefix of the resource, where they differ from the type's.
_ARNS = {
    FUNCTION: ("lambda", "function:"),
    TABLE: ("dynamodb", "table/"),
    SIMPLE_TABLE: ("dynamodb", "table/"),
    QUEUE: ("sqs", ""),
    _LOG_GROUP: ("logs", "log-group:"),
    "AWS::IAM::Role": ("iam", "role/"),
}


class Resources:
    """Of one template, by logical id.

    names: parameters and pseudo parameters. url: what refers to an API's address gets.
    """

    def __init__(self, document: Mapping[str, Any], names: Mapping[str, Any], url: str) -> None:
        self._declared: dict[str, Any] = document["Resources"]
        self._globals: dict[str, Any] = document.get("Globals") or {}
        self._region: str = names["AWS::Region"]
        self._url = url
        conditions, mappings = document.get("Conditions") or {}, document.get("Mappings") or {}
        self._intrinsics = Intrinsics(names, self._identity, conditions, mappings)

    def resolve(self, value: Any, where: str) -> Any:
        """`value` without intrinsic functions; `where` is its place. Raises TemplateError."""
        return self._intrinsics.resolve(value, where)

    def __contains__(self, name: object) -> bool:
        return name in self._declared

    def kinds(self) -> Iterator[tuple[str, str]]:
        """(logical id, type) of all of them. Raises TemplateError for one without a type."""
        for name, resource in self._declared.items():
            if not isinstance(resource, dict) or not isinstance(resource.get("Type"), str):
                raise TemplateError(f"Resources.{name} has no Type. Expected one like {FUNCTION}.")
            yield name, resource["Type"]

    def of_types(self, *types: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """(logical id, properties) of those of some types whose condition holds."""
        for name, kind in self.kinds():
            if kind in types and self._exists(name):
                yield name, self.properties(name)

    def kind(self, name: str) -> str:
        """Its type."""
        return str(self._declared[name]["Type"])

    def properties(self, name: str) -> dict[str, Any]:
        """With Globals merged in, not yet resolved: much of it may be of no interest here."""
        section = self.kind(name).removeprefix("AWS::Serverless::")
        own = self._declared[name].get("Properties") or {}
        merged: dict[str, Any] = _merged(self._globals.get(section) or {}, own)
        return merged

    def metadata(self, name: str) -> dict[str, Any]:
        """What the template says to tools that build it, resolved."""
        metadata: dict[str, Any] | None = self.resolve(
            self._declared[name].get("Metadata"), f"{name}.Metadata"
        )
        return metadata or {}

    def name(self, name: str) -> str:
        """The physical name: the one that the template gives, or one that tells where it is from."""
        kind = self.kind(name)
        given = self.properties(name).get(_NAME_PROPERTIES.get(kind, ""))
        if given is not None:
            return str(self.resolve(given, f"{name}.{_NAME_PROPERTIES[kind]}"))
        if kind in (FUNCTION, _HTTP_API, _REST_API):
            return name
        fifo = ".fifo" if kind == QUEUE and self.properties(name).get("FifoQueue") else ""
        return f"{STACK_NAME}-{name.lower() if kind == BUCKET else name}{fifo}"

    def reference(self, name: str) -> str:
        """What `Ref` gives: the physical name, of a queue its URL."""
        if self.kind(name) == QUEUE:
            return f"https://sqs.{self._region}.amazonaws.com/{ACCOUNT_ID}/{self.name(name)}"
        return self.name(name)

    def arn(self, name: str) -> str:
        """Its ARN."""
        kind = self.kind(name)
        if kind == BUCKET:
            return f"arn:aws:s3:::{self.name(name)}"
        service, prefix = _ARNS.get(kind, (kind.split("::")[1].lower(), ""))
        region = "" if service == "iam" else self._region
        return f"arn:aws:{service}:{region}:{ACCOUNT_ID}:{prefix}{self.name(name)}"

    def alias(self, function: str) -> str | None:
        """What events of a function call; None: the function itself, `$LATEST`."""
        given = self.properties(function).get("AutoPublishAlias")
        alias = self.resolve(given, f"{function}.AutoPublishAlias")
        return str(alias) if alias else None

    def _exists(self, name: str) -> bool:
        condition = self._declared[name].get("Condition")
        return condition is None or self._intrinsics.holds(condition, f"{name}.Condition")

    def _identity(self, name: str, attribute: str | None) -> str | None:
        """What CloudFormation would call a resource, or an attribute of it."""
        function, dot, of_function = name.partition(".")
        if dot and function in self._declared and of_function in ("Alias", "Version"):
            return self._qualified_arn(function, of_function)
        if name not in self._declared:
            return None
        if attribute is None:
            return self.reference(name)
        if attribute == "Arn":
            return self.arn(name)
        return self._attribute(name, self.kind(name), attribute)

    def _attribute(self, name: str, kind: str, attribute: str) -> str | None:
        if kind == _HTTP_API and attribute == "ApiEndpoint":
            return self._url
        if kind == BUCKET and attribute == "DomainName":
            return f"{self.name(name)}.s3.amazonaws.com"
        if kind == QUEUE and attribute == "QueueName":
            return self.name(name)
        if kind == QUEUE and attribute == "QueueUrl":
            return self.reference(name)
        return None

    def _qualified_arn(self, function: str, attribute: str) -> str | None:
        alias = self.alias(function)
        if alias is None:
            return None
        return f"{self.arn(function)}:{alias if attribute == 'Alias' else '1'}"


def _merged(defaults: Any, own: Any) -> Any:
    """Globals under a resource's own properties: maps are merged, lists joined, anything else replaced.

    https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-specification-template-anatomy-globals.html
    """
    if isinstance(defaults, dict) and isinstance(own, dict):
        if is_intrinsic(defaults) or is_intrinsic(own):
            return own
        return {**defaults, **{name: _merged(defaults.get(name), value) for name, value in own.items()}}
    if isinstance(defaults, list) and isinstance(own, list):
        return defaults + own
    return own
