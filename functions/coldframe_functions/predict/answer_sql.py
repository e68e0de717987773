"""Direct invocations by databases: Redshift's Lambda UDFs, and `aws_lambda.invoke` of Aurora PostgreSQL.

https://docs.aws.amazon.com/redshift/latest/dg/udf-creating-a-lambda-sql-udf.html, read 2026-11-22
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from coldframe.api.api import Api, Request
from coldframe.sql.functions import FUNCTIONS
from coldframe_functions.predict.answer_batch import json_body

_OK = 200


def answer_sql(event: Mapping[str, Any], api: Api, request_id: str, time_left_s: Callable[[], float]) -> str:
    """The batch's answer as JSON in a string, as Redshift's documentation returns it. Never raises.

    A batch is answered as a whole. Otherwise `success` is false and the query ends with `error_msg`.
    """
    function = function_of(str(event["external_function"]))
    if function is None:
        names = ", ".join(FUNCTIONS)
        return _refuse(f"Found an unknown function. Give it a name that ends in one of: {names}.")
    path = f"/v1/sql/redshift/{function}"
    reply = api.answer(
        Request("POST", path, body=json_body(event), request_id=request_id, time_left_s=time_left_s)
    )
    answer = reply.body.decode()
    return answer if reply.status == _OK else _refuse(msgspec.json.decode(answer)["detail"])


def function_of(database_name: str) -> str | None:
    """The name in FUNCTIONS of a database's function: `public.f_is_topic` is `is_topic`. None if unknown."""
    bare = database_name.rpartition(".")[2].strip('"').lower()
    longest_first = sorted(FUNCTIONS, key=len, reverse=True)
    return next((name for name in longest_first if bare == name or bare.endswith(f"_{name}")), None)


def _refuse(message: str) -> str:
    return msgspec.json.encode({"success": False, "error_msg": message}).decode()
