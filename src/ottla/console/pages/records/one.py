"""One record: everything about it, its contents whole, and its bytes as a file."""

from __future__ import annotations

from contextlib import aclosing

from ottla.client.consumer.ranges import ConsumedRecord, RangeReader, Span
from ottla.console.answers import FileAnswer, Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, tag
from ottla.console.pages.records.asked import FORMATS, kept_query, reader_of
from ottla.console.pages.records.shown import header_text, payload_bytes, pretty, read_records
from ottla.console.pages.topics.frame import topic_of, topic_page, topic_path
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import badge, block, card, cards, code, facts, link, notice, told
from ottla.console.refusals import RefusedRequest
from ottla.console.routing import page
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.operations.formats import size_text, time_text
from ottla.operations.records.contents import ReadContent, hex_dump
from ottla.operations.records.reading import read_options

_DUMPED_BYTES = 4_096  # bytes of a dump in hex


@page("/topics/{topic}/records/{partition}/{offset}")
async def record_page(call: PageCall) -> Page:
    record = await record_of(call)
    (shown,) = await read_records([record], reader_of(call))
    at = f"partition {record.partition}, offset {record.offset:,}"
    return topic_page(
        record.topic,
        _ways(call, record),
        cards(card("Record", _facts(record)), card("Headers", _headers(record))),
        _content(call, record, "key", record.key, shown.key),
        _content(call, record, "value", record.value, shown.value),
        tab="records",
        title=at,
    )


@page("/topics/{topic}/records/{partition}/{offset}/{what}")
async def content_file(call: PageCall) -> FileAnswer:
    """The bytes of a key or value as they are."""
    what = call.params["what"]
    if what not in ("key", "value"):
        raise RefusedRequest(404, "there is no such page")
    record = await record_of(call)
    data = record.key if what == "key" else record.value
    if data is None:
        raise RefusedRequest(404, f"the {what} of this record is null")
    name = f"{record.topic}-{record.partition}-{record.offset}-{what}.bin"
    return FileAnswer(bytes(data), "application/octet-stream", name)


async def record_of(call: PageCall) -> ConsumedRecord:
    """The record that the path names. Raises RefusedRequest if there is none."""
    at = TopicPartition(topic_of(call), _number(call, "partition", limits.INT32_MAX))
    offset = _number(call, "offset", limits.INT64_MAX - 1)
    return await read_record(call, at, offset)


async def read_record(call: PageCall, at: TopicPartition, offset: int) -> ConsumedRecord:
    """One record. Raises RefusedRequest if there is no such partition, or no record at this offset."""
    if (await call.admin.topics.describe(at.topic)).partition(at.partition) is None:
        raise RefusedRequest(404, f"topic {at.topic} has no partition {at.partition}")
    bounds = (await call.admin.topics.bounds_each([at])).all()[at]
    if not bounds.start <= offset < bounds.end:
        hint = f"its records have offsets from {bounds.start:,} up to {bounds.end:,}" if bounds.end else "it is empty"
        raise RefusedRequest(404, f"partition {at.partition} of {at.topic} has no offset {offset:,}", hint)
    span = Span(at.topic, at.partition, offset, offset + 1)
    async with RangeReader(call.admin.cluster, [span], read_options(committed=False)) as reader:
        try:
            async with aclosing(reader.records()) as records:
                async for record in records:
                    return record
        except ApiError as error:
            if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
    raise RefusedRequest(
        404,
        f"there is no record at offset {offset:,} of partition {at.partition}",
        "it was removed by compaction, or ends a transaction",
    )


def _number(call: PageCall, name: str, most: int) -> int:
    text = call.params[name]
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise RefusedRequest(404, "there is no such page")
    return int(text)


def _ways(call: PageCall, record: ConsumedRecord) -> Markup:
    topic, query = record.topic, kept_query(call)

    def to(offset: int) -> str:
        return topic_path(topic, "records", record.partition, offset, **query)

    around = topic_path(
        topic, "records", place=f"{record.partition}.{record.offset}", partition=record.partition, go="later", **query
    )
    again = topic_path(topic, "produce", partition=record.partition, offset=record.offset)
    return tag(
        "nav",
        link("Previous", to(record.offset - 1)) if record.offset else None,
        link("Next", to(record.offset + 1)),
        link("Records from here", around),
        link("Edit and produce again", again) if call.may_change else None,
        class_="pager",
        aria_label="Records around this one",
    )


def _facts(record: ConsumedRecord) -> Markup:
    return facts(
        [
            ("Topic", told(record.topic)),
            ("Partition", record.partition),
            ("Offset", f"{record.offset:,}"),
            ("Time", f"{time_text(record.timestamp)} ({record.timestamp})"),
            ("Leader epoch", record.leader_epoch),
            ("Key and value", f"{size_text(payload_bytes(record))} ({payload_bytes(record):,} bytes)"),
        ]
    )


def _headers(record: ConsumedRecord) -> Markup:
    columns: tuple[Column[tuple[str, bytes | None]], ...] = (
        Column("Name", lambda each: code(each[0])),
        Column("Value", lambda each: code(_whole(header_text(each[1])))),
    )
    return plain_table(columns, record.headers[: limits.CONSOLE_ROWS_MAX], empty="It has none.")


def _content(call: PageCall, record: ConsumedRecord, what: str, data: bytes | None, read: ReadContent) -> Markup:
    title = what.capitalize()
    if data is None:
        return card(title, tag("p", badge("null"), " It has no key." if what == "key" else " It is a tombstone."))
    at = (record.partition, record.offset)
    others = [
        tag("a", text, href=call.here(**{what: name}), aria_current="page" if name == _chosen(call, what) else None)
        for name, text in FORMATS
    ]
    note: Content = notice(told(read.note), "fair") if read.note and read.format != "registry" else None
    schema = read.note if read.format == "registry" else ""
    text = pretty(read)
    cut = notice(f"Only the first {limits.CONSOLE_VALUE_BYTES_MAX:,} characters are shown.", "fair")
    return card(
        f"{title}, {len(data):,} bytes",
        tag("nav", others, class_="tabs", aria_label=f"Formats of the {what}"),
        note,
        tag("p", badge(read.format), " ", told(schema), class_="note"),
        cut if len(text) > limits.CONSOLE_VALUE_BYTES_MAX else None,
        block(_dump(data) if read.format == "hex" else _whole(text)),
        tag("p", link("Keep its bytes as a file", topic_path(record.topic, "records", *at, what)), class_="note"),
    )


def _chosen(call: PageCall, what: str) -> str:
    return call.query.get(what) or "auto"


def _whole(text: str) -> str:
    most = limits.CONSOLE_VALUE_BYTES_MAX
    return text if len(text) <= most else text[:most] + "…"


def _dump(data: bytes) -> str:
    more = len(data) - _DUMPED_BYTES
    return hex_dump(data[:_DUMPED_BYTES]) + (f"\n… and {more:,} bytes more" if more > 0 else "")
