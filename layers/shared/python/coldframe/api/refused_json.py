"""JSON that a request's type refuses: read again if a decimal point is the only fault, else explained.

Imported for refused bodies alone. An explanation quotes nothing of the caller's, except a short plain name.
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
"""Longest body that is read twice: 16 MB of numbers would take seconds."""
_NOT_READ = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
# msgspec's message about a float, also for 7.0, which JSON Schema takes for an integer.
_HAS_A_POINT = re.compile(r"Expected `[^`]*\bint\b[^`]*`, got `float`")
# A string, or a number with zeros for its fraction. Each start matches or fails at once, so any body takes
# linear time.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_WHOLE_NUMBER = re.compile(rb"(" + _STRING + rb")|(?<![\d.])(\d++)\.0++(?![\d.eE])", re.DOTALL)
_PLACE = r"(?P<place> - at `\$(?P<path>[A-Za-z0-9_.\[\]]{0,64})`)?"
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<name>[A-Za-z0-9_.-]{1,32})`" + _PLACE)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_LONGEST_ESCAPES_BYTES = 16  # both halves of a pair, and the end of the body


def with_whole_numbers(body: bytes) -> bytes:
    """JSON with `7` in place of each `7.0` outside its strings, in linear time."""
    return _WHOLE_NUMBER.sub(rb"\1\2", body)


def read_again(body: bytes, decoder: msgspec.json.Decoder[T], error: Exception) -> T:
    """The decoded body, if a `7.0` in place of 7 was its only fault. Otherwise raises Invalid or Malformed.

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
    """Explanation of why a type refuses an object. For an unknown field it lists the type's fields."""
    message = str(error)
    if message.startswith("Object contains unknown field"):
        return _explain_unknown(_UNKNOWN_FIELD.fullmatch(message), kind)
    if message.startswith("Invalid enum value"):
        return _explain_choice(re.search(_PLACE + "$", message), kind)
    return f"{message}."


def explain_syntax(error: Exception, body: bytes) -> str:
    """Reason why bytes are not JSON. msgspec would call half of a surrogate pair "truncated": it is named."""
    message = str(error)
    is_cut = "truncated" in message and _SURROGATE.search(body[-_LONGEST_ESCAPES_BYTES:])
    if is_cut or "surrogate" in message:
        return (
            "The body cannot be read as JSON: a string has half of a surrogate pair, which is not Unicode"
            " text. Send both halves, or the character itself."
        )
    return f"The body cannot be read as JSON: {message}. Check quotes, commas and encoding."


def _explain_unknown(match: "re.Match[str] | None", kind: type) -> str:
    if match is None:
        return f"Object contains an unknown field.{_fields(kind)}"
    owner = _type_at(kind, match["path"] or "")
    near = get_close_matches(match["name"], _names(owner), 1)
    advice = f" Did you mean `{near[0]}`?" if near else ""
    place = match["place"] or ""
    return f"Object contains unknown field `{match['name']}`{place}.{advice}{_fields(owner)}"


def _explain_choice(match: "re.Match[str] | None", kind: type) -> str:
    """Explanation without the value, which may be a text in the wrong place."""
    path = (match and match["path"]) or ""
    choices = next((typing.get_args(one) for one in _types_at(kind, path) if _is_choice(one)), ())
    expected = f" Expected one of: {', '.join(map(str, choices))}." if choices else ""
    return f"Invalid enum value{(match and match['place']) or ''}.{expected}"


def _names(kind: Any) -> tuple[str, ...]:
    return getattr(kind, "__struct_encode_fields__", ())


def _fields(kind: Any) -> str:
    names = _names(kind)
    return f" Fields: {', '.join(names)}." if names else ""


def _type_at(kind: Any, path: str) -> Any:
    """The object's type at a path of msgspec's, such as `.inputs[0].parameters`; None without one."""
    return next((one for one in _types_at(kind, path) if _names(one)), None)


def _types_at(kind: Any, path: str) -> list[Any]:
    """The types that a value at a path may have."""
    kinds = [kind]
    for name in re.findall(r"\.([A-Za-z0-9_]+)", path):
        owner = next((one for one in kinds if _names(one)), None)
        names = dict(zip(_names(owner), getattr(owner, "__struct_fields__", ()), strict=True))
        if name not in names:
            return []
        kinds = _leaves(typing.get_type_hints(owner)[names[name]])
    return kinds


def _leaves(hint: Any) -> list[Any]:
    """Types inside unions, lists and annotations."""
    if _is_choice(hint):
        return [hint]
    if isinstance(hint, UnionType) or typing.get_origin(hint) is not None:
        return [leaf for part in typing.get_args(hint) for leaf in _leaves(part)]
    return [hint]


def _is_choice(hint: Any) -> bool:
    return typing.get_origin(hint) is Literal
