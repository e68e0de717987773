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


def renamed(value: Any, rename: Renaming, named: Callable[[str], str] | None = None) -> Any:
    """`value` with other references.

    named: what a condition or a mapping is called; None: as it is.
    """
    if isinstance(value, list):
        return [renamed(item, rename, named) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"Ref": str(name)} if len(value) == 1:
            found = rename(name, None)
            return value if found is None else found
        case {"Fn::GetAtt": [str(name), str(attribute)]}:
            found = rename(name, attribute)
            return value if found is None else found
        case {"Fn::Sub": str(text)}:
            return _substituted(text, {}, rename, named)
        case {"Fn::Sub": [str(text), dict(beside)]}:
            return _substituted(text, beside, rename, named)
        case {"Fn::If": [str(condition), *branches]} if named:
            return {"Fn::If": [named(condition), *renamed(branches, rename, named)]}
        case {"Fn::FindInMap": [str(mapping), *keys]} if named:
            return {"Fn::FindInMap": [named(mapping), *renamed(keys, rename, named)]}
        case {"Condition": str(condition)} if named and len(value) == 1:
            return {"Condition": named(condition)}
    return {key: renamed(item, rename, named) for key, item in value.items()}


def _substituted(
    text: str, beside: dict[str, Any], rename: Renaming, named: Callable[[str], str] | None
) -> dict[str, Any]:
    """Fn::Sub with other references in its text. What a text cannot hold stands beside it, under a name."""
    names = dict(renamed(beside, rename, named))

    def replaced(match: re.Match[str]) -> str:
        name, _, attribute = match[1].partition(".")
        found = None if match[1] in names else rename(name, attribute or None)
        match found:
            case None:
                return match[0]
            case {"Ref": other}:
                return f"${{{other}}}"
            case {"Fn::GetAtt": [other, other_attribute]}:
                return f"${{{other}.{other_attribute}}}"
            case {"Fn::Sub": str(other)}:
                return str(other)
            case dict():
                names[match[1].replace(".", "")] = found
                return f"${{{match[1].replace('.', '')}}}"
        return str(found)

    new = _NAME.sub(replaced, text)
    return {"Fn::Sub": [new, names] if names else new}
