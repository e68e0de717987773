"""Manifests as YAML with comments, or as JSON without: a value may carry the reason that a reader needs."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

Manifest = Mapping[str, Any]
"""Names to values; a value is plain, or `Noted`."""

_WIDTH = 110
# A mapping is indented by two; a sequence by two, and its items' keys by another two.
_STEP, _SEQUENCE_STEP = 2, 4


@dataclass(frozen=True)
class Noted:
    """A value with the comment that stands above its key in YAML."""

    value: Any
    why: str


def plain(value: Any) -> Any:
    """The same without notes."""
    if isinstance(value, Noted):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value


def as_json(manifest: Manifest) -> str:
    """JSON, which has no comments."""
    return json.dumps(plain(manifest), indent=2) + "\n"


def as_yaml(documents: Iterable[Manifest]) -> str:
    """YAML, one document after the other, notes as comments."""
    yaml = YAML()
    yaml.indent(mapping=_STEP, sequence=_SEQUENCE_STEP, offset=_STEP)
    yaml.width = _WIDTH
    stream = io.StringIO()
    yaml.dump_all([_commented(document, 0) for document in documents], stream)
    return stream.getvalue()


def _commented(value: Any, column: int) -> Any:
    """The tree as ruamel.yaml writes it. column: where the keys of a mapping stand."""
    if isinstance(value, Mapping):
        mapping = CommentedMap()
        for key, inner in value.items():
            bare = inner.value if isinstance(inner, Noted) else inner
            yaml_key = _commented(key, column)
            mapping[yaml_key] = _commented(bare, column + _STEP)
            if isinstance(inner, Noted):
                mapping.yaml_set_comment_before_after_key(yaml_key, before=inner.why, indent=column)
        return mapping
    if isinstance(value, (list, tuple)):
        return [_commented(inner, column + _STEP) for inner in value]
    if isinstance(value, str) and _reads_otherwise(value):
        return DoubleQuotedScalarString(value)
    return value


def _reads_otherwise(text: str) -> bool:
    """Whether a reader of YAML 1.1, as Kubernetes has, takes the bare word for something else than a text."""
    return text.lower() in {"", "y", "n", "yes", "no", "on", "off", "true", "false", "null", "~"} or (
        text[0] in "+-.0123456789" and text.strip("+-.0123456789_:eExXabcdfABCDF") == ""
    )
