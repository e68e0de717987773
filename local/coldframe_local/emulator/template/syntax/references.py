"""A template's values with other references: Ref, Fn::GetAtt, and the names in the text of Fn::Sub."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

# What a reference becomes. It is given (name, attribute or None); None leaves the reference as it is.
Renaming = Callable[[str, str | None], Any]

_NAME = re.compile(r"\$\{([^!}][^}]*)\}")


def reference_to(name: str, attribute: str | None) -> dict[str, Any]:
    """A reference to a resource, or to an attribute of it."""
    return {"Ref": name} if attribute is None else {"Fn::GetAtt": [name, attribute]}


def renamed(value: Any, rename: Renaming, rename_section: Callable[[str], str] | None = None) -> Any:
    """`value` with other references.

    rename_section: gives the name of a condition or a mapping; None: names stay.
    """
    if isinstance(value, list):
        return [renamed(item, rename, rename_section) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"Ref": str(name)} if len(value) == 1:
            replacement = rename(name, None)
            return value if replacement is None else replacement
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            replacement = rename(name, attribute)
            return value if replacement is None else replacement
        case {"Fn::Sub": str(text)}:
            return _substituted(text, {}, rename, rename_section)
        case {"Fn::Sub": [str(text), dict(beside)]}:
            return _substituted(text, beside, rename, rename_section)
        case {"Fn::If": [str(condition), *branches]} if rename_section:
            return {"Fn::If": [rename_section(condition), *renamed(branches, rename, rename_section)]}
        case {"Fn::FindInMap": [str(mapping), *keys]} if rename_section:
            return {"Fn::FindInMap": [rename_section(mapping), *renamed(keys, rename, rename_section)]}
        case {"Condition": str(condition)} if rename_section and len(value) == 1:
            return {"Condition": rename_section(condition)}
    return {key: renamed(item, rename, rename_section) for key, item in value.items()}


def _substituted(
    text: str, beside: dict[str, Any], rename: Renaming, rename_section: Callable[[str], str] | None
) -> dict[str, Any]:
    """Fn::Sub with other references in its text. What a text cannot hold stands beside it, under a name."""
    names = dict(renamed(beside, rename, rename_section))

    def replaced(match: re.Match[str]) -> str:
        name, _, attribute = match[1].partition(".")
        replacement = None if match[1] in names else rename(name, attribute or None)
        match replacement:
            case None:
                return match[0]
            case {"Ref": other}:
                return f"${{{other}}}"
            case {"Fn::GetAtt": [other, other_attribute]}:
                return f"${{{other}.{other_attribute}}}"
            case {"Fn::Sub": str(other)}:
                return str(other)
            case dict():
                names[match[1].replace(".", "")] = replacement
                return f"${{{match[1].replace('.', '')}}}"
        return str(replacement)

    new = _NAME.sub(replaced, text)
    return {"Fn::Sub": [new, names] if names else new}
