"""The contract of `POST /v1/predict`, written once, with the standard library alone.

The message types are made of the same names and limits; `tests/unit/coldframe/api/test_written_once.py` holds
the two together.
"""

from collections.abc import Mapping

PREDICT = ("POST", "/v1/predict")
JSON = "application/json"
READ_AS_JSON = frozenset({"", JSON, "application/x-www-form-urlencoded", "text/plain"})
"""Types of a body that is read as JSON; curl declares the third by default, a browser's form the fourth."""

REQUEST_FIELDS = (
    "model",
    "text",
    "texts",
    "heads",
    "top_k",
    "scores",
    "cache",
    "budget_ms",
    "min_probability",
)
DEFAULT_TOP_K, MAX_TOP_K = 1, 1000  # as many labels as a model may have; one that has fewer gives all
MAX_HEADS = 16
SCORE_DIGITS = 4  # of an out-of-distribution score: more is noise
MIN_BUDGET_MS, MAX_BUDGET_MS = 1, 86_400_000  # a day: nothing that answers requests runs for longer
ENVELOPE_BYTES = 2048  # status and headers around the body in a function's result, rounded up

SQL_PATHS = tuple(
    f"/v1/sql/{engine}/{function}"
    for engine in ("snowflake", "bigquery", "redshift")
    for function in ("topic", "topic_score", "is_topic", "embedding")
)
"""Where engines send batches: `coldframe.sql` answers them."""

USAGE_COUNTS = ("texts", "unique", "estimated", "tokens", "padded_tokens", "windows", "batches")
CACHE_COUNTS = ("l1", "l2", "embedding", "miss")


def media_type(headers: Mapping[str, str]) -> str:
    """What the body is declared as, without parameters; empty: not declared. Header names are lower case."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def content_encoding(headers: Mapping[str, str]) -> str:
    """How the body is encoded; empty: as it is. Header names are lower case."""
    return headers.get("content-encoding", "").strip().lower()


def log_record(request_id: str, method: str, path: str, status: int, start: str) -> dict[str, object]:
    """What the log line of every request begins with."""
    return {
        "event": "request",
        "request_id": request_id,
        "method": method,
        "path": path,
        "status": status,
        "start": start,
    }


def log_times(stages_ms: Mapping[str, float], total_ms: float) -> dict[str, object]:
    """Stages and total in milliseconds, for the log line."""
    rounded = {name: round(ms, 3) for name, ms in stages_ms.items()}
    return {"stages_ms": rounded, "total_ms": round(total_ms, 3)}


def server_timing(stages_ms: Mapping[str, float], total_ms: float) -> str:
    """Value of the `Server-Timing` header (W3C Server Timing)."""
    return ", ".join(f"{name};dur={ms:.2f}" for name, ms in {**stages_ms, "total": total_ms}.items())
