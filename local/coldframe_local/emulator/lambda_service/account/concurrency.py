"""Reserved and provisioned concurrency of an account's functions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from coldframe.capacity.admission import LATEST, Limits, Provisioned, claimed, requested
from coldframe.capacity.limits import UNRESERVED
from coldframe_local.emulator.lambda_service.account.functions import Functions
from coldframe_local.emulator.lambda_service.account.hosted import HostedFunction, Provisioning
from coldframe_local.emulator.lambda_service.lambda_types import (
    AccountSettings,
    InvalidParameterValueException,
    ProvisionedConcurrencyConfig,
    ProvisionedConcurrencyConfigNotFoundException,
    ProvisionedConcurrencyStatus,
)

_NO_PROVISIONED = Provisioned()


class Concurrency:
    """Concurrency of functions. limits: of the account, and of each function without its own."""

    def __init__(self, functions: Functions, limits: Limits) -> None:
        self._functions = functions
        self._limits = limits

    # Reserved.

    def put_reserved(self, name: str, reserved: int) -> None:
        """Reserves concurrency for a function, which is also its limit. 0 switches it off.

        Raises InvalidParameterValueException when too little would stay unreserved, or when it is
        less than the function's provisioned concurrency.
        """
        function = self._functions.hosted(name)
        provisioned = sum(provisioning.requested for provisioning in function.provisioned.values())
        if reserved < provisioned:
            raise InvalidParameterValueException(
                f"ReservedConcurrentExecutions is {reserved}, less than the {provisioned} provisioned "
                f"of {name}. Reserve more, or provision less first."
            )
        left = self._unreserved(without=function) - reserved
        if left < self._min_unreserved:
            raise InvalidParameterValueException(
                f"Specified ReservedConcurrentExecutions for function decreases account's "
                f"UnreservedConcurrentExecution below its minimum value of [{self._min_unreserved}]. "
                f"Reserve {max(0, reserved - self._min_unreserved + left)} or less for {name}."
            )
        self._reserve(function, reserved)

    def get_reserved(self, name: str) -> int | None:
        """The reserved concurrency; None when nothing is reserved."""
        return self._functions.hosted(name).reserved

    def delete_reserved(self, name: str) -> None:
        """Gives the reserved concurrency back to the account."""
        self._reserve(self._functions.hosted(name), None)

    # Provisioned.

    def put_provisioned(self, name: str, qualifier: str, requested: int) -> ProvisionedConcurrencyConfig:
        """Starts to initialise environments ahead of traffic, or stops some.

        Raises InvalidParameterValueException for `$LATEST`, for less than 1, and for more than the
        reserved or unreserved concurrency leaves.
        """
        function = self._functions.hosted(name)
        version, _ = function.resolve(qualifier)
        if version == LATEST:
            raise InvalidParameterValueException(
                "Provisioned Concurrency Configs cannot be applied to unpublished function versions. "
                "Name an alias or a version."
            )
        if function.settings.snapstart:
            raise InvalidParameterValueException(
                f"{name} has SnapStart, which excludes provisioned concurrency. Choose one of them."
            )
        if requested < 1:
            raise InvalidParameterValueException(
                f"ProvisionedConcurrentExecutions is {requested}, expected at least 1. "
                "Delete the configuration to have none."
            )
        self._check_provisioned(function, qualifier, version, requested)
        modified = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S+0000")
        function.provisioned[qualifier] = Provisioning(requested, modified)
        function.provision(version)
        return self.get_provisioned(name, qualifier)

    def get_provisioned(self, name: str, qualifier: str) -> ProvisionedConcurrencyConfig:
        """Raises ProvisionedConcurrencyConfigNotFoundException."""
        function = self._functions.hosted(name)
        version, _ = function.resolve(qualifier)
        provisioning = function.provisioned.get(qualifier)
        if provisioning is None:
            raise ProvisionedConcurrencyConfigNotFoundException(
                f"No Provisioned Concurrency Config found for this function: {name}:{qualifier}"
            )
        state = function.pool.state.provisioned.get(version, _NO_PROVISIONED)
        status = _status(state, provisioning.requested)
        failed = status is ProvisionedConcurrencyStatus.FAILED
        return ProvisionedConcurrencyConfig(
            function=name,
            qualifier=qualifier,
            version=version,
            requested=provisioning.requested,
            allocated=min(state.allocated, provisioning.requested),
            available=min(state.allocated, provisioning.requested),
            status=status,
            status_reason="FUNCTION_ERROR_INIT_FAILURE" if failed else "",
            last_modified=provisioning.last_modified,
        )

    def delete_provisioned(self, name: str, qualifier: str) -> None:
        """Raises ProvisionedConcurrencyConfigNotFoundException."""
        version = self.get_provisioned(name, qualifier).version
        function = self._functions.hosted(name)
        del function.provisioned[qualifier]
        function.provision(version)

    def list_provisioned(self, name: str) -> tuple[ProvisionedConcurrencyConfig, ...]:
        """Those of all aliases and versions of a function."""
        return tuple(
            self.get_provisioned(name, qualifier) for qualifier in self._functions.hosted(name).provisioned
        )

    # The account.

    def account_settings(self) -> AccountSettings:
        """The account's limit, and what is left unreserved."""
        return AccountSettings(
            concurrent_executions=self._limits.account_concurrency,
            unreserved_concurrent_executions=self._unreserved(),
            functions=len(self._functions),
        )

    def taken_by_others(self, function: HostedFunction, now: float) -> tuple[int, int]:
        """Concurrency, and requests of this second, that other functions take from the account."""
        states = [other.pool.state for other in self._functions if other is not function]
        return sum(map(claimed, states)), sum(requested(state, now) for state in states)

    @property
    def _min_unreserved(self) -> int:
        # Small accounts, as new ones are, could not reserve anything otherwise.
        return min(UNRESERVED.value, self._limits.account_concurrency // 10)

    def _unreserved(self, without: HostedFunction | None = None) -> int:
        reserved = sum(other.reserved or 0 for other in self._functions if other is not without)
        return self._limits.account_concurrency - reserved

    def _reserve(self, function: HostedFunction, reserved: int | None) -> None:
        function.reserved = reserved
        function.pool.set_limits(replace(self._limits, reserved_concurrency=reserved))

    def _check_provisioned(
        self, function: HostedFunction, qualifier: str, version: str, requested: int
    ) -> None:
        for other in function.provisioned:
            if other != qualifier and function.resolve(other)[0] == version:
                raise InvalidParameterValueException(
                    f"Version {version} has provisioned concurrency through {other} already. "
                    f"Delete that first, or change it instead of {qualifier}."
                )
        of_others = sum(
            provisioning.requested for name, provisioning in function.provisioned.items() if name != qualifier
        )
        if function.reserved is not None:
            limit, what = function.reserved, "reserved"
        else:
            limit, what = self._unreserved() - self._min_unreserved, "unreserved"
            of_others += sum(
                provisioning.requested
                for other in self._functions
                if other is not function and other.reserved is None
                for provisioning in other.provisioned.values()
            )
        if requested + of_others > limit:
            raise InvalidParameterValueException(
                f"ProvisionedConcurrentExecutions is {requested}, but only {limit - of_others} of the "
                f"{what} concurrency can be provisioned. Ask for less, or reserve more."
            )


def _status(state: Provisioned, requested: int) -> ProvisionedConcurrencyStatus:
    if state.allocated >= requested:
        return ProvisionedConcurrencyStatus.READY
    if state.failed:
        return ProvisionedConcurrencyStatus.FAILED
    return ProvisionedConcurrencyStatus.IN_PROGRESS
