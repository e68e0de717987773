"""The forwarder: events of CloudWatch Logs in, requests of OTLP out, and receivers that fail."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from coldframe.telemetry.otlp_json import CLOUDWATCH
from coldframe_functions.traces.app import Answer, NotTaken, forward, read_headers
from tests.support.collectors import Collector, logs_event, packed_event, request_line

NOW_S = datetime(2026, 11, 24, 10, 0, 1, tzinfo=UTC).timestamp()
SECRET = "zyxwv-secret-4711"


class Receiver:
    """A receiver that gives these answers, then accepts all. An error is raised instead."""

    def __init__(self, *answers: Answer | OSError) -> None:
        self.collector = Collector()
        self.answers = list(answers)
        self.pauses: list[float] = []
        self.bodies: list[bytes] = []
        self.time_left_s = 25.0

    def post(self, body: bytes, limit_s: float) -> Answer:
        self.bodies.append(body)
        answer = self.answers.pop(0) if self.answers else Answer(200, b"{}")
        if isinstance(answer, OSError):
            raise answer
        if answer.status == 200:
            self.collector.take("/v1/traces", body, {"content-type": "application/json"})
        return answer

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time_left_s -= seconds

    def forward(self, given: dict[str, Any], now: Callable[[], float] = lambda: NOW_S) -> Counter[str]:
        counts: Counter[str] = Counter()
        forward(given, self.post, counts, lambda: self.time_left_s, now, self.pause)
        return counts


def test_spans_of_the_lines_arrive_with_their_environment() -> None:
    receiver = Receiver()
    lines = [request_line() + "\n", "START RequestId: 8f5\n", request_line(span_id="a" * 16)]
    assert receiver.forward(logs_event(*lines)) == {"lines": 3, "sent": 6}
    assert [span.name for span in receiver.collector.spans[:3]] == ["POST /v1/predict", "cache", "encode"]
    [resource] = json.loads(receiver.bodies[0])["resourceSpans"]
    facts = {each["key"]: each["value"]["stringValue"] for each in resource["resource"]["attributes"]}
    assert facts["faas.name"] == "coldframe-predict"
    assert facts["faas.instance"] == "2026/11/24/[1]f"


def test_a_line_without_spans_posts_nothing() -> None:
    receiver = Receiver()
    receiver.forward(logs_event("START RequestId: 8f5"))
    receiver.forward(
        logs_event("CWL CONTROL MESSAGE: Checking health of destination", kind="CONTROL_MESSAGE")
    )
    assert receiver.bodies == []


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"awslogs": {}},
        {"awslogs": {"data": "%"}},
        {"awslogs": {"data": "aGk="}},
        packed_event(b"{"),
        packed_event(b"[]"),
    ],
)
def test_an_event_of_another_source_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Invoke the function by a subscription"):
        Receiver().forward(broken)


def test_broken_lines_are_dropped_and_counted_and_the_others_arrive() -> None:
    receiver = Receiver()
    halves = request_line(path="x" * 2_000_000)
    counts = receiver.forward(
        logs_event(halves[:1_048_576], halves[1_048_576:], request_line(trace_id="zz"), None, request_line())
    )
    # CloudWatch Logs divides a line of more than 1 MB: its first half holds no spans yet.
    assert (counts["broken_lines"], counts["sent"]) == (3, 3)
    assert len(receiver.collector.spans) == 3


def test_a_clock_that_jumped_drops_spans_that_no_receiver_takes() -> None:
    receiver = Receiver()
    counts = receiver.forward(
        logs_event(
            request_line(time="2026-11-01T10:00:00Z"),
            request_line(time="2026-11-24T13:00:00Z"),
            request_line(time="2026-11-24T11:00:00Z"),
        )
    )
    assert (counts["out_of_time"], counts["sent"]) == (6, 3)


def test_a_span_over_its_limit_is_dropped_alone() -> None:
    receiver = Receiver()
    counts = receiver.forward(logs_event(request_line(path="x" * 250_000)))
    assert (counts["too_large"], counts["sent"]) == (1, 2)


def test_many_spans_are_several_requests() -> None:
    receiver = Receiver()
    lines = [request_line(span_id=f"{n + 1:016x}", path="/" + "x" * 5_000) for n in range(1_200)]
    assert receiver.forward(logs_event(*lines))["sent"] == 3_600
    assert len(receiver.bodies) > 1
    assert all(len(body) <= CLOUDWATCH.request_bytes for body in receiver.bodies)
    assert len({span.span_id for span in receiver.collector.spans}) == 3_600


def test_a_partial_success_is_counted_and_not_sent_again() -> None:
    receiver = Receiver(Answer(200, b'{"partialSuccess":{"rejectedSpans":"2"}}'))
    assert receiver.forward(logs_event(request_line())) == {"lines": 1, "sent": 1, "refused": 2}
    assert len(receiver.bodies) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 302])
def test_a_refusal_is_counted_and_not_sent_again(status: int) -> None:
    receiver = Receiver(Answer(status))
    assert receiver.forward(logs_event(request_line())) == {"lines": 1, "refused": 3, f"status_{status}": 1}
    assert len(receiver.bodies) == 1


@pytest.mark.parametrize("failure", [Answer(429), Answer(502), Answer(503), Answer(504), OSError("refused")])
def test_a_busy_receiver_gets_the_spans_a_moment_later(failure: Answer | OSError) -> None:
    receiver = Receiver(failure, failure)
    assert receiver.forward(logs_event(request_line()))["sent"] == 3
    assert len(receiver.pauses) == 2
    assert receiver.pauses[0] <= 0.5
    assert len(receiver.collector.spans) == 3


@pytest.mark.parametrize(
    ("header", "expected_s"), [("7", 7.0), ("0", None), ("soon", None), ("-3", None), ("1" * 400, None)]
)
def test_retry_after_is_honoured(header: str, expected_s: float | None) -> None:
    receiver = Receiver(Answer(429, retry_after=header))
    if header == "1" * 400:
        with pytest.raises(NotTaken):
            receiver.forward(logs_event(request_line()))
        return
    receiver.forward(logs_event(request_line()))
    if expected_s is not None:
        assert receiver.pauses == [expected_s]


@pytest.mark.parametrize("failure", [Answer(503), Answer(429, retry_after="3600"), OSError(SECRET)])
def test_a_receiver_that_stays_down_fails_the_invocation_in_time(failure: Answer | OSError) -> None:
    receiver = Receiver(*[failure] * 100)
    with pytest.raises(NotTaken) as caught:
        receiver.forward(logs_event(request_line()))
    assert sum(receiver.pauses) < 25.0
    assert SECRET not in str(caught.value)
    assert str(caught.value).endswith("Check that it runs and has room.")


def test_an_event_that_is_sent_twice_gives_the_same_spans() -> None:
    receiver = Receiver()
    for _ in range(2):
        receiver.forward(logs_event(request_line()))
    assert receiver.bodies[0] == receiver.bodies[1]


def test_headers_have_opentelemetrys_form() -> None:
    assert read_headers("Authorization=Bearer%20abc=, x-tenant = 7,,broken") == {
        "authorization": "Bearer abc=",
        "x-tenant": "7",
        "broken": "",
    }
    assert read_headers("") == {}
