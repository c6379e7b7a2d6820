"""The live tail: the newest records since the page was opened, or since a place in the address, renewed by itself.

Nothing is kept between two renewals: each reads from the end of the partitions backwards to the place where it began.
"""

from __future__ import annotations

from ottla.client.consumer.offsets import PartitionBounds
from ottla.client.metadata import TopicInfo
from ottla.console.answers import Fragment, Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.records.asked import (
    AskedPartitions,
    asked_partitions,
    format_fields,
    is_committed,
    kept_query,
    partition_field,
    reader_of,
)
from ottla.console.pages.records.places import place_of, place_text
from ottla.console.pages.records.shown import ShownRecord, header_text, read_records, record_table
from ottla.console.pages.topics.frame import topic_of, topic_page, topic_path
from ottla.console.parts.forms import field, query_form
from ottla.console.parts.words import badge, card, link, live, notice, told
from ottla.console.routing import page
from ottla.model import limits
from ottla.operations.records.reading import Place, RecordPage, read_page

_EVERY_S = 2
_BACKWARDS = 10  # records of each partition from before the page was opened; more if they are filtered


@page("/topics/{topic}/live")
async def live_page(call: PageCall) -> Page:
    topic = await call.admin.topics.describe(topic_of(call))
    asked = await asked_partitions(call, topic)
    since = _since(call, asked)
    words = {
        **kept_query(call),
        "partition": call.query.get("partition") or None,
        "text": call.query.get("text") or None,
    }
    now = place_text({index: each.end for index, each in asked.bounds.items()})
    if "until" in call.query:
        shown = await _part(call, topic, asked, since)
        on = topic_path(topic.name, "live", since=place_text(since), **words)
        state: Content = [badge("paused", "fair"), link("Go on", on)]
    else:
        shown = live(topic_path(topic.name, "live", "part", since=place_text(since), **words), _EVERY_S, id_="tail")
        pause = topic_path(topic.name, "live", since=place_text(since), until=now, **words)
        state = [badge("live", "good"), link("Pause", pause)]
    clear = topic_path(topic.name, "live", since=now, **words)
    return topic_page(
        topic.name,
        card("What to show", _form(call, topic)),
        tag("p", state, link("Clear", clear), class_="row"),
        shown,
        tab="live",
    )


@page("/topics/{topic}/live/part")
async def live_part(call: PageCall) -> Fragment:
    topic = await call.admin.cluster.topic(topic_of(call))
    asked = await asked_partitions(call, topic)
    return Fragment(await _part(call, topic, asked, _since(call, asked)))


def _since(call: PageCall, asked: AskedPartitions) -> Place:
    """Where the tail begins: at the place in the address, or a little before the ends."""
    if "since" in call.query:
        return place_of(call.query["since"]) if call.query["since"] else {}
    before = limits.CONSOLE_FILTERED_RECORDS if call.query.get("text") else _BACKWARDS
    return {index: max(each.start, each.end - before) for index, each in asked.bounds.items()}


def _form(call: PageCall, topic: TopicInfo) -> Markup:
    return query_form(
        path_to("topics", topic.name, "live"),
        field("text", "Only records with this text", call.query.get("text", "")),
        partition_field(call, topic),
        *format_fields(call),
        submit="Show",
        class_="form wide",
    )


async def _part(call: PageCall, topic: TopicInfo, asked: AskedPartitions, since: Place) -> Content:
    until = place_of(call.query["until"]) if call.query.get("until") else {}
    bounds = {}
    for index, each in asked.bounds.items():
        end = min(until.get(index, each.end), each.end)
        bounds[index] = PartitionBounds(min(max(since.get(index, each.start), each.start), end), end)
    text = call.query.get("text", "")
    found = await read_page(
        call.admin.cluster,
        topic.name,
        {index: each.end for index, each in bounds.items()},
        bounds,
        forward=False,
        count=limits.CONSOLE_FILTERED_RECORDS if text else limits.CONSOLE_ROWS,
        committed=is_committed(call),
    )
    rows = await read_records(found.records, reader_of(call))
    chosen = [each for each in rows if _has(each, text.lower())][: limits.CONSOLE_ROWS]
    total = sum(each.end - each.start for each in bounds.values())
    return [
        [
            notice(["Partition ", index, ": ", told(why)], "bad")
            for index, why in sorted({**asked.problems, **found.problems}.items())[: limits.CONSOLE_MESSAGES_MAX]
        ],
        notice("Not all of them were read: they are large, or reading took long.", "fair") if found.is_cut else None,
        tag("p", _counted(total, len(chosen), found, text), class_="note"),
        record_table(chosen, kept_query(call), empty="Waiting for records …"),
    ]


def _counted(total: int, shown: int, found: RecordPage, text: str) -> str:
    if text:
        return f"{shown:,} of the last {len(found.records):,} records have it; {total:,} offsets since the tail began"
    return f"{total:,} offsets since the tail began; the newest {shown:,} records"


def _has(row: ShownRecord, text: str) -> bool:
    if not text:
        return True
    words = [row.key.text, row.value.text, *(f"{name}={header_text(value)}" for name, value in row.record.headers)]
    return any(text in each.lower() for each in words)
