"""Functions, their versions and aliases, by the Lambda API."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from coldframe.capacity.admission import LATEST
from coldframe_local.emulator.aws_api.lambda_api.answers import answer, revision
from coldframe_local.emulator.aws_api.lambda_api.call import Call, Operation
from coldframe_local.emulator.gateway.http import HttpResponse
from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.lambda_types import (
    InvalidParameterValueException,
    ResourceNotFoundException,
)
from coldframe_local.emulator.lambda_service.settings import FunctionSettings, LogFormat

_FUNCTIONS = "/2015-03-31/functions"
_FUNCTION = f"{_FUNCTIONS}/{{FunctionName}}"
_ALIAS = f"{_FUNCTION}/aliases/{{Name}}"
# What an alias is told that sends all requests to one version.
_NO_WEIGHTS: tuple[object, ...] = (None, {}, {"AdditionalVersionWeights": {}})
# Variables that only this machine needs.
_OF_THE_MACHINE = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "TMPDIR")


class FunctionCalls:
    """Operations on functions; they come from the template, so that none is created or deleted."""

    def __init__(self, service: LambdaService) -> None:
        self._service = service
        self._functions = service.functions

    def operations(self) -> dict[str, Operation]:
        """By method and path."""
        return {
            f"GET {_FUNCTIONS}": self._list_functions,
            f"GET {_FUNCTION}": self._get_function,
            f"GET {_FUNCTION}/configuration": self._get_configuration,
            f"GET {_FUNCTION}/versions": self._list_versions,
            f"POST {_FUNCTION}/versions": self._publish_version,
            f"GET {_FUNCTION}/aliases": self._list_aliases,
            f"POST {_FUNCTION}/aliases": self._create_alias,
            f"GET {_ALIAS}": self._get_alias,
            f"PUT {_ALIAS}": self._update_alias,
            f"DELETE {_ALIAS}": self._delete_alias,
        }

    async def _list_functions(self, call: Call) -> HttpResponse:
        names = self._functions.names()
        if call.query.get("FunctionVersion") == "ALL":
            pairs = [(name, version) for name in names for version in self._functions.versions(name)]
        else:
            pairs = [(name, LATEST) for name in names]
        page, marker = call.page(pairs)
        configurations = [self._configuration(name, version, qualified=False) for name, version in page]
        return answer(HTTPStatus.OK, {"Functions": configurations, "NextMarker": marker})

    async def _get_function(self, call: Call) -> HttpResponse:
        reserved = self._service.concurrency.get_reserved(call.name)
        configuration = self._configuration(call.name, call.qualifier)
        body: dict[str, Any] = {
            "Configuration": configuration,
            "Code": {"RepositoryType": "ECR" if configuration["PackageType"] == "Image" else "S3"},
            "Tags": {},
        }
        if reserved is not None:
            body["Concurrency"] = {"ReservedConcurrentExecutions": reserved}
        return answer(HTTPStatus.OK, body)

    async def _get_configuration(self, call: Call) -> HttpResponse:
        return answer(HTTPStatus.OK, self._configuration(call.name, call.qualifier))

    # Versions and aliases.

    async def _list_versions(self, call: Call) -> HttpResponse:
        page, marker = call.page(self._functions.versions(call.name))
        versions = [self._configuration(call.name, version) for version in page]
        return answer(HTTPStatus.OK, {"Versions": versions, "NextMarker": marker})

    async def _publish_version(self, call: Call) -> HttpResponse:
        version = self._functions.publish(call.name)
        return answer(HTTPStatus.CREATED, self._configuration(call.name, version))

    async def _list_aliases(self, call: Call) -> HttpResponse:
        version_filter = call.query.get("FunctionVersion")
        aliases = [
            self._alias(call.name, alias)
            for alias, version in self._functions.aliases(call.name).items()
            if version_filter in (None, version)
        ]
        page, marker = call.page(aliases)
        return answer(HTTPStatus.OK, {"Aliases": page, "NextMarker": marker})

    async def _create_alias(self, call: Call) -> HttpResponse:
        _check_weights(call)
        alias = call.text("Name")
        self._functions.create_alias(call.name, alias, call.text("FunctionVersion"))
        return answer(HTTPStatus.CREATED, self._alias(call.name, alias))

    async def _get_alias(self, call: Call) -> HttpResponse:
        return answer(HTTPStatus.OK, self._alias(call.name, call.alias))

    async def _update_alias(self, call: Call) -> HttpResponse:
        self._alias(call.name, call.alias)  # it must be there
        _check_weights(call)
        self._functions.put_alias(call.name, call.alias, call.text("FunctionVersion"))
        return answer(HTTPStatus.OK, self._alias(call.name, call.alias))

    async def _delete_alias(self, call: Call) -> HttpResponse:
        self._functions.delete_alias(call.name, call.alias)
        return answer(HTTPStatus.NO_CONTENT)

    # Shapes.

    def _alias(self, name: str, alias: str) -> dict[str, str]:
        arn, version = self._service.arn(name, alias), self._functions.aliases(name).get(alias)
        if version is None:
            raise ResourceNotFoundException(f"Cannot find alias arn: {arn}")
        return {
            "AliasArn": arn,
            "Name": alias,
            "FunctionVersion": version,
            "Description": "",
            "RevisionId": revision(name, alias, version),
        }

    def _configuration(self, name: str, qualifier: str | None, *, qualified: bool = True) -> dict[str, Any]:
        """qualified: the ARN has the qualifier that was asked for."""
        function = self._functions.get(name, qualifier)
        return {
            "FunctionName": name,
            "FunctionArn": function.arn(qualifier if qualified or qualifier != LATEST else None),
            "CodeSize": 0,
            "Description": "",
            "Timeout": int(function.timeout_s),
            "MemorySize": function.memory_mb,
            "Version": function.version,
            "Environment": {"Variables": _own_variables(function)},
            "TracingConfig": {"Mode": "PassThrough"},
            "RevisionId": revision(name, function.version),
            "State": "Active",
            "LastUpdateStatus": "Successful",
            "Architectures": [function.architecture],
            "EphemeralStorage": {"Size": 512},
            "SnapStart": {
                "ApplyOn": "PublishedVersions" if function.snapstart else "None",
                "OptimizationStatus": "On" if function.starts_from_snapshot else "Off",
            },
            "LoggingConfig": _logging(function),
            **_package(function),
        }


def _check_weights(call: Call) -> None:
    if call.body().get("RoutingConfig") not in _NO_WEIGHTS:
        raise InvalidParameterValueException("Here an alias has one version. Leave RoutingConfig out.")


def _package(function: FunctionSettings) -> dict[str, Any]:
    if function.runtime is None:
        command = {"ImageConfig": {"Command": [function.handler]}}
        return {"PackageType": "Image", "ImageConfigResponse": command}
    return {"PackageType": "Zip", "Runtime": function.runtime, "Handler": function.handler}


def _logging(function: FunctionSettings) -> dict[str, str]:
    own = function.logging
    config = {"LogFormat": str(own.log_format), "LogGroup": f"/aws/lambda/{function.name}"}
    if own.log_format is LogFormat.JSON:
        config |= {"ApplicationLogLevel": own.application_level, "SystemLogLevel": own.system_level}
    return config


def _own_variables(function: FunctionSettings) -> dict[str, str]:
    return {
        name: value
        for name, value in function.environ.items()
        if not name.startswith("AWS_") and name not in _OF_THE_MACHINE
    }
