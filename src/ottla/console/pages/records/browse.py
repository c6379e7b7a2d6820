"""Pages of a topic's records: from the newest, the oldest, an offset or a time, in one partition or all, to and fro."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.client.consumer.ranges import ConsumedRecord
from ottla.client.metadata import TopicInfo
from ottla.console.answers import FileAnswer, Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.records.asked import (
    AskedPartitions,
    asked_partitions,
    asked_place,
    format_fields,
    is_committed,
    kept_query,
    partition_field,
    reader_of,
)
from ottla.console.pages.records.files import csv_file, held_bytes, json_file
from ottla.console.pages.records.places import place_text
from ottla.console.pages.records.shown import read_records, record_table
from ottla.console.pages.topics.frame import topic_of, topic_page, topic_path
from ottla.console.parts.forms import choice, field, query_form
from ottla.console.parts.words import card, link, notice, told
from ottla.console.refusals import WrongInput
from ottla.console.routing import page
from ottla.model import limits
from ottla.operations.records.reading import RecordPage, read_page

_STARTS = (
    ("newest", "the newest record"),
    ("oldest", "the oldest record"),
    ("offset", "an offset"),
    ("time", "a time"),
)
_ORDERS = (("", "as they are read"), ("newest", "newest first"), ("oldest", "oldest first"))
_COUNTS = ("25", "50", "100", "200")
_DIFFERENT = ("start", "from", "place", "go")


@page("/topics/{topic}/records")
async def records_page(call: PageCall) -> Page:
    topic = await call.admin.topics.describe(topic_of(call))
    asked, found = await _read(call, topic)
    rows = await read_records(_ordered(call, found.records), reader_of(call))
    return topic_page(
        topic.name,
        card("Which records", _form(call, topic)),
        _problems(asked, found),
        tag("p", _counted(found, asked), class_="note"),
        _way(call, found),
        record_table(rows, kept_query(call)),
        _way(call, found) if len(rows) > limits.CONSOLE_ROWS // 2 else None,
        _downloads(call, found) if rows else None,
        tab="records",
    )


@page("/topics/{topic}/records/download")
async def download(call: PageCall) -> FileAnswer:
    """The records of a page as a file."""
    topic = await call.admin.topics.describe(topic_of(call))
    room = call.unsent(limits.CONSOLE_RECORDS_BYTES_MAX)
    try:
        _, found = await _read(call, topic)
        room.change(sum(map(held_bytes, found.records)))
        records = _ordered(call, found.records)
        if call.query.get("as") == "csv":
            return FileAnswer(csv_file(records, reader_of(call)), "text/csv; charset=utf-8", f"{topic.name}.csv")
        return FileAnswer(json_file(records, reader_of(call)), "application/json", f"{topic.name}.json")
    except BaseException:
        room.give_back()
        raise


async def _read(call: PageCall, topic: TopicInfo) -> tuple[AskedPartitions, RecordPage]:
    count = call.number("count", limits.CONSOLE_ROWS, least=1, most=limits.CONSOLE_RECORDS_MAX)
    asked = await asked_partitions(call, topic)
    place, forward = await asked_place(call, topic.name, asked.bounds)
    found = await read_page(
        call.admin.cluster,
        topic.name,
        place,
        asked.bounds,
        forward=forward,
        count=count,
        committed=is_committed(call),
    )
    return asked, found


def _ordered(call: PageCall, rows: Sequence[ConsumedRecord]) -> Sequence[ConsumedRecord]:
    order = call.query.get("order", "")
    is_forward = call.query.get("go") == "later" or call.query.get("start", "newest") not in ("newest", "")
    if "place" in call.query:
        is_forward = call.query.get("go") == "later"
    if order not in dict(_ORDERS):
        raise WrongInput(f"records are shown newest or oldest first, not {order[:40]!r}")
    wants_forward = is_forward if not order else order == "oldest"
    return rows if wants_forward == is_forward else rows[::-1]


def _form(call: PageCall, topic: TopicInfo) -> Markup:
    query = call.query
    return query_form(
        path_to("topics", topic.name, "records"),
        partition_field(call, topic),
        choice("start", "From", _STARTS, query.get("start", "")),
        field("from", "Offset or time", query.get("from", ""), hint="4711, or 2026-01-31 12:00"),
        choice("order", "Order", _ORDERS, query.get("order", "")),
        choice("count", "Records", _COUNTS, query.get("count", str(limits.CONSOLE_ROWS))),
        *format_fields(call),
        submit="Show",
        class_="form wide",
    )


def _problems(asked: AskedPartitions, found: RecordPage) -> Content:
    told_of = [
        notice(["Partition ", index, " could not be read: ", told(why)], "bad")
        for index, why in sorted({**asked.problems, **found.problems}.items())[: limits.CONSOLE_MESSAGES_MAX]
    ]
    if found.is_cut:
        told_of.append(
            notice("The page ends early: its records are large, or reading took long. Go on from here.", "fair")
        )
    return told_of


def _counted(found: RecordPage, asked: AskedPartitions) -> str:
    total = sum(each.end - each.start for each in asked.bounds.values())
    return f"{len(found.records):,} records of {total:,} offsets in {len(asked.bounds):,} partitions"


def _way(call: PageCall, found: RecordPage) -> Markup:
    """The links to the pages before and behind this one."""
    cleared: dict[str, str | int | None] = dict.fromkeys(_DIFFERENT)
    order = call.query.get("order") or None
    earlier = call.here(**{**cleared, "place": place_text(found.low), "go": "earlier", "order": order})
    later = call.here(**{**cleared, "place": place_text(found.high), "go": "later", "order": order})
    first = call.here(**{**cleared, "start": "oldest"})
    last = call.here(**cleared)
    links = [link("Oldest", first), link("Earlier", earlier), link("Later", later), link("Newest", last)]
    return tag("nav", links, class_="pager", aria_label="Pages of records")


def _downloads(call: PageCall, found: RecordPage) -> Markup:
    topic = topic_of(call)
    words: dict[str, str | int | None] = {**call.query}
    is_forward = call.query.get("go") == "later"
    if "place" not in call.query:
        is_forward = call.query.get("start", "newest") != "newest"
        words = {**words, "start": None, "from": None}
    words |= {"place": place_text(found.low if is_forward else found.high), "go": "later" if is_forward else "earlier"}

    def to(kind: str) -> str:
        return topic_path(topic, "records", "download", **{**words, "as": kind})

    return tag("p", "Keep this page: ", link("CSV", to("csv")), " ", link("JSON", to("json")), class_="note")
