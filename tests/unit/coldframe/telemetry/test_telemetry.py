"""Log lines of requests with metrics and spans: CloudWatch's format and its limits."""

from typing import Any

import pytest

from coldframe.api.messages import count_answers
from coldframe.schemas import CacheUsage, HeadAnswer, TextAnswer, Usage
from coldframe.telemetry.telemetry import Telemetry
from coldframe.telemetry.trace import Trace

USAGE = Usage(3, 2, 1, 40, 40, 2, 1, CacheUsage(l1=1, l2=0, embedding=0, miss=1))


def record(**fields: Any) -> dict[str, object]:
    basic: dict[str, object] = {
        "event": "request",
        "status": 200,
        "start": "warm",
        "duration_ms": 12.5,
        "model": "topics",
        "heads": ["auto"],
        "usage": USAGE,
        "stages_ms": {"cache": 0.5, "encode": 8.0},
        "stage_blocks": [("cache", 100.0, 100.0005), ("encode", 100.001, 100.009)],
    }
    return basic | fields


def with_metrics(telemetry: Telemetry | None = None, **fields: Any) -> dict[str, Any]:
    line = record(**fields)
    (telemetry or Telemetry("Coldframe/test", False, "on-demand")).add_to(line, None, 100.0, 1_700_000_000.5)
    return line


def directive(line: dict[str, Any]) -> dict[str, Any]:
    only = line["_aws"]["CloudWatchMetrics"]
    assert len(only) == 1
    return dict(only[0])


def test_every_metric_of_the_directive_is_a_number_of_the_line() -> None:
    line = with_metrics()
    names = [metric["Name"] for metric in directive(line)["Metrics"]]
    assert len(set(names)) == len(names)
    assert len(names) <= 100
    assert all(isinstance(line[name], int | float) for name in names)
    assert directive(line)["Namespace"] == "Coldframe/test"
    assert line["_aws"]["Timestamp"] == 1_700_000_000_500


def test_dimensions_are_the_model_and_the_head_alone() -> None:
    line = with_metrics()
    assert directive(line)["Dimensions"] == [[], ["Model"], ["Model", "Head"]]
    assert (line["Model"], line["Head"]) == ("topics", "auto")


def test_several_heads_are_no_dimension() -> None:
    line = with_metrics(heads=["auto", "mlp"])
    assert directive(line)["Dimensions"] == [[], ["Model"]]
    assert "Head" not in line


def test_a_refused_request_has_no_dimensions() -> None:
    line = with_metrics(model=None, heads=None, usage=None, stages_ms=None, status=422)
    assert directive(line)["Dimensions"] == [[]]
    assert line["refused"] == 1
    assert "defects" not in line


@pytest.mark.parametrize(("status", "metric"), [(500, "defects"), (503, "refused"), (404, "refused")])
def test_statuses_are_counted(status: int, metric: str) -> None:
    assert with_metrics(status=status)[metric] == 1


def test_durations_are_in_seconds() -> None:
    line = with_metrics()
    assert line["request_duration_seconds"] == 0.0125
    assert line["encode_duration_seconds"] == 0.008
    units = {metric["Name"]: metric["Unit"] for metric in directive(line)["Metrics"]}
    assert units["encode_duration_seconds"] == "Seconds"
    assert units["texts"] == "Count"


def test_counts_of_the_answer_are_metrics() -> None:
    line = with_metrics()
    assert (line["requests"], line["texts"], line["tokens"], line["estimated_texts"]) == (1, 3, 40, 1)
    assert (line["cache_answers_l1"], line["cache_answers_miss"]) == (1, 1)
    assert "cache_answers_l2" not in line


@pytest.mark.parametrize(
    "kind", ["on-demand", "provisioned-concurrency", "snap-start", "lambda-managed-instances"]
)
def test_an_environment_counts_its_start_once(kind: str) -> None:
    telemetry = Telemetry("Coldframe/test", False, kind)
    name = "cold_starts_" + kind.replace("-", "_")
    assert [name in with_metrics(telemetry) for _ in range(3)] == [True, False, False]


def test_answers_are_counted_by_their_part() -> None:
    def answer(**fields: Any) -> TextAnswer:
        return TextAnswer(0, {"auto": HeadAnswer("a", 0.5, [], 0.1, **fields)})

    counts = count_answers(
        [answer(by="estimator"), answer(by="estimator", rushed=True), answer(by="ensemble", abstained=True)]
    )
    assert counts == {"estimator": 2, "ensemble": 1, "rushed": 1, "abstained": 1}
    assert with_metrics(answers=counts)["rushed_answers"] == 1


def test_spans_count_from_the_start_of_the_request() -> None:
    line = record()
    Telemetry("", True, "server").add_to(line, Trace("a" * 32, "b" * 16, "c" * 16), 99.999, 0.0)
    assert line["spans_ms"] == [("cache", 1.0, 0.5), ("encode", 2.0, 8.0)]
    assert (line["trace_id"], line["span_id"], line["parent_span_id"]) == ("a" * 32, "b" * 16, "c" * 16)
    assert "_aws" not in line


def test_an_unsampled_trace_has_ids_and_no_spans() -> None:
    line = record()
    Telemetry("", True, "server").add_to(line, Trace("a" * 32, "b" * 16, is_sampled=False), 100.0, 0.0)
    assert line["sampled"] is False
    assert "spans_ms" not in line


def test_blocks_never_reach_the_log() -> None:
    for namespace, traces in (("Coldframe", False), ("", True)):
        line = record()
        telemetry = Telemetry(namespace, traces, "server")
        telemetry.add_to(line, telemetry.trace({}, ""), 100.0, 0.0)
        assert "stage_blocks" not in line
