"""A record as it was typed: keys and values as text, JSON, hex or by a schema of the registry, and headers as lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum

from ottla.client.registry import SchemaRegistry
from ottla.operations.errors import CommandError
from ottla.operations.payloads import PayloadType, SubjectEncoder

_HEX = "hex:"


class TypedFormat(StrEnum):
    """What a typed key or value is."""

    none = "none"
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
        case TypedFormat.none:
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
        raise CommandError(f"the {what} is JSON null, which no schema has", "choose that it has none")
    return SubjectEncoder(registry, subject, PayloadType.auto).encode(value)


def headers_of(text: str) -> list[tuple[str, bytes | None]]:
    """Headers from lines `name: value`; a value `hex:00ff` is bytes, a name without a colon has no value, and a name in
    quotes is a JSON text.
    """
    found: list[tuple[str, bytes | None]] = []
    for line in filter(str.strip, text.split("\n")):
        name, value = _name_and_rest(line.strip())
        if value is None:
            found.append((name, None))
        elif value.startswith(_HEX):
            found.append((name, _from_hex(f"header {name[:40]}", value.removeprefix(_HEX))))
        else:
            found.append((name, _encoded("header", value)))
    return found


def headers_text(headers: Iterable[tuple[str, bytes | None]]) -> str:
    """Headers as the lines that `headers_of` reads."""
    lines = []
    for name, value in headers:
        is_plain = bool(name) and _is_plain(name) and ":" not in name and not name.startswith('"')
        written = name if is_plain else json.dumps(name)
        if value is not None:
            kind, text = typed_again(value)
            is_text = kind is TypedFormat.text and bool(text) and _is_plain(text) and not text.startswith(_HEX)
            written += f": {text if is_text else _HEX + value.hex()}"
        lines.append(written)
    return "\n".join(lines)


def _name_and_rest(line: str) -> tuple[str, str | None]:
    if line.startswith('"'):
        try:
            name, end = json.JSONDecoder().raw_decode(line)
        except ValueError:
            raise CommandError(f"a name of a header has no closing quote: {line[:40]}") from None
        rest = line[end:].strip()
        if rest and not rest.startswith(":"):
            raise CommandError(f"a colon follows the name of a header, not {rest[:40]!r}")
        return str(name), rest[1:].strip() if rest else None
    name, is_pair, value = line.partition(":")
    return name.strip(), value.strip() if is_pair else None


def _is_plain(text: str) -> bool:
    return text.isprintable() and text == text.strip()


def typed_again(data: bytes | None) -> tuple[TypedFormat, str]:
    """Bytes in the form in which they can be typed again, unchanged."""
    if data is None:
        return TypedFormat.none, ""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return TypedFormat.hex, data.hex()
    # A browser sends line ends as CR LF, and NUL not at all.
    is_kept = all(each.isprintable() or each in "\n\t" for each in text)
    return (TypedFormat.text, text) if is_kept else (TypedFormat.hex, data.hex())


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
