"""Describes a message: its declaration, its byte layout, and the code generated for one version.

python -m ottla.wire.show produce 9            python -m ottla.wire.show Fetch 12 response
"""

from __future__ import annotations

import inspect
import sys
from difflib import get_close_matches

from ottla.wire.api import API_NAMES, request_class, response_class, snake
from ottla.wire.decoding import decode_source
from ottla.wire.encoding import encode_source
from ottla.wire.header import request_header_version, response_header_version
from ottla.wire.message import Field, Struct
from ottla.wire.source import is_flexible, present, tagged
from ottla.wire.types import Fixed, Sized

DIRECTIONS = ("request", "response")
_FIXED_NAMES = {
    "?": "bool",
    "b": "int8",
    "h": "int16",
    "H": "uint16",
    "i": "int32",
    "I": "uint32",
    "q": "int64",
    "d": "float64",
    "16s": "uuid",
}


def show(name: str, version: int | None = None, direction: str = "request") -> str:
    """Describe an API's request or response; `name` in any spelling. Raises LookupError with a suggestion."""
    key = _key(name)
    if direction not in DIRECTIONS:
        raise LookupError(f"{direction!r} is neither request nor response")
    cls: type[Struct] = request_class(key) if direction == "request" else response_class(key)
    low, high = cls.versions
    if version is None:
        version = high
    if version not in cls.versions:
        raise LookupError(f"{API_NAMES[key]} has versions {low} to {high}, not {version}")
    header_version = request_header_version if direction == "request" else response_header_version
    flexible = version in cls.flexible
    kind = "flexible" if flexible else "fixed lengths"
    title = f"{cls.__name__} v{version}: {kind}, {direction} header v{header_version(key, version)}"
    module = inspect.getmodule(cls)
    return "\n".join(
        [
            inspect.getdoc(module) or "",
            "",
            inspect.getsource(cls).rstrip(),
            "",
            title,
            "=" * len(title),
            *_layout(cls, version, flexible, 0),
            "",
            decode_source(cls, version)[0],
            encode_source(cls, version)[0],
        ]
    )


def _key(name: str) -> int:
    """Return the key of an API, given as key, module name or Kafka's name."""
    if name.isdecimal() and int(name) in API_NAMES:
        return int(name)
    wanted = name.replace("_", "").replace("-", "").lower()
    for key, known in API_NAMES.items():
        if known.lower() == wanted:
            return key
    near = get_close_matches(name.lower(), [snake(known) for known in API_NAMES.values()], 1, 0.5)
    raise LookupError(f"there is no API {name!r}" + (f"; did you mean {near[0]}?" if near else ""))


def _layout(cls: type[Struct], version: int, flexible: bool, depth: int) -> list[str]:
    pad = "  " * depth
    lines: list[str] = []
    for field in present(cls, version):
        lines += _field(field, version, is_flexible(field, version, flexible), depth)
    if flexible:
        lines.append(f"{pad}{'tagged fields':<{38 - len(pad)}} uvarint count")
        for field in tagged(cls, version):
            lines.append(f"{pad}  {f'tag {field.tag}':<{36 - len(pad)}} uvarint tag, uvarint size, then")
            lines += _field(field, version, flexible, depth + 2)
    return lines


def _field(field: Field, version: int, flexible: bool, depth: int) -> list[str]:
    pad = "  " * depth
    nullable = version in field.nullable
    count = "uvarint count + 1" if flexible else "int32 count"
    null = ", 0 is null" if flexible else ", -1 is null"
    inner = field.type
    text = _value(inner, flexible)
    if field.is_list:
        text = f"{count}{null if nullable else ''}, then each: {text}"
    elif isinstance(inner, type):
        text = "int8 1, or -1 for null" if nullable else ""
    elif nullable:
        text += null
    lines = [f"{pad}{field.name:<{38 - len(pad)}} {text}".rstrip()]
    if isinstance(inner, type):
        lines += _layout(inner, version, flexible, depth + 1)
    return lines


def _value(kind: Fixed | Sized | type[Struct], flexible: bool) -> str:
    if isinstance(kind, Fixed):
        return _FIXED_NAMES[kind.code]
    if isinstance(kind, Sized):
        length = "uvarint length + 1" if flexible else "int16 length" if kind.kind == "string" else "int32 length"
        return f"{length}, {kind.kind}"
    return kind.__name__


def main(arguments: list[str]) -> int:
    if not 1 <= len(arguments) <= 3:
        sys.stderr.write("usage: python -m ottla.wire.show API [VERSION] [request|response]\n")
        return 2
    words = [word for word in arguments[1:] if not word.isdecimal()]
    numbers = [int(word) for word in arguments[1:] if word.isdecimal()]
    try:
        text = show(arguments[0], numbers[0] if numbers else None, words[0] if words else "request")
    except LookupError as error:
        sys.stderr.write(f"{error.args[0]}\n")
        return 2
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
