"""Reserved and provisioned concurrency, and the account's, by the Lambda API."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from coldframe.capacity.limits import CODE, ZIP, ZIPPED
from coldframe_local.emulator.aws_api.lambda_api.answers import answer
from coldframe_local.emulator.aws_api.lambda_api.call import Call, Operation
from coldframe_local.emulator.gateway.http import HttpResponse
from coldframe_local.emulator.lambda_service.account.service import LambdaService
from coldframe_local.emulator.lambda_service.lambda_types import ProvisionedConcurrencyConfig

_PROVISIONED = "/2019-09-30/functions/{FunctionName}/provisioned-concurrency"
_CODE_SIZES = {
    "TotalCodeSize": CODE.value,
    "CodeSizeUnzipped": ZIP.value,
    "CodeSizeZipped": ZIPPED.value,
}


class ConcurrencyCalls:
    """Operations on concurrency."""

    def __init__(self, service: LambdaService) -> None:
        self._service = service
        self._concurrency = service.concurrency

    def operations(self) -> dict[str, Operation]:
        """By method and path."""
        return {
            "GET /2019-09-30/functions/{FunctionName}/concurrency": self._get_reserved,
            "PUT /2017-10-31/functions/{FunctionName}/concurrency": self._put_reserved,
            "DELETE /2017-10-31/functions/{FunctionName}/concurrency": self._delete_reserved,
            f"GET {_PROVISIONED}": self._get_provisioned,
            f"PUT {_PROVISIONED}": self._put_provisioned,
            f"DELETE {_PROVISIONED}": self._delete_provisioned,
            "GET /2016-08-19/account-settings": self._account_settings,
        }

    async def _get_reserved(self, call: Call) -> HttpResponse:
        reserved = self._concurrency.get_reserved(call.name)
        return answer(HTTPStatus.OK, {} if reserved is None else {"ReservedConcurrentExecutions": reserved})

    async def _put_reserved(self, call: Call) -> HttpResponse:
        reserved = call.number("ReservedConcurrentExecutions")
        self._concurrency.put_reserved(call.name, reserved)
        return answer(HTTPStatus.OK, {"ReservedConcurrentExecutions": reserved})

    async def _delete_reserved(self, call: Call) -> HttpResponse:
        self._concurrency.delete_reserved(call.name)
        return answer(HTTPStatus.NO_CONTENT)

    async def _get_provisioned(self, call: Call) -> HttpResponse:
        if call.query.get("List") == "ALL":  # the same path is ListProvisionedConcurrencyConfigs
            return self._list_provisioned(call)
        config = self._concurrency.get_provisioned(call.name, call.needed_qualifier())
        return answer(HTTPStatus.OK, _shape(config))

    async def _put_provisioned(self, call: Call) -> HttpResponse:
        requested = call.number("ProvisionedConcurrentExecutions")
        config = self._concurrency.put_provisioned(call.name, call.needed_qualifier(), requested)
        return answer(HTTPStatus.ACCEPTED, _shape(config))

    async def _delete_provisioned(self, call: Call) -> HttpResponse:
        self._concurrency.delete_provisioned(call.name, call.needed_qualifier())
        return answer(HTTPStatus.NO_CONTENT)

    def _list_provisioned(self, call: Call) -> HttpResponse:
        page, marker = call.page(self._concurrency.list_provisioned(call.name))
        configs = [
            {"FunctionArn": self._service.arn(call.name, config.qualifier), **_shape(config)}
            for config in page
        ]
        return answer(HTTPStatus.OK, {"ProvisionedConcurrencyConfigs": configs, "NextMarker": marker})

    async def _account_settings(self, call: Call) -> HttpResponse:
        account = self._concurrency.account_settings()
        limit = {
            **_CODE_SIZES,
            "ConcurrentExecutions": account.concurrent_executions,
            "UnreservedConcurrentExecutions": account.unreserved_concurrent_executions,
        }
        usage = {"TotalCodeSize": 0, "FunctionCount": account.functions}
        return answer(HTTPStatus.OK, {"AccountLimit": limit, "AccountUsage": usage})


def _shape(config: ProvisionedConcurrencyConfig) -> dict[str, Any]:
    shape = {
        "RequestedProvisionedConcurrentExecutions": config.requested,
        "AvailableProvisionedConcurrentExecutions": config.available,
        "AllocatedProvisionedConcurrentExecutions": config.allocated,
        "Status": config.status,
        "LastModified": config.last_modified,
    }
    return shape | ({"StatusReason": config.status_reason} if config.status_reason else {})
