"""Settings of a served environment, read once from environment variables.

Importing this module reads nothing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from coldframe import setting_facts as facts
from coldframe.errors import BadSetting
from coldframe.setting_facts import OF_SERVER, OF_TRAINING, RANGES

PREFIX = facts.PREFIX
DEFAULT_BATCH_TOKENS = 256
"""Result of `coldframe bench passes batch` on the machines measured; close to the best on each of them."""


def _about(why: str, name: str | None = None) -> Meta:
    """A setting's text and unit in docs/settings.md. name: of a setting with a range."""
    low, high = RANGES[name] if name else (None, None)
    return Meta(description=why, ge=low, le=high)


class Settings(Struct, frozen=True, kw_only=True):
    """Settings of a deployment. Each field is the variable `COLDFRAME_<NAME>`."""

    model_dir: Annotated[Path, _about("folder with the encoders and models")] = Path(facts.MODEL_DIR)
    models: Annotated[
        str,
        _about(
            "names of the models to serve, separated by commas, the first for requests that name none;"
            " empty: all in the folder, [the default model](bundle.md#the-default-model) first"
        ),
    ] = ""
    threads: Annotated[
        int, _about("threads for one forward pass; 1769 MB of Lambda memory are one vCPU", "threads")
    ] = 1
    passes: Annotated[
        int,
        _about(
            "forward passes that one request may run at once, where the device is a CPU; a server's requests"
            " share the passes of `COLDFRAME_WORKERS`",
            "passes",
        ),
    ] = 1
    device: Annotated[
        Literal["cpu", "cuda", "auto"],
        _about("where the encoder runs: `cpu`; `cuda`: an NVIDIA GPU; `auto`: a GPU where there is one"),
    ] = "cpu"
    max_texts: Annotated[int, _about("most texts in one request", "max_texts")] = facts.MAX_TEXTS
    max_body_bytes: Annotated[
        int, _about("largest request body; 6 MB is Lambda's own limit", "max_body_bytes")
    ] = facts.MAX_BODY_BYTES
    max_decompressed_bytes: Annotated[
        int, _about("largest request body sent with gzip, once decompressed", "max_decompressed_bytes")
    ] = 16_777_216
    max_answer_bytes: Annotated[
        int,
        _about(
            "largest answer, as Lambda's result carries it; 6 MB is Lambda's own limit", "max_answer_bytes"
        ),
    ] = facts.MAX_ANSWER_BYTES
    max_batch_tokens: Annotated[
        int,
        _about(
            "most tokens in one forward pass with several rows; 0: measured where an environment is"
            f" initialised ahead of traffic, {DEFAULT_BATCH_TOKENS} elsewhere",
            "max_batch_tokens",
        ),
    ] = 0
    max_windows: Annotated[
        int,
        _about(
            "windows, each with 256 tokens, embedded per text; 0: as many as the heads were trained on",
            "max_windows",
        ),
    ] = 0
    l1_cache_bytes: Annotated[
        int, _about("prediction cache in the environment; 0 turns it off", "l1_cache_bytes")
    ] = 16_777_216
    cache_table: Annotated[str, _about("DynamoDB table for the shared prediction cache; empty: none")] = ""
    cache_bucket: Annotated[
        str, _about("S3 bucket for cached values over DynamoDB's item limit; empty: they are not stored")
    ] = ""
    cache_policy: Annotated[
        Literal["adaptive", "always", "off"],
        _about(
            "`adaptive`: the table is queried when that is expected to be quicker than computing;"
            " `always`; `off`"
        ),
    ] = "adaptive"
    cache_deadline_ms: Annotated[
        int,
        _about(
            "one lookup or one write in the table, all its calls and retries included", "cache_deadline_ms"
        ),
    ] = 100
    cache_ttl_s: Annotated[int, _about("time for which the table keeps a value", "cache_ttl_s")] = 604_800
    jobs_table: Annotated[str, _about("DynamoDB table for jobs; empty: there are no jobs")] = ""
    jobs_queue: Annotated[str, _about("address of the SQS queue for parts of jobs")] = ""
    jobs_control_queue: Annotated[str, _about("address of the SQS queue for whole jobs")] = ""
    jobs_failed_queue: Annotated[str, _about("address of the SQS queue for failed messages")] = ""
    jobs_bucket: Annotated[str, _about("S3 bucket for jobs: large texts, results, and `uploads/`")] = ""
    jobs_sources: Annotated[
        str,
        _about(
            "S3 buckets that a job may name as its source, separated by commas; empty: only the deployment's;"
            " `*`: all that the function may read"
        ),
    ] = ""
    jobs_topic: Annotated[
        str, _about("ARN of the SNS topic that is notified when a job ends; empty: none")
    ] = ""
    jobs_webhook_hosts: Annotated[
        str, _about("hosts that webhooks may call, separated by commas; empty: there are no webhooks")
    ] = ""
    jobs_webhook_key: Annotated[str, _about("key that webhooks are signed with; `whsec_` and base64")] = ""
    jobs_ttl_s: Annotated[
        int, _about("time for which a job and its results are kept, from its creation", "jobs_ttl_s")
    ] = 604_800
    feedback_key: Annotated[
        str, _about("key that signs the ids in answers, at least 16 characters; empty: no feedback")
    ] = ""
    feedback_table: Annotated[
        str, _about("DynamoDB table for feedback; empty: answers have ids, and no label is stored")
    ] = ""
    feedback_sample: Annotated[
        float, _about("share that chance draws from all answers to be labelled", "feedback_sample")
    ] = 0.01
    feedback_days: Annotated[
        int, _about("days from an answer for which its label is accepted and kept", "feedback_days")
    ] = 90
    feedback_text_key: Annotated[
        str,
        _about(
            "public key from `coldframe feedback keys`: texts that callers send with labels are stored,"
            " encrypted; empty: such texts are refused"
        ),
    ] = ""
    experiments: Annotated[
        str,
        _about(
            "DynamoDB table, or folder with a `/` in its path, that holds an experiment and its counts;"
            " empty: none"
        ),
    ] = ""
    verify_at_init: Annotated[
        bool, _about("compare a golden vector before the model answers; `true` or `false`")
    ] = True
    overload: Annotated[
        Literal["refuse", "rush"],
        _about(
            "requests that cannot be answered in time: `refuse`; or `rush`: `auto`, requested alone, answers"
            " from fewer windows, then by the estimator"
        ),
    ] = "refuse"
    usd_per_hour: Annotated[
        float,
        _about("price of an hour of this environment's work, in USD; objectives use it", "usd_per_hour"),
    ] = 0.083
    metrics_namespace: Annotated[
        str,
        Meta(
            description="CloudWatch's namespace for metrics in the log lines of requests; empty: no metrics",
            pattern=r"^(?!AWS/)[A-Za-z0-9._/#:-]{0,255}$",
        ),
    ] = ""
    traces: Annotated[
        Literal["off", "log"],
        _about("`log`: requests continue their caller's trace, and log lines hold the spans"),
    ] = "off"
    sketches: Annotated[
        Literal["off", "log"],
        _about("`log`: once a minute, a log line holds counts over the answers, for `coldframe monitor`"),
    ] = "off"
    log_level: Annotated[Literal["info", "off"], _about("`info`: one line per request; `off`: none")] = "info"


