"""Settings of a served environment, read once from environment variables.

Only the standard library is imported here, so that light functions can read
settings too. Importing this module reads nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from coldframe.errors import BadSetting

PREFIX = "COLDFRAME_"

# Whoever trains may have it exported: `layers/model/data.py` reads it, serving does not.
_OF_TRAINING = frozenset({"COLDFRAME_DATA"})


def _setting(
    default: object,
    why: str,
    low: int | None = None,
    high: int | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """A field of `Settings`: its default, why it exists, and its allowed range or words."""
    return field(default=default, metadata={"why": why, "low": low, "high": high, "choices": choices})


@dataclass(frozen=True)
class Settings:
    """What a deployment may change. Each field is the variable `COLDFRAME_<NAME>`."""

    model_dir: Path = _setting(Path("/opt/model"), "folder of the model bundle")
    threads: int = _setting(1, "threads of one forward pass; 1769 MB of Lambda memory are one vCPU", 1, 64)
    max_texts: int = _setting(1024, "texts of one request", 1, 100_000)
    max_body_bytes: int = _setting(6_291_456, "request body; 6 MB is Lambda's own limit", 1, 104_857_600)
    max_decompressed_bytes: int = _setting(
        16_777_216, "request body sent with gzip, once decompressed", 1, 1_073_741_824
    )
    max_answer_bytes: int = _setting(
        6_291_456, "answer, as Lambda's result carries it; 6 MB is Lambda's own limit", 4096, 104_857_600
    )
    max_batch_tokens: int = _setting(
        256, "tokens of one forward pass; more rows of long texts in one pass are slower", 1, 65_536
    )
    max_windows: int = _setting(
        0, "windows of 256 tokens embedded per text; 0: as many as the heads were trained on", 0, 64
    )
    l1_cache_bytes: int = _setting(
        16_777_216, "prediction cache in the environment; 0 turns it off", 0, 1 << 34
    )
    cache_table: str = _setting("", "DynamoDB table of the shared prediction cache; empty: none")
    cache_bucket: str = _setting(
        "", "S3 bucket for cached values over DynamoDB's item limit; empty: they are not kept"
    )
    cache_policy: str = _setting(
        "adaptive",
        "`adaptive`: the table is asked when that is expected to be quicker than computing; `always`; `off`",
        choices=("adaptive", "always", "off"),
    )
    cache_deadline_ms: int = _setting(
        100, "one lookup or one write in the table, all its calls and retries included", 1, 60_000
    )
    cache_ttl_s: int = _setting(604_800, "life of a value in the table", 1, 315_360_000)
    verify_at_init: bool = _setting(True, "compare a golden vector when the environment starts")
    log_level: str = _setting("info", "`info`: one line per request; `off`: none", choices=("info", "off"))


ENVIRONMENT_NAMES: frozenset[str] = frozenset(PREFIX + f.name.upper() for f in fields(Settings))

_BOOLEANS = {"1": True, "true": True, "on": True, "0": False, "false": False, "off": False}


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Settings from `environ`; what is not set keeps its default.

    Raises BadSetting for a value that cannot be read or is out of range, and
    for a `COLDFRAME_` variable that is no setting: a misspelt one would be
    silently ignored otherwise.
    """
    given = {name for name in environ if name.startswith(PREFIX)}
    unknown = sorted(given - ENVIRONMENT_NAMES - _OF_TRAINING)
    if unknown:
        raise BadSetting(f"{unknown[0]} is not a setting. Known: {', '.join(sorted(ENVIRONMENT_NAMES))}.")
    values = {
        f.name: _read(f.name, f.type, environ, f.metadata)
        for f in fields(Settings)
        if _is_set(f.name, environ)
    }
    return Settings(**values)


def _is_set(name: str, environ: Mapping[str, str]) -> bool:
    return environ.get(PREFIX + name.upper(), "") != ""


def _read(name: str, kind: Any, environ: Mapping[str, str], rule: Mapping[str, Any]) -> Any:
    variable = PREFIX + name.upper()
    value = environ[variable]
    parse = _PARSERS[kind]
    try:
        parsed = parse(value)
    except (ValueError, KeyError) as exc:
        raise BadSetting(f"{variable}={value!r} is not {_EXPECTED[kind]}.") from exc
    low, high, choices = rule["low"], rule["high"], rule["choices"]
    if low is not None and not low <= parsed <= high:
        raise BadSetting(f"{variable}={value} is out of range. Expected {low} to {high}.")
    if choices and parsed not in choices:
        raise BadSetting(f"{variable}={value!r} is not one of {', '.join(choices)}.")
    return parsed


def _whole_number(value: str) -> int:
    return int(value, 10)


def _boolean(value: str) -> bool:
    return _BOOLEANS[value.lower()]


_PARSERS: dict[Any, Callable[[str], Any]] = {int: _whole_number, bool: _boolean, str: str, Path: Path}
_EXPECTED: dict[Any, str] = {
    int: "a whole number",
    bool: f"one of {', '.join(_BOOLEANS)}",
    Path: "a path",
}
