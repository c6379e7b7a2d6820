"""Records as users type them: keys and values as text, JSON, hex or by a schema of the registry, and headers.

A header is typed as `NAME=VALUE`. The value `hex:00ff` stands for bytes, and `null:` for no value. A name that is
empty, has an equals sign or a character that cannot be seen is typed as a JSON string: `"a=b"=VALUE`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING

from ottla.operations.errors import CommandError
from ottla.operations.payloads import PayloadType, SubjectEncoder

if TYPE_CHECKING:
    from ottla.client.registry import SchemaRegistry

_HEX = "hex:"
_NULL = "null:"


class TypedFormat(StrEnum):
    """What a typed key or value is. With `registry` it is JSON, which the latest schema of a subject encodes."""

    null = "null"
    text = "text"
    json = "json"
    hex = "hex"
    registry = "registry"


def content_bytes(
    what: str, text: str, typed: TypedFormat, registry: SchemaRegistry | None = None, subject: str = ""
) -> bytes | None:
    """The bytes of a key or value (`what`, for messages). Raises CommandError if the text is not what it should be.
    With a schema the registry is asked, so callers do it in a worker thread.
    """
    match typed:
        case TypedFormat.null:
            return None
        case TypedFormat.text:
            return _encoded(what, text)
        case TypedFormat.hex:
            return _from_hex(what, text)
        case TypedFormat.json:
            return _encoded(what, json.dumps(_json(what, text), ensure_ascii=False, separators=(",", ":")))
    if registry is None:
        raise CommandError("no schema registry is known", "`ottla console --registry URL` names one")
    value = _json(what, text)
    if value is None:
        raise CommandError(f"the {what} is JSON null, which no schema has", "choose the format null")
    return SubjectEncoder(registry, subject, PayloadType.auto).encode(value)


def typed_again(data: bytes | None) -> tuple[TypedFormat, str]:
    """Bytes in the form in which they can be typed again, unchanged."""
    if data is None:
        return TypedFormat.null, ""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return TypedFormat.hex, data.hex(" ", 4)
    # A browser sends line ends as CR LF, and NUL not at all.
    is_kept = all(each.isprintable() or each in "\n\t" for each in text)
    return (TypedFormat.text, text) if is_kept else (TypedFormat.hex, data.hex(" ", 4))


def header_of(text: str) -> tuple[str, bytes | None]:
    """A header that was typed as `NAME=VALUE`. Raises CommandError."""
    name, value = _name_and_value(text)
    if value == _NULL:
        return name, None
    if value.startswith(_HEX):
        return name, _from_hex(f"header {name[:40]}", value.removeprefix(_HEX))
    return name, _encoded("header", value)


def headers_of(text: str) -> list[tuple[str, bytes | None]]:
    """Headers that were typed as lines, each as `header_of` reads it. Raises CommandError."""
    return [header_of(line) for line in text.split("\n") if line.strip()]


def headers_text(headers: Iterable[tuple[str, bytes | None]]) -> str:
    """Headers as the lines that `headers_of` reads."""
    lines = []
    for name, value in headers:
        is_plain = bool(name) and _is_plain(name) and "=" not in name and not name.startswith('"')
        lines.append(f"{name if is_plain else json.dumps(name)}={_header_value(value)}")
    return "\n".join(lines)


def _header_value(value: bytes | None) -> str:
    if value is None:
        return _NULL
    kind, text = typed_again(value)
    is_text = kind is TypedFormat.text and _is_plain(text) and text != _NULL and not text.startswith(_HEX)
    return text if is_text else _HEX + value.hex()


def _name_and_value(text: str) -> tuple[str, str]:
    if text.lstrip().startswith('"'):
        try:
            name, end = json.JSONDecoder().raw_decode(text.lstrip())
        except ValueError:
            raise CommandError(f"the name of a header has no closing quote: {text[:40]!r}") from None
        before, is_pair, value = text.lstrip()[end:].partition("=")
        if before.strip() or not is_pair:
            raise CommandError(f"an equals sign follows the name of a header: {text[:40]!r} is not NAME=VALUE")
        return _checked_name(str(name)), value
    name, is_pair, value = text.partition("=")
    if not is_pair or not name.strip():
        raise CommandError(f"a header is typed as NAME=VALUE: {text[:40]!r} is not")
    return _checked_name(name.strip()), value


def _checked_name(name: str) -> str:
    _encoded("name of a header", name)
    return name


def _is_plain(text: str) -> bool:
    """Whether a name or value is seen as it is: no control characters, and no space around it."""
    return text.isprintable() and text == text.strip()


def _json(what: str, text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"the {what} is not JSON: {error}") from None


def _from_hex(what: str, text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise CommandError(f"the {what} is not hex: pairs of 0-9 and a-f are") from None


def _encoded(what: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise CommandError(f"the {what} has half a character in it, which UTF-8 does not have") from None
