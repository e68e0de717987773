"""The contract of `POST /v1/predict`, written with the standard library alone.

Routes stand in `coldframe.api.api`, all messages in `coldframe.schemas`. These message types use the same
names and limits; `tests/unit/coldframe/api/test_written_once.py` compares them.
"""

PREDICT = ("POST", "/v1/predict")
JSON = "application/json"
READ_AS_JSON = frozenset({"", JSON, "application/x-www-form-urlencoded", "text/plain"})
"""Media types that are read as JSON; curl declares the third by default, a browser's form the fourth."""

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
    "explain",
    "subject",
    "objective",
)
DEFAULT_TOP_K, MAX_TOP_K = 1, 1000  # most labels of a model; a model with fewer returns all of them
MAX_HEADS = 16
MAX_SUBJECT = 256  # characters
MAX_EXPLAINED_TEXTS, MAX_EXPLAINED_WORDS, MAX_SPANS = 8, 10, 32  # of a request, of an answer, of a text
SCORE_DIGITS = 4  # largest out-of-distribution score: higher scores are noise
MIN_BUDGET_MS, MAX_BUDGET_MS = 1, 86_400_000  # one day: nothing that answers requests runs for longer
ENVELOPE_BYTES = 2048  # rounded-up size of status and headers around the body in a function's result

SQL_PATHS = tuple(
    f"/v1/sql/{engine}/{function}"
    for engine in ("snowflake", "bigquery", "redshift")
    for function in ("topic", "topic_score", "is_topic", "embedding")
)
"""Paths that database engines send batches to: `coldframe.sql` answers them."""

USAGE_COUNTS = ("texts", "unique", "estimated", "tokens", "padded_tokens", "windows", "batches")
CACHE_COUNTS = ("l1", "l2", "embedding", "miss")
