"""HTTP request to payload 2.0 event, and function result to HTTP response."""

from __future__ import annotations

import base64
import json
from http import HTTPStatus
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coldframe.api.gateway_event import principal_of
from coldframe_local.emulator.gateway import payload_v1
from coldframe_local.emulator.gateway.arrival import Arrived
from coldframe_local.emulator.gateway.definitions import ApiKind
from coldframe_local.emulator.gateway.http import Headers, HttpRequest, problem
from coldframe_local.emulator.gateway.payload_v2 import event_from_request, response_from_result
from coldframe_local.emulator.gateway.result import MalformedResponse
from coldframe_local.emulator.lambda_service.settings import ACCOUNT_ID

REQUEST_ID = "6f9619ff-8b86-4011-b42d-00c04fc964ff"
NOON = 1583348638.39  # 2020-03-04T19:03:58.390Z


def event_of(
    path: str = "/v1/predict",
    query: str = "",
    headers: Headers | None = None,
    body: bytes = b"",
    method: str = "POST",
) -> dict[str, Any]:
    request = HttpRequest(method, path, query, headers or [], body, source_ip="192.0.2.1")
    return event_from_request(request, Arrived(REQUEST_ID, NOON))


def response_of(result: Any) -> Any:
    return response_from_result(json.dumps(result).encode())


def test_event_has_the_shape_of_payload_2_0() -> None:
    """A request becomes the documented payload 2.0 event, field by field."""
    event = event_of(
        query="a=1&a=2&b=",
        headers=[
            (b"host", b"localhost:3000"),
            (b"content-type", b"application/json"),
            (b"user-agent", b"curl/8.5"),
        ],
        body=b'{"text": "x"}',
    )
    assert event == {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": "/v1/predict",
        "rawQueryString": "a=1&a=2&b=",
        "queryStringParameters": {"a": "1,2", "b": ""},
        "headers": {
            "host": "localhost:3000",
            "content-type": "application/json",
            "user-agent": "curl/8.5",
            "x-amzn-trace-id": "Root=1-5e5ffb9e-6f9619ff8b864011b42d00c0",
            "x-forwarded-for": "192.0.2.1",
            "x-forwarded-port": "3000",
            "x-forwarded-proto": "http",
        },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "local",
            "domainName": "localhost:3000",
            "domainPrefix": "localhost:3000",
            "http": {
                "method": "POST",
                "path": "/v1/predict",
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "curl/8.5",
            },
            "requestId": REQUEST_ID,
            "routeKey": "$default",
            "stage": "$default",
            "time": "04/Mar/2020:19:03:58 +0000",
            "timeEpoch": 1583348638390,
        },
        "body": '{"text": "x"}',
        "isBase64Encoded": False,
    }


def test_address_of_the_caller_is_added_to_those_of_proxies() -> None:
    """x-forwarded-for keeps what other proxies have said, in one header or in several."""
    headers = [(b"x-forwarded-for", b"198.51.100.7"), (b"x-forwarded-for", b"203.0.113.9")]
    assert event_of(headers=headers)["headers"]["x-forwarded-for"] == "198.51.100.7,203.0.113.9, 192.0.2.1"


def test_trace_of_the_caller_is_kept() -> None:
    """A trace that the caller has begun goes on; a header that names none is replaced."""
    trace = b"Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"
    kept = event_of(headers=[(b"x-amzn-trace-id", trace)])
    replaced = event_of(headers=[(b"x-amzn-trace-id", b"mine")])
    assert kept["headers"]["x-amzn-trace-id"] == trace.decode()
    assert replaced["headers"]["x-amzn-trace-id"].startswith("Root=1-5e5ffb9e-")


def test_empty_parts_are_left_out_of_the_event() -> None:
    """Without a body, cookies or a query string the event has no such keys."""
    event = event_of(method="GET")
    assert event.keys().isdisjoint({"body", "cookies", "queryStringParameters"})
    assert event["rawQueryString"] == ""
    assert event["isBase64Encoded"] is False


