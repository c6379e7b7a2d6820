"""Keys, values and headers as people edit them: text, hexadecimal digits, or JSON that a schema encodes."""

from __future__ import annotations

import json
from enum import StrEnum

_LINE_ENDS = frozenset("\n\t")


class EditFormat(StrEnum):
    """How a key or value is edited. `schema` is JSON, which the latest schema of a subject encodes."""

    text = "text"
    hex = "hex"
    null = "null"
    schema = "schema"


def editable(data: bytes | None) -> tuple[EditFormat, str]:
    """Return the format in which bytes can be edited without losing any, and that text."""
    if data is None:
        return EditFormat.null, ""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return EditFormat.hex, data.hex(" ", 4)
    # A browser makes each line end CR LF, and other control characters cannot be typed.
    is_plain = all(each.isprintable() or each in _LINE_ENDS for each in text)
    return (EditFormat.text, text) if is_plain else (EditFormat.hex, data.hex(" ", 4))


def edited(form: EditFormat, text: str) -> bytes | None:
    """Return what was typed as bytes. Raises ValueError for what is none."""
    if form is EditFormat.null:
        return None
    if form is EditFormat.hex:
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise ValueError("hexadecimal digits come in pairs, from 00 to ff") from None
    try:
        return text.replace("\r\n", "\n").encode()
    except UnicodeEncodeError:
        raise ValueError("this is not text in UTF-8") from None


def headers_text(headers: tuple[tuple[str, bytes | None], ...]) -> str:
    """Return headers as JSON, a line for each: [name, text], [name, null] or [name, {"hex": digits}]."""
    lines = []
    for name, value in headers:
        form, text = editable(value)
        shown: object = {"hex": text} if form is EditFormat.hex else None if form is EditFormat.null else text
        lines.append(f"  {json.dumps([name, shown], ensure_ascii=False)}")
    return "[\n" + ",\n".join(lines) + "\n]" if lines else "[]"


def headers_of(text: str) -> list[tuple[str, bytes | None]]:
    """Read what `headers_text` writes. Raises ValueError."""
    wrong = 'headers are a list in JSON: [["name", "text"], ["name", null], ["name", {"hex": "00ff"}]]'
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(wrong) from None
    if not isinstance(found, list):
        raise ValueError(wrong)
    headers: list[tuple[str, bytes | None]] = []
    for each in found:
        match each:
            case [str(name), None]:
                headers.append((name, None))
            case [str(name), str(value)]:
                headers.append((name, edited(EditFormat.text, value)))
            case [str(name), {"hex": str(digits)}]:
                headers.append((name, edited(EditFormat.hex, digits)))
            case _:
                raise ValueError(wrong)
    return headers
