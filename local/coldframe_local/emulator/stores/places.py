"""Where the tables, buckets and queues of a template are: at endpoints that were given, or moto's server.

Pure but for credentials, which are read from this process's variables.
"""

from __future__ import annotations

import os
from collections.abc import Sized
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from coldframe_local.emulator.template.syntax.parameters import REGION
from coldframe_local.emulator.template.template import Template

_CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
# Local stores take anything; boto3 wants something.
LOCAL_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Where the stores are. An endpoint of None is moto's server, started here on `port`; 0: a free one."""

    dynamodb_endpoint: str | None = None
    s3_endpoint: str | None = None
    sqs_endpoint: str | None = None
    port: int = 0

    @property
    def endpoints(self) -> dict[str, str | None]:
        """By service."""
        return {"dynamodb": self.dynamodb_endpoint, "s3": self.s3_endpoint, "sqs": self.sqs_endpoint}


@dataclass(slots=True)
class Places:
    """The stores of a template, by service. url: where moto's server listens; None where there is none."""

    template: Template
    options: StoreOptions
    url: str | None = None

    @property
    def _resources(self) -> dict[str, Sized]:
        """Resources of each service in the template."""
        template = self.template
        return {"dynamodb": template.tables, "s3": template.buckets, "sqs": template.queues}

    def moto_is_needed(self) -> bool:
        """Whether the template has something of a service that no endpoint was given for."""
        endpoints = self.options.endpoints
        return any(resources and endpoints[service] is None for service, resources in self._resources.items())

    def something_is_to_be_made(self) -> bool:
        """Real AWS is left as it is: what a deploy makes there costs money."""
        endpoints = [
            self.options.endpoints[service] for service, resources in self._resources.items() if resources
        ]
        return any(endpoint is None or not is_aws(endpoint) for endpoint in endpoints)

    def endpoint(self, service: str) -> str:
        """The address of a service; empty where there is none."""
        return self.options.endpoints[service] or self.url or ""

    @property
    def environ(self) -> dict[str, str]:
        """Variables by which boto3 in a function finds the stores."""
        if not any(self._resources.values()):
            return {}
        endpoints = {f"AWS_ENDPOINT_URL_{name.upper()}": self.endpoint(name) for name in self._resources}
        return self._credentials() | endpoints

    def _credentials(self) -> dict[str, str]:
        """The developer's own for endpoints that they gave; moto's server takes any."""
        has_endpoints = any(endpoint is not None for endpoint in self.options.endpoints.values())
        own = {name: os.environ[name] for name in _CREDENTIALS if name in os.environ}
        return own if has_endpoints and own else LOCAL_CREDENTIALS

    def plan(self) -> dict[str, Any]:
        """Resources for the server's process to create, as `store_server.Plan`."""
        services = {service for service in self._resources if not is_aws(self.endpoint(service))}
        template = self.template
        tables = template.tables if "dynamodb" in services else ()
        return {
            "region": REGION,
            "tables": [(table.parameters, table.ttl_attribute) for table in tables],
            "buckets": [bucket.name for bucket in template.buckets if "s3" in services],
            "queues": [(queue.name, queue.attributes) for queue in template.queues if "sqs" in services],
            "endpoints": {
                name: endpoint for name, endpoint in self.options.endpoints.items() if endpoint is not None
            },
        }


def is_aws(endpoint: str) -> bool:
    """Whether an address is one of AWS itself."""
    return (urlsplit(endpoint).hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))