def test_repeated_headers_are_joined_by_commas() -> None:
    """The values of a header that occurs twice become one value."""
    event = event_of(headers=[(b"accept", b"text/html"), (b"x-a", b"1"), (b"accept", b"text/plain")])
    assert event["headers"]["accept"] == "text/html,text/plain"


def test_cookies_leave_the_headers() -> None:
    """Cookies are a list of their own, also when they come in several headers."""
    event = event_of(headers=[(b"cookie", b"a=1; b=2"), (b"cookie", b"c=3")])
    assert event["cookies"] == ["a=1", "b=2", "c=3"]
    assert "cookie" not in event["headers"]


def test_path_is_decoded() -> None:
    """rawPath and requestContext.http.path are decoded, the query string is not."""
    event = event_of(path="/a%20b/%C3%A9", query="q=a%20b")
    assert event["rawPath"] == event["requestContext"]["http"]["path"] == "/a b/é"
    assert (event["rawQueryString"], event["queryStringParameters"]) == ("q=a%20b", {"q": "a b"})


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "text/plain; charset=utf-8", "Application/Problem+JSON", "application/xml"],
)
def test_text_bodies_are_carried_as_text(content_type: str) -> None:
    """A body of a textual type is in the event as it is."""
    event = event_of(headers=[(b"content-type", content_type.encode())], body="é".encode())
    assert (event["body"], event["isBase64Encoded"]) == ("é", False)


@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "image/png", ""])
def test_other_bodies_are_carried_in_base64(content_type: str) -> None:
    """The content type decides, as on AWS: curl's default for JSON arrives in base64."""
    event = event_of(headers=[(b"content-type", content_type.encode())], body=b'{"text": "x"}')
    assert event["isBase64Encoded"] is True
    assert base64.b64decode(event["body"]) == b'{"text": "x"}'


@given(st.binary(min_size=1))
def test_any_bytes_survive_the_event(body: bytes) -> None:
    """No body is lost or changed, even one that is not the UTF-8 its type promises."""
    event = json.loads(json.dumps(event_of(headers=[(b"content-type", b"application/json")], body=body)))
    decoded = base64.b64decode(event["body"]) if event["isBase64Encoded"] else event["body"].encode()
    assert decoded == body


def test_full_response_is_taken_as_it_is() -> None:
    """Status, headers, cookies and a base64 body of a payload 2.0 response reach the client."""
    response = response_of(
        {
            "statusCode": 201,
            "headers": {"Content-Type": "image/png", "X-Count": 3, "X-Cached": False},
            "cookies": ["a=1", "b=2"],
            "body": base64.b64encode(b"\xff\x00").decode(),
            "isBase64Encoded": True,
        }
    )
    assert response.status == 201
    assert response.body == b"\xff\x00"
    assert response.headers == [
        (b"content-type", b"image/png"),
        (b"x-count", b"3"),
        (b"x-cached", b"false"),
        (b"set-cookie", b"a=1"),
        (b"set-cookie", b"b=2"),
    ]


def test_full_response_without_a_type_is_plain_text() -> None:
    """API Gateway's default content type for a response with a status is text/plain."""
    response = response_of({"statusCode": 200, "body": "é"})
    assert response.headers == [(b"content-type", b"text/plain;charset=UTF-8")]
    assert response.body == "é".encode()


def test_full_response_may_have_no_body() -> None:
    """A missing or null body is an empty one, and the status may be a string."""
    assert response_of({"statusCode": "204"}).body == b""
    assert response_of({"statusCode": 204, "body": None, "headers": None}).status == 204


def test_headers_of_the_connection_are_dropped() -> None:
    """The function cannot set the length or the transfer coding of the response."""
    headers = {"Content-Length": "5", "Transfer-Encoding": "chunked", "Connection": "close"}
    response = response_of({"statusCode": 200, "headers": headers, "body": "x"})
    assert [name for name, _ in response.headers] == [b"content-type"]


