"""Metrics inside a request's log line, in CloudWatch's Embedded Metric Format.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html,
read 2026-11-22. Each combination of dimension values is a custom metric with a price. So the dimensions are
the model and the head, and everything else stays a plain field of the line.
"""

from collections.abc import Mapping

from coldframe.schemas import CACHE_LEVELS, Usage

_SECONDS, _COUNT = "Seconds", "Count"


def add_metrics(record: dict[str, object], namespace: str, start_kind: str, now_s: float) -> None:
    """Adds metrics of one request to its log record: values by name, and the directive `_aws`.

    start_kind: how this environment was initialised, such as `on-demand`; "" after its first request.
    now_s: seconds since 1970.
    """
    seconds, counts = _seconds(record), _counts(record, start_kind)
    dimensions: list[list[str]] = [[]]
    if isinstance(model := record.get("model"), str):
        record["Model"] = model
        dimensions.append(["Model"])
        heads = record.get("heads")
        if isinstance(heads, list) and len(heads) == 1:
            record["Head"] = heads[0]
            dimensions.append(["Model", "Head"])
    record |= seconds
    record |= counts
    record["_aws"] = {
        "Timestamp": int(now_s * 1e3),
        "CloudWatchMetrics": [
            {
                "Namespace": namespace,
                "Dimensions": dimensions,
                "Metrics": [{"Name": name, "Unit": _SECONDS} for name in seconds]
                + [{"Name": name, "Unit": _COUNT} for name in counts],
            }
        ],
    }


def _seconds(record: Mapping[str, object]) -> dict[str, float]:
    """Durations of the request and its stages, in seconds."""
    seconds = {}
    if isinstance(duration_ms := record.get("duration_ms"), float):
        seconds["request_duration_seconds"] = round(duration_ms / 1e3, 6)
    if isinstance(stages_ms := record.get("stages_ms"), dict):
        seconds |= {f"{stage}_duration_seconds": round(ms / 1e3, 6) for stage, ms in stages_ms.items()}
    return seconds


def _counts(record: Mapping[str, object], start_kind: str) -> dict[str, int]:
    """Counts of the request. A count of zero is left out, except for the request itself."""
    counts = {"requests": 1}
    if start_kind:
        counts["cold_starts_" + start_kind.replace("-", "_")] = 1
    status = record.get("status")
    if isinstance(status, int) and status >= 400:
        counts["defects" if status >= 500 and status != 503 else "refused"] = 1
    if record.get("cache_error"):
        counts["cache_errors"] = 1
    if isinstance(answers := record.get("answers"), dict):
        counts |= {f"{kind}_answers": number for kind, number in answers.items()}
    if isinstance(usage := record.get("usage"), Usage):
        counts |= {"texts": usage.texts, "estimated_texts": usage.estimated, "tokens": usage.tokens}
        counts |= {f"cache_answers_{level}": getattr(usage.cache, level) for level in CACHE_LEVELS}
    return {name: number for name, number in counts.items() if number or name == "requests"}
