"""The functions of an account, their versions and aliases, by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from coldframe.capacity.limits import MEMORY, MIN_MEMORY
from coldframe.capacity.prices import PRICES
from coldframe_local.emulator.lambda_service.account.hosted import HostedFunction
from coldframe_local.emulator.lambda_service.environments.cpu import can_limit_cpu, vcpus
from coldframe_local.emulator.lambda_service.lambda_types import (
    InvalidParameterValueException,
    ResourceConflictException,
    ResourceNotFoundException,
)
from coldframe_local.emulator.lambda_service.settings import FunctionSettings

_MEMORY_MB = range(MIN_MEMORY.value, MEMORY.value + 1)


class Functions:
    """qualifier: a version, an alias, or None for `$LATEST`. Errors are `LambdaException`s.

    on_change: told after every change.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._hosted: dict[str, HostedFunction] = {}
        self._changed = on_change

    def add(self, function: HostedFunction) -> None:
        """A new one. Raises ResourceConflictException."""
        name = function.settings.name
        if name in self._hosted:
            raise ResourceConflictException(f"Function already exist: {name}")
        self._hosted[name] = function
        self._changed()

    def __iter__(self) -> Iterator[HostedFunction]:
        yield from self._hosted.values()

    def __len__(self) -> int:
        return len(self._hosted)

    def hosted(self, name: str) -> HostedFunction:
        """All that is kept of a function. Raises ResourceNotFoundException."""
        function = self._hosted.get(name)
        if function is None:
            names = ", ".join(self._hosted) or "none"
            raise ResourceNotFoundException(f"Function not found: {name}. Functions: {names}.")
        return function

    def names(self) -> tuple[str, ...]:
        """In the order of creation."""
        return tuple(self._hosted)

    def get(self, name: str, qualifier: str | None = None) -> FunctionSettings:
        """The function as a version has it, `.version` resolved. Raises ResourceNotFoundException."""
        function = self.hosted(name)
        return function.versions[function.resolve(qualifier)[0]]

    def versions(self, name: str) -> tuple[str, ...]:
        """`$LATEST` first, then the published ones, oldest first."""
        return tuple(self.hosted(name).versions)

    def publish(self, name: str) -> str:
        """The number of a version that is what `$LATEST` is: a new one only where something has changed."""
        version = self.hosted(name).publish()
        self._changed()
        return version

    def aliases(self, name: str) -> dict[str, str]:
        """Alias to version."""
        return dict(self.hosted(name).aliases)

    def create_alias(self, name: str, alias: str, version: str) -> None:
        """Raises ResourceConflictException, and ResourceNotFoundException for what is not published."""
        self.hosted(name).create_alias(alias, version)
        self._changed()

    def put_alias(self, name: str, alias: str, version: str) -> None:
        """Lets an alias, new or not, point to a published version; what is provisioned moves along."""
        self.hosted(name).put_alias(alias, version)
        self._changed()

    def delete_alias(self, name: str, alias: str) -> None:
        """A version or alias with its provisioned concurrency."""
        self.hosted(name).delete_alias(alias)
        self._changed()


def check(function: FunctionSettings) -> None:
    """Raises InvalidParameterValueException for settings that Lambda, or this machine, refuses."""
    if function.memory_mb not in _MEMORY_MB:
        raise InvalidParameterValueException(
            f"MemorySize of {function.name} is {function.memory_mb} MB, "
            f"expected {_MEMORY_MB.start} to {_MEMORY_MB.stop - 1}."
        )
    if function.cpu_from_memory and not can_limit_cpu():
        raise InvalidParameterValueException(
            "CPU in proportion to memory needs Linux, which tells how much CPU a process has used. "
            "Leave `cpu_from_memory` out of the scenario file."
        )
    if function.architecture not in PRICES:
        raise InvalidParameterValueException(
            f'Architecture of {function.name} is "{function.architecture}", expected {" or ".join(PRICES)}.'
        )


def differences(function: FunctionSettings) -> Iterator[str]:
    """Differences from Lambda that this machine forces on a function."""
    if function.snapstart:
        yield (
            f"{function.name} starts from a snapshot on AWS. This machine cannot keep one: the next process "
            f"loads ahead of its restore, of which AWS's part is taken to last {function.restore_ms:g} ms."
        )
    lambda_cpus, here = vcpus(function.memory_mb), os.cpu_count() or 1
    if function.cpu_from_memory and lambda_cpus > here:
        yield (
            f"{function.name} has {lambda_cpus:.1f} CPUs on Lambda with {function.memory_mb} MB; "
            f"this machine has {here}, so it gets no more than these."
        )
