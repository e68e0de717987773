"""Who gets in, and where a request goes."""

import json
import re
from typing import Any

import pytest

from coldframe.api.operations import JOB_OPERATIONS, OPERATIONS
from tests.support import stacks
from tests.support.stacks import JWT, OPEN, PREDICT_ALIAS, properties, stack

pytestmark = stacks.needs_translator


def test_every_request_goes_to_the_alias() -> None:
    """The one route is the default one; it calls `live`, which API Gateway may invoke, and nothing else."""
    made = stack()
    [(path, methods)] = properties(made, "HttpApi")["Body"]["paths"].items()
    [(method, route)] = methods.items()
    assert (path, method, route["isDefaultRoute"]) == ("/$default", "x-amazon-apigateway-any-method", True)
    integration = route["x-amazon-apigateway-integration"]
    [_, called] = integration["uri"]["Fn::Sub"]
    assert list(called.values()) == [{"Ref": PREDICT_ALIAS}]
    permission = properties(made, "PredictFunctionAnyRoutePermission")
    assert permission["FunctionName"] == {"Ref": PREDICT_ALIAS}
    assert permission["Principal"] == "apigateway.amazonaws.com"


def test_function_ends_before_the_api_stops_waiting() -> None:
    """A slow request ends in the function's own log, not only in a 503 of the API."""
    made = stack()
    integration = json.dumps(properties(made, "HttpApi")["Body"])
    [timeout_ms] = re.findall(r'"timeoutInMillis": (\d+)', integration)
    assert properties(made, "PredictFunction")["Timeout"] * 1000 < int(timeout_ms) <= 30_000


IAM_SCHEME = {
    "type": "apiKey",
    "name": "Authorization",
    "in": "header",
    "x-amazon-apigateway-authtype": "awsSigv4",
}


@pytest.mark.parametrize(
    ("parameters", "security", "scheme"),
    [
        ({}, [{"Callers": []}], IAM_SCHEME),
        (
            JWT,
            [{"Callers": []}],
            {
                "type": "oauth2",
                "x-amazon-apigateway-authorizer": {
                    "type": "jwt",
                    "identitySource": "$request.header.Authorization",
                    "jwtConfiguration": {"issuer": "https://example.com/", "audience": ["coldframe"]},
                },
            },
        ),
        (OPEN, None, IAM_SCHEME),
    ],
    ids=["IAM", "JWT", "None"],
)
def test_who_gets_in(
    parameters: dict[str, str], security: list[dict[str, Any]] | None, scheme: dict[str, Any]
) -> None:
    """Every route asks for what AuthMode says; only None asks for nothing."""
    body = properties(stack(**parameters), "HttpApi")["Body"]
    found = [method.get("security") for path in body["paths"].values() for method in path.values()]
    assert found == [security]
    assert body["components"]["securitySchemes"] == {"Callers": scheme}


def test_cors_is_off_by_default() -> None:
    """No page of another origin may call the API unless one is named."""
    assert "x-amazon-apigateway-cors" not in properties(stack(), "HttpApi")["Body"]
    cors = properties(stack(**OPEN), "HttpApi")["Body"]["x-amazon-apigateway-cors"]
    assert cors["allowOrigins"] == ["https://example.com"]
    assert "allowCredentials" not in cors


def test_cors_allows_what_the_contract_has() -> None:
    """A page may use every method of a route, and send every header that the API reads."""
    cors = properties(stack(**OPEN), "HttpApi")["Body"]["x-amazon-apigateway-cors"]
    assert {method for method, _ in (*OPERATIONS, *JOB_OPERATIONS)} == set(cors["allowMethods"])
    assert {"authorization", "content-type", "idempotency-key", "x-request-id"} <= set(cors["allowHeaders"])


def test_stage_throttles_and_logs() -> None:
    """The default stage limits rate and burst, and logs each request without who sent it or what."""
    stage = properties(stack(ThrottleRate="5", ThrottleBurst="6"), "HttpApiApiGatewayDefaultStage")
    assert stage["StageName"] == "$default"
    assert stage["DefaultRouteSettings"] == {
        "ThrottlingRateLimit": "5",
        "ThrottlingBurstLimit": "6",
        "DetailedMetricsEnabled": True,
    }
    log = stage["AccessLogSettings"]
    assert log["DestinationArn"] == {"Fn::GetAtt": ["ApiLogGroup", "Arn"]}
    named = set(re.findall(r"\$context\.([A-Za-z.]+)", log["Format"]))
    assert not {name for name in named if re.search("identity|authorizer|path|query|message$", name)}
    # `messageString` comes with its quotes; everything else is put between ours.
    filled = re.sub(
        r"\$context\.[A-Za-z.]+", "x", log["Format"].replace("$context.error.messageString", '""')
    )
    assert set(json.loads(filled)) >= {"requestId", "status", "latencyMs", "functionRequestId"}
