"""`arn:aws:states:::lambda:invoke`, by boto3.

Source: https://docs.aws.amazon.com/step-functions/latest/dg/connect-lambda.html, read 2026-11-22.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from botocore.exceptions import BotoCoreError, ClientError

from coldframe_local.emulator.state_machines.workflow import Failed


class LambdaTask:
    """Invokes functions through one client. Safe for threads, as boto3's clients are.

    on_log: gets the end of each invocation's log, its REPORT line among it; from any thread.
    """

    def __init__(self, client: Any, on_log: Callable[[str], object] = len) -> None:
        self._client = client
        self._on_log = on_log

    def __call__(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Result of an invocation for a state. Raises Failed with the error's name on AWS."""
        payload = msgspec.json.encode(parameters.get("Payload"))
        target = {name: parameters[name] for name in ("FunctionName", "Qualifier") if name in parameters}
        try:
            answer = self._client.invoke(**target, Payload=payload, LogType="Tail")
            result = answer["Payload"].read()
        except ClientError as exc:
            raise Failed(f"Lambda.{exc.response['Error']['Code']}", exc.response["Error"]["Message"]) from exc
        except BotoCoreError as exc:
            raise Failed("Lambda.SdkClientException", type(exc).__name__) from exc
        self._on_log(base64.b64decode(answer.get("LogResult", "")).decode(errors="replace"))
        if "FunctionError" in answer:
            raise Failed(_error_type(result), result.decode(errors="replace"))
        return {
            "ExecutedVersion": answer.get("ExecutedVersion", "$LATEST"),
            "Payload": msgspec.json.decode(result),
            "StatusCode": answer["StatusCode"],
        }


def _error_type(result: bytes) -> str:
    """The name of a function's error, as its runtime has written it."""
    try:
        return str(msgspec.json.decode(result).get("errorType", "Exception"))
    except (msgspec.DecodeError, AttributeError):
        return "Exception"
