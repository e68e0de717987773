"""The caller's name in events of API Gateway, in the shapes of its documentation (read 2026-11-22)."""

from types import SimpleNamespace
from typing import Any

import pytest

from coldframe.api.gateway_event import http_event, principal_of
from coldframe_functions.predict.engine import read_event

IAM = {
    "accessKey": "ASIAIOSFODNN7EXAMPLE",
    "accountId": "111122223333",
    "callerId": "AROAIOSFODNN7EXAMPLE:session-1",
    "cognitoIdentity": None,
    "principalOrgId": "AIDACKCEVSQ6C2EXAMPLE",
    "userArn": "arn:aws:sts::111122223333:assumed-role/caller/session-1",
    "userId": "AROAIOSFODNN7EXAMPLE:session-1",
}
COGNITO = {"amr": ["authenticated"], "identityId": "eu-west-1:7c1f", "identityPoolId": "eu-west-1:pool"}
IDENTITY = {
    "accessKey": "AKIAIOSFODNN7EXAMPLE",
    "accountId": "111122223333",
    "caller": "AIDACKCEVSQ6C2EXAMPLE",
    "cognitoIdentityId": None,
    "sourceIp": "192.0.2.1",
    "user": "AIDACKCEVSQ6C2EXAMPLE",
}
NOBODY = {**dict.fromkeys(IDENTITY), "sourceIp": "192.0.2.1"}
USER = {"iss": "https://issuer.example", "sub": "248289761001", "scope": "a b"}
MACHINE = {"iss": "https://issuer.example", "client_id": "nightly"}


@pytest.mark.parametrize(
    ("gateway", "principal"),
    [
        ({}, ""),
        ({"authorizer": None}, ""),
        ({"authorizer": {"iam": IAM}}, "iam 111122223333 AROAIOSFODNN7EXAMPLE"),
        ({"authorizer": {"iam": {**IAM, "cognitoIdentity": COGNITO}}}, "iam 111122223333 eu-west-1:7c1f"),
        (
            {"authorizer": {"jwt": {"claims": USER, "scopes": None}}},
            "jwt https://issuer.example 248289761001",
        ),
        ({"authorizer": {"jwt": {"claims": MACHINE, "scopes": ["a"]}}}, "jwt https://issuer.example nightly"),
        ({"authorizer": {"lambda": {"principalId": "alice", "plan": "x"}}}, "lambda alice"),
        ({"authorizer": {"lambda": {"plan": "x"}}}, ""),
        ({"authorizer": {"lambda": None}}, ""),
        ({"authorizer": {"claims": USER}, "identity": NOBODY}, "jwt https://issuer.example 248289761001"),
        (
            {"authorizer": {"principalId": "alice", "integrationLatency": 9}, "identity": NOBODY},
            "lambda alice",
        ),
        ({"identity": IDENTITY}, "iam 111122223333 AIDACKCEVSQ6C2EXAMPLE"),
        ({"identity": NOBODY}, ""),
        ({"elb": {"targetGroupArn": "arn:aws:elasticloadbalancing:…"}}, ""),
    ],
    ids=[
        "open",
        "null",
        "role",
        "cognito identity",
        "token of a user",
        "token of a client",
        "lambda",
        "lambda without a name",
        "lambda without a context",
        "user pool, 1.0",
        "lambda, 1.0",
        "user, 1.0",
        "open, 1.0",
        "load balancer",
    ],
)
def test_principal(gateway: dict[str, Any], principal: str) -> None:
    """Each kind of authorizer names the caller; a load balancer's forgeable header does not."""
    assert (
        principal_of({"requestContext": gateway, "headers": {"x-amzn-oidc-identity": "mallory"}}) == principal
    )


def test_sessions_of_a_role_are_one_principal() -> None:
    """A caller keeps its name in its next execution environment, whose session has another name."""
    next_session = {**IAM, "userId": "AROAIOSFODNN7EXAMPLE:session-2"}
    first, second = ({"requestContext": {"authorizer": {"iam": each}}} for each in (IAM, next_session))
    assert principal_of(first) == principal_of(second)


def test_request_names_its_caller() -> None:
    """The function's request carries the name that the authorizer gives."""
    event = http_event("GET", "/v1/jobs/1")
    event["requestContext"]["authorizer"] = {"iam": IAM}
    context = SimpleNamespace(aws_request_id="1", get_remaining_time_in_millis=lambda: 1000)
    assert read_event(event, context).principal == "iam 111122223333 AROAIOSFODNN7EXAMPLE"
