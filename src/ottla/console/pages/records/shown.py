"""Records in a table: contents are read in a worker thread, shown on one line, and cut."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.client.consumer.ranges import ConsumedRecord
from ottla.console.html import Content, Markup, tag
from ottla.console.pages.topics.frame import topic_path
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import badge, code, link, told
from ottla.model import limits
from ottla.operations.formats import size_text, time_text
from ottla.operations.records.contents import ContentFormat, ReadContent, RecordReader
from ottla.operations.threads import BlockingWork, in_thread

_HEADERS_MAX = 4


class ShownRecord(NamedTuple):
    """A record and what its key and value say."""

    record: ConsumedRecord
    key: ReadContent
    value: ReadContent


async def read_records(records: Sequence[ConsumedRecord], reader: RecordReader) -> list[ShownRecord]:
    return await in_thread(
        BlockingWork.decoding, lambda: [ShownRecord(each, reader.key(each), reader.value(each)) for each in records]
    )


def record_table(
    rows: Sequence[ShownRecord], query: Mapping[str, str | None], *, empty: Content = "There are no records here."
) -> Markup:
    """A row for each record; `query` goes into the address of each record's own page."""
    return plain_table(columns_of(query), rows, empty=empty)


def columns_of(query: Mapping[str, str | None]) -> tuple[Column[ShownRecord], ...]:
    return (
        Column("Partition", lambda each: each.record.partition, is_number=True),
        Column("Offset", lambda each: _link(each.record, query), is_number=True),
        Column("Time", lambda each: tag("span", time_text(each.record.timestamp), class_="when")),
        Column("Key", lambda each: content_cell(each.key)),
        Column("Value", lambda each: content_cell(each.value, is_wide=True)),
        Column("Headers", lambda each: _headers(each.record)),
        Column("Size", lambda each: size_text(payload_bytes(each.record)), is_number=True),
    )


def content_cell(content: ReadContent, *, is_wide: bool = False) -> Content:
    """Contents on one line, cut."""
    class_ = "content wide" if is_wide else "content"
    if content.format == "null":
        return badge("null")
    if content.format == ContentFormat.registry:
        return tag("div", code(cut(content.text)), " ", badge(content.note), class_=class_)
    note = tag("small", told(cut(content.note)), class_="note") if content.note else None
    mark = badge(content.format) if content.format not in (ContentFormat.text, ContentFormat.json) else None
    return tag("div", code(cut(content.text)), " " if mark else None, mark, note, class_=class_)


def cut(text: str, most: int = limits.CONSOLE_CELL_CHARS) -> str:
    return text if len(text) <= most else text[:most] + "…"


def pretty(content: ReadContent) -> str:
    """Contents as several lines."""
    return json.dumps(content.value, ensure_ascii=False, indent=2) if content.is_structured else content.text


def payload_bytes(record: ConsumedRecord) -> int:
    return len(record.key or b"") + len(record.value or b"")


def header_text(value: bytes | None) -> str:
    """The value of a header as text."""
    return "null" if value is None else value.decode("utf-8", "backslashreplace")


def _link(record: ConsumedRecord, query: Mapping[str, str | None]) -> Markup:
    to = topic_path(record.topic, "records", record.partition, record.offset, **query)
    return link(record.offset, to)


def _headers(record: ConsumedRecord) -> Content:
    shown = [
        [code(f"{cut(name, 40)}={cut(header_text(value), 60)}"), " "] for name, value in record.headers[:_HEADERS_MAX]
    ]
    more = len(record.headers) - _HEADERS_MAX
    return tag("div", shown, tag("small", f"and {more} more") if more > 0 else None, class_="content")
