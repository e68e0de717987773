"""CORS of an API, as SAM writes it and as a definition does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coldframe_local.emulator.gateway.definitions import Cors
from coldframe_local.emulator.template.syntax.errors import TemplateError
from coldframe_local.emulator.template.syntax.properties import Properties
from coldframe_local.emulator.template.syntax.values import as_map, as_number


def http_cors(properties: Properties, defined: Mapping[str, Any]) -> Cors | None:
    """SAM's `CorsConfiguration` of an HTTP API, or what its definition says. Raises TemplateError.

    https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-property-httpapi-httpapicorsconfiguration.html
    """
    where = properties.place("CorsConfiguration")
    in_definition = {str(key)[:1].upper() + str(key)[1:]: value for key, value in defined.items()}
    configuration = properties.value("CorsConfiguration") or in_definition
    if not configuration:
        return None
    if configuration is True:
        return Cors(("*",))
    configuration = as_map(configuration, where)
    cors = _cors(where, configuration, configuration.get("AllowOrigins"))
    if cors.allow_credentials and "*" in cors.allow_origins:
        raise TemplateError(f'{where}: AllowCredentials needs named AllowOrigins, found "*".')
    return cors


def rest_cors(properties: Properties) -> Cors | None:
    """SAM's `Cors` of a REST API, whose texts are quoted twice. Raises TemplateError.

    https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/sam-property-api-corsconfiguration.html
    """
    configuration = properties.value("Cors")
    if not configuration:
        return None
    if isinstance(configuration, str):
        configuration = {"AllowOrigin": configuration}
    where = properties.place("Cors")
    configuration = as_map(configuration, where)
    return _cors(where, configuration, configuration.get("AllowOrigin") or "'*'")


def _cors(where: str, configuration: Mapping[str, Any], origins: Any) -> Cors:
    max_age = configuration.get("MaxAge")
    return Cors(
        allow_origins=_words(origins),
        allow_methods=_words(configuration.get("AllowMethods")),
        allow_headers=_words(configuration.get("AllowHeaders")),
        expose_headers=_words(configuration.get("ExposeHeaders")),
        max_age_s=None if max_age is None else int(as_number(_unquoted(max_age), f"{where}.MaxAge")),
        allow_credentials=bool(configuration.get("AllowCredentials")),
    )


def _unquoted(value: Any) -> Any:
    return value.strip("'") if isinstance(value, str) else value


def _words(value: Any) -> tuple[str, ...]:
    """A list, or `'GET,POST'` with its quotes."""
    items = value if isinstance(value, list) else str(value or "").strip("'").split(",")
    return tuple(text for item in items if (text := str(item).strip()))