@pytest.mark.parametrize("result", [{"label": "refund"}, [1, 2], 3, None, True])
def test_bare_value_is_a_200_of_json(result: Any) -> None:
    """A result without statusCode is the body of a 200."""
    response = response_of(result)
    assert response.status == HTTPStatus.OK
    assert response.headers == [(b"content-type", b"application/json")]
    assert json.loads(response.body) == result


def test_bare_string_is_sent_without_its_quotes() -> None:
    """A string result is the body itself, still announced as JSON."""
    response = response_of("Hello from Lambda!")
    assert response.body == b"Hello from Lambda!"
    assert response.headers == [(b"content-type", b"application/json")]


@pytest.mark.parametrize(
    "result",
    [
        {"statusCode": "soon"},
        {"statusCode": None},
        {"statusCode": True},
        {"statusCode": 200.5},
        {"statusCode": 99},
        {"statusCode": 1000},
        {"statusCode": 200, "headers": ["a"]},
        {"statusCode": 200, "headers": {"x": "a\r\nset-cookie: b"}},
        {"statusCode": 200, "headers": {"x\r\ny": "a"}},
        {"statusCode": 200, "headers": {"x": "\u20ac"}},
        {"statusCode": 200, "headers": {"x": "a\x7fb"}},
        {"statusCode": 200, "headers": {"": "a"}},
        {"statusCode": 200, "headers": {"a b: c": "a"}},
        {"statusCode": 200, "headers": {"x": ["a", "b"]}},
        {"statusCode": 200, "headers": {"x": {"a": 1}}},
        {"statusCode": 200, "headers": {"x": None}},
        {"statusCode": 200, "cookies": ["a=1\r\nb: 2"]},
        {"statusCode": "99"},
        {"statusCode": "1e3"},
        {"statusCode": "2_00"},
        {"statusCode": "\u0662\u0660\u0660"},
        {"statusCode": []},
        {"statusCode": 200, "cookies": "a=1"},
        {"statusCode": 200, "body": {"a": 1}},
        {"statusCode": 200, "body": "not base64!", "isBase64Encoded": True},
    ],
)
def test_malformed_results_are_refused(result: Any) -> None:
    """A result that says statusCode but is not an HTTP response is an error of the function."""
    with pytest.raises(MalformedResponse):
        response_of(result)


@pytest.mark.parametrize("payload", [b"", b"{", b"\xff", b'"\xff"', b"[" * 100_000])
def test_result_that_is_not_json_is_refused(payload: bytes) -> None:
    """Bytes that are not JSON are no result."""
    with pytest.raises(MalformedResponse):
        response_from_result(payload)


def test_gateway_answers_are_problems() -> None:
    """The gateway's own answers hold AWS's members and those of a problem."""
    response = problem(HTTPStatus.BAD_GATEWAY, "It failed.", aws={"message": "Internal Server Error"})
    assert response.status == 502
    assert response.headers == [(b"content-type", b"application/problem+json")]
    assert msgspec.json.decode(response.body) == {
        "message": "Internal Server Error",
        "type": "about:blank",
        "title": "Bad Gateway",
        "status": 502,
        "detail": "It failed.",
    }


@pytest.mark.parametrize(("authorizes", "principal"), [(True, f"iam {ACCOUNT_ID} alice"), (False, "")])
def test_signed_request_names_its_caller(authorizes: bool, principal: str) -> None:
    """Both payloads name the key of a signed request as its caller, where the API asks for a signature."""
    signature = b"AWS4-HMAC-SHA256 Credential=alice/20261122/eu-west-1/execute-api/aws4_request, Signature=0"
    request = HttpRequest("GET", "/", "", [(b"authorization", signature)], b"", "192.0.2.1")
    arrived = Arrived(REQUEST_ID, NOON, authorizes=authorizes)
    rest = payload_v1.event_from_request(request, arrived, ApiKind.REST, "/", ())
    assert (principal_of(event_from_request(request, arrived)), principal_of(rest)) == (principal, principal)
