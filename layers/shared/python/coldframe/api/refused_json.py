"""JSON that a request's type refuses: read once more where only a point is in the way, else explained.

Imported for refused bodies alone. An explanation holds no text of the caller's, but for a short plain name.
"""

import re
import typing
from difflib import get_close_matches
from types import UnionType
from typing import Any, Literal, TypeVar

import msgspec

from coldframe.errors import Invalid, Malformed

T = TypeVar("T")

READ_AGAIN_BYTES = 65_536
"""A longer body is not read twice: one of 16 MB, full of numbers, would take seconds."""
_NOT_READ = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
# How msgspec says that a number has a point, also one that is an integer to JSON Schema.
_HAS_A_POINT = re.compile(r"Expected `[^`]*\bint\b[^`]*`, got `float`")
# A string, or a number with zeros for its fraction. Each start matches or fails at once: linear for any body.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_WHOLE_NUMBER = re.compile(rb"(" + _STRING + rb")|(?<![\d.])(\d++)\.0++(?![\d.eE])", re.DOTALL)
_PLACE = r"(?P<place> - at `\$(?P<path>[A-Za-z0-9_.\[\]]{0,64})`)?"
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<name>[A-Za-z0-9_.-]{1,32})`" + _PLACE)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_LONGEST_ESCAPES_BYTES = 16  # the two halves of a pair, and the end of the body


def with_whole_numbers(body: bytes) -> bytes:
    """JSON with `7` for each `7.0` outside its strings, in linear time."""
    return _WHOLE_NUMBER.sub(rb"\1\2", body)


def read_again(body: bytes, decoder: msgspec.json.Decoder[T], error: Exception) -> T:
    """The body, if it is refused for a `7.0` where 7 is meant. Raises Invalid or Malformed for all others.

    error: why the decoder refused it the first time.
    """
    if len(body) <= READ_AGAIN_BYTES and _HAS_A_POINT.match(str(error)):
        try:
            return decoder.decode(with_whole_numbers(body))
        except _NOT_READ as exc:
            error = exc
    if isinstance(error, msgspec.ValidationError):
        detail = explain(error, decoder.type)
        raise Invalid(f"{detail} Compare it with docs/contract.md, or /openapi.json.") from error
    raise Malformed(explain_syntax(error, body)) from error


def explain(error: msgspec.ValidationError, kind: type) -> str:
    """What a type refuses. Fields that it does not have are answered with those that it has."""
    said = str(error)
    if said.startswith("Object contains unknown field"):
        return _explain_unknown(_UNKNOWN_FIELD.fullmatch(said), kind)
    if said.startswith("Invalid enum value"):
        return _explain_choice(re.search(_PLACE + "$", said), kind)
    return f"{said}."


def explain_syntax(error: Exception, body: bytes) -> str:
    """Why bytes are no JSON. Half of a surrogate pair is named: "truncated" would be said of a whole body."""
    said = str(error)
    is_cut = "truncated" in said and _SURROGATE.search(body[-_LONGEST_ESCAPES_BYTES:])
    if is_cut or "surrogate" in said:
        return (
            "The body cannot be read as JSON: a string has half of a surrogate pair, which is no Unicode"
            " text. Send both halves, or the character itself."
        )
    return f"The body cannot be read as JSON: {said}. Check quotes, commas and encoding."


def _explain_unknown(found: "re.Match[str] | None", kind: type) -> str:
    if found is None:
        return f"Object contains an unknown field.{_fields(kind)}"
    known = _type_at(kind, found["path"] or "")
    near = get_close_matches(found["name"], _names(known), 1)
    meant = f" Did you mean `{near[0]}`?" if near else ""
    place = found["place"] or ""
    return f"Object contains unknown field `{found['name']}`{place}.{meant}{_fields(known)}"


def _explain_choice(found: "re.Match[str] | None", kind: type) -> str:
    """Without the value, which may be a text in the wrong place."""
    path = (found and found["path"]) or ""
    choices = next((typing.get_args(one) for one in _types_at(kind, path) if _is_choice(one)), ())
    expected = f" Expected one of: {', '.join(map(str, choices))}." if choices else ""
    return f"Invalid enum value{(found and found['place']) or ''}.{expected}"


def _names(kind: Any) -> tuple[str, ...]:
    return getattr(kind, "__struct_encode_fields__", ())


def _fields(kind: Any) -> str:
    names = _names(kind)
    return f" Fields: {', '.join(names)}." if names else ""


def _type_at(kind: Any, path: str) -> Any:
    """The object's type at a path of msgspec's, such as `.inputs[0].parameters`; None where it has none."""
    return next((one for one in _types_at(kind, path) if _names(one)), None)


def _types_at(kind: Any, path: str) -> list[Any]:
    """The types that a value at a path may have."""
    found = [kind]
    for name in re.findall(r"\.([A-Za-z0-9_]+)", path):
        owner = next((one for one in found if _names(one)), None)
        names = dict(zip(_names(owner), getattr(owner, "__struct_fields__", ()), strict=True))
        if name not in names:
            return []
        found = _leaves(typing.get_type_hints(owner)[names[name]])
    return found


def _leaves(hint: Any) -> list[Any]:
    """The types within unions, lists and annotations."""
    if _is_choice(hint):
        return [hint]
    if isinstance(hint, UnionType) or typing.get_origin(hint) is not None:
        return [leaf for part in typing.get_args(hint) for leaf in _leaves(part)]
    return [hint]


def _is_choice(hint: Any) -> bool:
    return typing.get_origin(hint) is Literal