ENVIRONMENT_NAMES = frozenset(PREFIX + name.upper() for name in Settings.__struct_fields__)

S = TypeVar("S", bound=Settings)


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Settings from `environ`; a variable that is unset or empty keeps its default.

    Raises BadSetting for a value that cannot be read or is out of range, and for an unknown `COLDFRAME_`
    variable: a misspelt one would be ignored silently otherwise.
    """
    return load_kind(environ, Settings)


def load_kind(environ: Mapping[str, str], kind: type[S]) -> S:
    """Settings of a kind with more fields, read like those of `load_settings`."""
    fields = {PREFIX + name.upper(): name for name in kind.__struct_fields__}
    variables = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    unknown = sorted(variables.keys() - fields.keys() - OF_TRAINING - OF_SERVER)
    if unknown:
        raise BadSetting(f"{unknown[0]} is not a setting. Use one of: {', '.join(sorted(fields))}.")
    values = {fields[name]: value for name, value in variables.items() if value and name in fields}
    try:
        return msgspec.convert(values, kind, strict=False, dec_hook=_to_path)
    except msgspec.ValidationError as exc:
        problem, _, path = str(exc).rpartition(" - at ")
        variable = PREFIX + path.strip("`$.").upper()
        raise BadSetting(f"{variable}={environ[variable]!r} cannot be used. {problem}.") from exc


def _to_path(kind: type[Any], value: str) -> Path:
    return Path(value)
