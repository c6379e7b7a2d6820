"""The fields of a form in which a record is typed: key, value and headers, each in a format that can be chosen."""

from __future__ import annotations

from ottla.client.consumer.ranges import ConsumedRecord
from ottla.console.call import PageCall
from ottla.console.html import Content
from ottla.console.pages.records.shown import ShownRecord, pretty
from ottla.console.parts.forms import area, choice, field
from ottla.console.refusals import WrongInput
from ottla.model import limits
from ottla.operations.records.contents import ContentFormat
from ottla.operations.records.writing import TypedFormat, content_bytes, headers_of, headers_text, typed_again
from ottla.operations.threads import BlockingWork, in_thread

_FORMATS = (
    (TypedFormat.text.value, "text"),
    (TypedFormat.json.value, "JSON"),
    (TypedFormat.hex.value, "hex"),
    (TypedFormat.registry.value, "JSON, written by the subject's latest schema"),
)
_KEY_FORMATS = ((TypedFormat.null.value, "null: it has none"), *_FORMATS)
_VALUE_FORMATS = (*_FORMATS, (TypedFormat.null.value, "null: a tombstone"))
_HEADERS_HINT = "a line for each: NAME=VALUE, NAME=hex:00ff, NAME=null:"


def content_fields(call: PageCall, topic: str, typed: dict[str, str], *, value_rows: int = 10) -> list[Content]:
    """The fields of key, value and headers; `topic` is what their subjects are called after."""
    return [
        *_fields_of(call, topic, "key", typed, _KEY_FORMATS, 2),
        *_fields_of(call, topic, "value", typed, _VALUE_FORMATS, value_rows),
        area("headers", "Headers", typed.get("headers", ""), rows=3, hint=_HEADERS_HINT),
    ]


async def typed_content(call: PageCall, topic: str, what: str) -> bytes | None:
    """The key or value that was typed. Raises WrongInput and CommandError."""
    given = call.form.get(f"{what}_format", "")
    try:
        typed = TypedFormat(given)
    except ValueError:
        raise WrongInput(f"there is no format {given[:40]!r}") from None
    text = _lines(call.form.get(what, ""))
    if typed is TypedFormat.null and text.strip():
        raise WrongInput(f"a {what} is typed, but the {what} is to be null", "choose its format, or empty the field")
    subject = call.form.get(f"{what}_subject", "").strip() or f"{topic}-{what}"
    registry = call.registry if typed is TypedFormat.registry else None
    return await in_thread(BlockingWork.registry, content_bytes, what, text, typed, registry, subject)


def typed_headers(call: PageCall) -> list[tuple[str, bytes | None]]:
    """The headers that were typed. Raises CommandError."""
    return headers_of(_lines(call.form.get("headers", "")))


def fields_of_record(shown: ShownRecord, headers: tuple[tuple[str, bytes | None], ...]) -> dict[str, str]:
    """What the fields hold for a record that is there, so that it can be edited. Raises WrongInput if it is too large;
    its headers are those that are given.
    """
    record = shown.record
    if not can_be_edited(record):
        raise WrongInput(
            f"a record with more than {limits.CONSOLE_VALUE_BYTES_MAX:,} bytes cannot be edited here",
            "keep its value as a file, and use `ottla produce`",
        )
    typed = {"headers": headers_text(headers)}
    for what, data, content in (("key", record.key, shown.key), ("value", record.value, shown.value)):
        if content.format == ContentFormat.registry:
            typed |= {f"{what}_format": TypedFormat.registry.value, what: pretty(content)}
        else:
            kind, text = typed_again(data)
            typed |= {f"{what}_format": kind.value, what: text}
    return typed


def can_be_edited(record: ConsumedRecord) -> bool:
    most = limits.CONSOLE_VALUE_BYTES_MAX
    return all(len(each or b"") <= most for each in (record.key, record.value))


def _fields_of(
    call: PageCall, topic: str, what: str, typed: dict[str, str], formats: tuple[tuple[str, str], ...], rows: int
) -> list[Content]:
    has_registry = call.access.registry is not None
    offered = [each for each in formats if has_registry or each[0] != TypedFormat.registry]
    fields: list[Content] = [
        choice(f"{what}_format", f"The {what} is", offered, typed.get(f"{what}_format", "")),
        area(what, what.capitalize(), typed.get(what, ""), rows=rows),
    ]
    if has_registry:
        hint = f"whose schema writes the {what}; empty: {topic}-{what}"
        fields.append(field(f"{what}_subject", f"Subject of the {what}", typed.get(f"{what}_subject", ""), hint=hint))
    return fields


def _lines(text: str) -> str:
    """What was typed, with the line ends of its author: browsers send CR LF."""
    return text.replace("\r\n", "\n")
