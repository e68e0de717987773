"""The emulated Lambda service of one account: what the doors (HTTP, Lambda API, console) stand on."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from coldframe.concurrency import Throttle
from local.lambda_types import (
    AccountSettings,
    Invoked,
    ProvisionedConcurrencyConfig,
    Snapshot,
)
from local.process import FunctionSettings, Log

Clock = Callable[[], float]


class LambdaService:
    """Functions by name, each with versions, the alias `live`, and execution environments.

    All methods run in the event loop's thread; those that are not `async` return at once.
    Errors are `LambdaException`s. qualifier: a version, an alias, or None for `$LATEST`.
    clock: seconds, for ages, keep-alive and rates; a test may turn it forward.
    """

    def __init__(
        self,
        log: Log,
        *,
        account_concurrency: int = 1000,
        keep_alive_s: float = 600.0,
        clock: Clock = time.monotonic,
    ) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> LambdaService:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stops every environment and waits until no process is left. Callers get a crash."""
        raise NotImplementedError

    # Functions.

    def create_function(self, function: FunctionSettings) -> None:
        """Adds a function: `$LATEST`, version 1, and the alias `live` that points to it.

        Raises ResourceConflictException, InvalidParameterValueException.
        """
        raise NotImplementedError

    def list_functions(self) -> tuple[str, ...]:
        """Names, in the order of creation."""
        raise NotImplementedError

    def get_function(self, name: str, qualifier: str | None = None) -> FunctionSettings:
        """The function as a version has it, `.version` resolved. Raises ResourceNotFoundException."""
        raise NotImplementedError

    def publish_version(self, name: str) -> str:
        """A new version of what `$LATEST` is; its number."""
        raise NotImplementedError

    def list_versions(self, name: str) -> tuple[str, ...]:
        """`$LATEST` first, then the published ones, oldest first."""
        raise NotImplementedError

    def put_alias(self, name: str, alias: str, version: str) -> None:
        """Lets an alias point to a published version. Its provisioned concurrency moves along."""
        raise NotImplementedError

    def list_aliases(self, name: str) -> dict[str, str]:
        """Alias to version."""
        raise NotImplementedError

    # Invocations.

    async def invoke(self, name: str, qualifier: str | None, event: bytes) -> Invoked | Throttle:
        """One synchronous invocation. event: JSON. Raises ResourceNotFoundException."""
        raise NotImplementedError

    # Concurrency.

    def put_provisioned_concurrency(
        self, name: str, qualifier: str, requested: int
    ) -> ProvisionedConcurrencyConfig:
        """Starts to initialise environments ahead of traffic, or stops some.

        Raises InvalidParameterValueException for `$LATEST`, for less than 1, and for more than the
        reserved or unreserved concurrency leaves.
        """
        raise NotImplementedError

    def get_provisioned_concurrency(self, name: str, qualifier: str) -> ProvisionedConcurrencyConfig:
        """Raises ProvisionedConcurrencyConfigNotFoundException."""
        raise NotImplementedError

    def delete_provisioned_concurrency(self, name: str, qualifier: str) -> None:
        """Raises ProvisionedConcurrencyConfigNotFoundException."""
        raise NotImplementedError

    def list_provisioned_concurrency(self, name: str) -> tuple[ProvisionedConcurrencyConfig, ...]:
        """Those of all aliases and versions of a function."""
        raise NotImplementedError

    def put_function_concurrency(self, name: str, reserved: int) -> None:
        """Reserves concurrency for a function, which is also its limit. 0 switches it off.

        Raises InvalidParameterValueException when too little would stay unreserved, or when it is
        less than the function's provisioned concurrency.
        """
        raise NotImplementedError

    def get_function_concurrency(self, name: str) -> int | None:
        """The reserved concurrency; None when nothing is reserved."""
        raise NotImplementedError

    def delete_function_concurrency(self, name: str) -> None:
        """Gives the reserved concurrency back to the account."""
        raise NotImplementedError

    def account_settings(self) -> AccountSettings:
        """The account's limit, and what is left unreserved."""
        raise NotImplementedError

    # Development.

    def recycle(self, name: str) -> None:
        """Replaces every environment, so that changed code is loaded.

        Idle ones at once, busy ones after their invocation, provisioned ones by new ones.
        """
        raise NotImplementedError

    # What is to be seen.

    def snapshot(self) -> Snapshot:
        """Everything at this moment."""
        raise NotImplementedError

    async def changed(self, revision: int) -> int:
        """Waits until the revision is a later one than `revision`, and returns it.

        Changes that come while nobody waits are one change to the next who does.
        """
        raise NotImplementedError

    def render_metrics(self) -> tuple[str, bytes]:
        """Content type and body of `GET /_metrics`, in Prometheus' text format."""
        raise NotImplementedError
