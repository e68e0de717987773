"""A function as the service keeps it: its versions and aliases, its environments, its counters."""

from __future__ import annotations

from dataclasses import dataclass, replace

from coldframe.capacity.admission import LATEST
from coldframe.timing import Clock
from coldframe_local.emulator.lambda_service.environments.pool import EnvironmentPool
from coldframe_local.emulator.lambda_service.event_sources.destinations import EventInvokeConfig
from coldframe_local.emulator.lambda_service.lambda_types import (
    ResourceConflictException,
    ResourceNotFoundException,
)
from coldframe_local.emulator.lambda_service.settings import FunctionSettings
from coldframe_local.emulator.lambda_service.telemetry.metrics import FunctionMetrics
from coldframe_local.emulator.lambda_service.telemetry.recording import Recording


@dataclass
class Provisioning:
    """Provisioned concurrency that was asked for, by the qualifier that was named."""

    requested: int
    last_modified: str


class HostedFunction:
    """settings: of `$LATEST`. versions: with `$LATEST`, by number, oldest first. aliases: to version.

    reserved: concurrency of its own, if any. provisioned: by qualifier.
    Nothing is published, and no alias made, unless somebody asks for it.
    """

    def __init__(
        self, settings: FunctionSettings, pool: EnvironmentPool, metrics: FunctionMetrics, clock: Clock
    ) -> None:
        self.settings = replace(settings, version=LATEST)
        self.pool = pool
        self.metrics = metrics
        self.versions = {LATEST: self.settings}
        self.aliases: dict[str, str] = {}
        self.reserved: int | None = None
        self.provisioned: dict[str, Provisioning] = {}
        self.recording = Recording()
        self.event_invoke_configs: dict[str, EventInvokeConfig] = {}
        self._clock = clock
        self._arns: dict[str | None, tuple[str, str]] = {}
        self._unpublished = True

    def resolve(self, qualifier: str | None) -> tuple[str, str]:
        """The version that a qualifier stands for, and the ARN that names it."""
        resolution = self._arns.get(qualifier)
        if resolution is None:
            name = qualifier or LATEST
            version = self.aliases.get(name, name)
            arn = self.settings.arn(qualifier)
            if version not in self.versions:
                raise ResourceNotFoundException(f"Function not found: {arn}")
            resolution = self._arns[qualifier] = version, arn
        return resolution

    def publish(self) -> str:
        """The number of a version that is what `$LATEST` is: a new one only where something has changed.

        Source: https://docs.aws.amazon.com/lambda/latest/api/API_PublishVersion.html, read 2026-11-21.
        """
        version = str(len(self.versions) - 1)
        if self._unpublished:
            version = str(len(self.versions))
            self.versions[version] = replace(self.settings, version=version)
            self._unpublished = False
            if self.settings.snapstart:
                self.pool.set_snapstart(version)
                snapshots = len(self.versions) - 1  # all but $LATEST
                self.metrics.bill.keep_snapshots(snapshots, self.settings.memory_mb, self._clock())
        return version

    def recycle(self) -> None:
        """The code has changed: the next version is a new one, and every environment is replaced."""
        self._unpublished = True
        self.pool.recycle()

    def create_alias(self, alias: str, version: str) -> None:
        """Raises ResourceConflictException when there is one of that name."""
        if alias in self.aliases:
            raise ResourceConflictException(f"Alias already exists: {self.settings.arn(alias)}")
        self.put_alias(alias, version)

    def put_alias(self, alias: str, version: str) -> None:
        """Lets an alias point to a published version. Its provisioned concurrency moves along."""
        if version == LATEST or version not in self.versions:
            raise ResourceNotFoundException(f"Function not found: {self.settings.arn(version)}")
        before = self.aliases.get(alias)
        self.aliases[alias] = version
        self._arns.clear()
        if alias in self.provisioned and before is not None and before != version:
            self.provision(before)
            self.provision(version)

    def delete_alias(self, alias: str) -> None:
        """Its provisioned concurrency goes with it. One that is not there is no error, as on AWS."""
        version = self.aliases.pop(alias, None)
        self._arns.clear()
        if version is not None and self.provisioned.pop(alias, None) is not None:
            self.provision(version)

    def provision(self, version: str) -> None:
        """Makes the environments of a version as many as its qualifiers ask for."""
        target = sum(
            provisioning.requested
            for qualifier, provisioning in self.provisioned.items()
            if self.resolve(qualifier)[0] == version
        )
        self.pool.set_provisioned(version, target)
        total = sum(provisioning.requested for provisioning in self.provisioned.values())
        self.metrics.bill.provision(total, self.settings.memory_mb, self._clock())
