"""What the express lane has to know of the settings, read without msgspec."""

import json
from collections.abc import Mapping
from pathlib import Path

from coldframe import setting_facts as facts
from coldframe.setting_facts import CHOICES, FLAGS, OF_SERVER, OF_TRAINING, PREFIX, RANGES, TEXTS


class LaneSettings:
    """The settings that change what the lane says, with their defaults."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """environ: one for which `closed_by` names nothing."""

        def read(name: str, default: object) -> str:
            return environ.get(PREFIX + name) or str(default)

        policy = read("CACHE_POLICY", facts.CACHE_POLICY)
        self.model_dir = Path(read("MODEL_DIR", facts.MODEL_DIR))
        self.models = read("MODELS", "")
        self.has_table = bool(environ.get(PREFIX + "CACHE_TABLE")) and policy != "off"
        self.has_log = has_log(environ)
        self.max_texts = int(read("MAX_TEXTS", facts.MAX_TEXTS))
        self.max_body_bytes = int(read("MAX_BODY_BYTES", facts.MAX_BODY_BYTES))
        self.max_answer_bytes = int(read("MAX_ANSWER_BYTES", facts.MAX_ANSWER_BYTES))


def has_log(environ: Mapping[str, str]) -> bool:
    """Whether lines are written to the log."""
    return (environ.get(PREFIX + "LOG_LEVEL") or facts.LOG_LEVEL) != "off"


def closed_by(environ: Mapping[str, str]) -> list[str]:
    """Names of the settings with which the lane cannot answer; values that cannot be used are among them."""
    given = {name: value for name, value in environ.items() if name.startswith(PREFIX) and value}
    return sorted(name for name, value in given.items() if _closes(name, value))


def closed_line(names: list[str]) -> str:
    """The line of JSON that says so in the log."""
    line = {
        "event": "express-lane-closed",
        "settings": names,
        "costs": "Every environment loads its model before its first answer. docs/settings.md names what"
        " keeps the express lane open.",
    }
    return json.dumps(line, separators=(",", ":"))


def _closes(variable: str, value: str) -> bool:
    name = variable.removeprefix(PREFIX).lower()
    if variable in OF_TRAINING or variable in OF_SERVER:
        return False
    if variable != PREFIX + name.upper():
        return True  # no setting: `load_settings` says so
    if name in RANGES:
        # A number of windows of one's own makes another version, whose digest takes msgspec.
        return not _is_in_range(name, value) or (name == "max_windows" and int(value) > 0)
    if name in CHOICES:
        # The table is asked first, by boto3; a GPU's encoder has another version.
        return value not in CHOICES[name] or value in ("always", "cuda", "auto")
    return value not in ("true", "false") if name in FLAGS else name not in TEXTS


def _is_in_range(name: str, value: str) -> bool:
    low, high = RANGES[name]
    return value.isascii() and value.isdigit() and len(value) < 20 and low <= int(value) <= high
