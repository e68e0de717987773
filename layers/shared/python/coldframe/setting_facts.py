"""Names, ranges and defaults of settings, for readers that do without msgspec.

`coldframe.config` makes its settings of them.
"""

PREFIX = "COLDFRAME_"
OF_TRAINING = frozenset({"COLDFRAME_DATA"})
"""Variables of training, which a shell may export: `layers/model/data.py` reads them, serving ignores
them.
"""

SERVER_RANGES = {
    "releases_check_s": (1, 86_400),
    "workers": (0, 64),
    "tokenizer_threads": (1, 64),
    "request_threads": (1, 4096),
    "queue_requests": (1, 1_000_000),
    "queue_bytes": (1_048_576, 1 << 36),
    "queue_rows": (256, 10_000_000),
    "objective_ms": (1, 600_000),
    "read_timeout_s": (1, 3600),
    "keep_alive_s": (1, 3600),
    "drain_notice_s": (0, 3600),
    "drain_grace_s": (0, 3600),
}
"""Lowest and highest value of each numeric setting of the server alone."""
SERVER_TEXTS = ("host", "tokens", "tokens_file", "otlp_endpoint", "releases")
SERVER_FLAGS = ("allow_anyone",)
OF_SERVER = frozenset(PREFIX + name.upper() for name in (*SERVER_RANGES, *SERVER_TEXTS, *SERVER_FLAGS))
"""Variables of the server, which a shell may export: functions ignore them."""

MODEL_DIR = "/opt/model"
CACHE_POLICY = "adaptive"
LOG_LEVEL = "info"
MAX_TEXTS = 1024
MAX_BODY_BYTES = 6_291_456
MAX_ANSWER_BYTES = 6_291_456

RANGES = {
    "threads": (1, 64),
    "passes": (1, 64),
    "max_texts": (1, 100_000),
    "max_body_bytes": (1, 104_857_600),
    "max_decompressed_bytes": (1, 1_073_741_824),
    "max_answer_bytes": (4096, 104_857_600),
    "max_batch_tokens": (0, 65_536),
    "max_windows": (0, 64),
    "l1_cache_bytes": (0, 1 << 34),
    "cache_deadline_ms": (1, 60_000),
    "cache_ttl_s": (1, 315_360_000),
    "jobs_ttl_s": (3_600, 315_360_000),
    "feedback_sample": (0, 1),
    "feedback_days": (1, 3_650),
    "usd_per_hour": (0, 1_000),
}
"""Lowest and highest value of each numeric setting."""
CHOICES = {
    "cache_policy": ("adaptive", "always", "off"),
    "device": ("cpu", "cuda", "auto"),
    "overload": ("refuse", "rush"),
    "traces": ("off", "log"),
    "sketches": ("off", "log"),
    "log_level": ("info", "off"),
}
TEXTS = frozenset(
    {
        "model_dir",
        "models",
        "cache_table",
        "cache_bucket",
        "jobs_table",
        "jobs_queue",
        "jobs_control_queue",
        "jobs_failed_queue",
        "jobs_bucket",
        "jobs_sources",
        "jobs_topic",
        "jobs_webhook_hosts",
        "jobs_webhook_key",
        "metrics_namespace",
        "feedback_key",
        "feedback_table",
        "feedback_text_key",
        "experiments",
    }
)
FLAGS = frozenset({"verify_at_init"})
