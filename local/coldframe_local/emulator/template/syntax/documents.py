"""A SAM template as it is written: YAML with CloudFormation's short tags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from coldframe_local.emulator.template.syntax.errors import TemplateError


class _Loader(yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader):  # type: ignore[misc]
    """Reads short tags as the long form: `!Ref X` is {"Ref": "X"}."""


def _intrinsic(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)  # noqa: S101 - YAML has no fourth kind
        value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _intrinsic)
# CloudFormation has no dates: what looks like one is text.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}


def read_document(path: Path) -> dict[str, Any]:
    """The template at `path`. Raises TemplateError for a file that is none."""
    try:
        content = path.read_bytes()
    except OSError as exc:
        raise TemplateError(
            f"{path} cannot be read: {exc.strerror}. Name a SAM template with --template."
        ) from exc
    try:
        document = yaml.load(content, _Loader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        problem = getattr(exc, "problem", None) or "not YAML"
        raise TemplateError(f"{path}{place}: {problem}. Expected a SAM template in YAML or JSON.") from exc
    except RecursionError as exc:
        raise TemplateError(f"{path} is nested too deeply. Write it flatter.") from exc
    if not isinstance(document, dict) or not isinstance(document.get("Resources"), dict):
        raise TemplateError(
            f"{path} has no Resources. Expected a SAM template; name another with --template."
        )
    return document
