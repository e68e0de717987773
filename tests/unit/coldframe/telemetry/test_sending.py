"""Spans on their way to a collector that is down, slow, refuses or takes a part."""

import threading

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from coldframe.telemetry.sending import open_sender
from tests.support.collectors import REQUEST_FIELDS, collecting, request_line


def test_spans_arrive_with_their_kinds_and_parents() -> None:
    with collecting() as collector:
        sender = open_sender("test", collector.url)
        sender(request_line(status=500))
        sender.close(patience_s=60)
    request, cache, encode = collector.spans
    assert (request.kind, cache.kind) == (Span.SPAN_KIND_SERVER, Span.SPAN_KIND_INTERNAL)
    assert request.parent_span_id.hex() == REQUEST_FIELDS["parent_span_id"]
    assert cache.parent_span_id == encode.parent_span_id == request.span_id
    assert request.status.code == 2


def test_a_broken_line_is_left_out() -> None:
    with collecting() as collector:
        sender = open_sender("test", collector.url)
        sender(request_line(trace_id="not hex"))
        sender(request_line())
        sender.close(patience_s=60)
    assert len(collector.spans) == 3


def test_a_collector_gets_every_span_once() -> None:
    with collecting() as collector:
        sender = open_sender("test", collector.url + "/")
        for number in range(100):
            sender(request_line(span_id=f"{number + 1:016x}"))
        sender.close(patience_s=60)
        assert sender.lost == 0
    assert len(collector.spans) == 300
    assert len({span.span_id for span in collector.spans}) == 300
    assert collector.services == {"test"}
    assert set(collector.paths) == {"/v1/traces"}


def test_a_collector_that_refuses_for_a_moment_is_called_again() -> None:
    with collecting() as collector:
        collector.statuses = [429, 503]
        sender = open_sender("test", collector.url)
        sender(request_line())
        assert collector.wait_for(lambda: len(collector.spans) == 3)
        sender.close()
        assert sender.lost == 0
    assert len(collector.paths) == 3


def test_spans_that_a_collector_refuses_are_counted() -> None:
    with collecting() as collector:
        collector.statuses = [400]
        sender = open_sender("test", collector.url)
        sender(request_line())
        sender.close(patience_s=60)
        assert sender.lost == 3
    assert collector.spans == []


def test_a_partial_success_is_no_reason_to_send_again() -> None:
    with collecting() as collector:
        collector.rejected_spans = 1
        sender = open_sender("test", collector.url)
        sender(request_line())
        sender.close(patience_s=60)
    assert len(collector.paths) == 1


def test_a_collector_that_is_down_keeps_no_process_alive() -> None:
    with collecting() as collector:
        url = collector.url
    others = set(threading.enumerate())
    sender = open_sender("test", url)
    for number in range(10_000):
        sender(request_line(span_id=f"{number + 1:016x}"))
    sender.close(patience_s=0)
    assert all(thread.daemon for thread in set(threading.enumerate()) - others)


def test_a_collector_that_never_answers_delays_no_line_and_no_end() -> None:
    others = set(threading.enumerate())
    with collecting() as collector:
        collector.silent.set()
        sender = open_sender("test", collector.url)
        for number in range(10_000):
            sender(request_line(span_id=f"{number + 1:016x}"))
        sender.close(patience_s=0)
        assert all(thread.daemon for thread in set(threading.enumerate()) - others if thread.name == "spans")
