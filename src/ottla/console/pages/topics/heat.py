"""How even a topic is: partitions by size and rate, frequent keys, and what follows for the number of partitions.

The topic is watched for some seconds, so the page fills when that is over.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from ottla.client.explain.hot import HotKey, HotPartition, TopicHeat, advise, topic_heat
from ottla.console.answers import Page, PartStream, StreamPart
from ottla.console.call import PageCall
from ottla.console.html import Content, markup_of, tag
from ottla.console.pages.topics.figures import bytes_text
from ottla.console.pages.topics.frame import topic_of, topic_page, topic_path
from ottla.console.parts.charts import Bar, bars
from ottla.console.parts.tables import Column, plain_table
from ottla.console.parts.words import card, cards, code, figure, figures, link, notice, stream, told
from ottla.console.routing import page
from ottla.model import limits

_WATCH_S = (3, 10, 30)


@page("/topics/{topic}/heat")
async def heat_page(call: PageCall) -> Page:
    topic = topic_of(call)
    await call.admin.topics.describe(topic)
    seconds = call.number("seconds", _WATCH_S[0], least=1, most=_WATCH_S[-1])
    other = [link(f"{each} s", topic_path(topic, "heat", seconds=each)) for each in _WATCH_S if each != seconds]
    waiting = tag("p", f"Watching the topic for {seconds} seconds …", class_="empty")
    return topic_page(
        topic,
        tag("p", "Watch it for ", [[each, " "] for each in other], class_="note"),
        tag("div", id_="failed"),
        stream(topic_path(topic, "heat", "run", seconds=seconds), tag("div", waiting, id_="heat")),
        tab="heat",
    )


@page("/topics/{topic}/heat/run")
async def heat_run(call: PageCall) -> PartStream:
    return PartStream(_measured(call))


async def _measured(call: PageCall) -> AsyncGenerator[StreamPart, None]:
    seconds = call.number("seconds", _WATCH_S[0], least=1, most=_WATCH_S[-1])
    heat = await topic_heat(
        call.admin,
        topic_of(call),
        seconds=seconds,
        records=limits.CONSOLE_SAMPLED_RECORDS,
        keys=limits.CONSOLE_SAMPLED_KEYS,
    )
    yield StreamPart("heat", markup_of(_told(heat)))


def _told(heat: TopicHeat) -> Content:
    rate = heat.bytes_per_s
    return [
        figures(
            figure("records per second", f"{heat.records_per_s:,.1f}", note=f"over {heat.window_s:.0f} s"),
            figure("written per second", bytes_text(None if rate is None else int(rate))),
            figure("records sampled", f"{heat.sampled:,}", note="the last of each partition"),
            figure("without a key", f"{heat.without_key:,}"),
        ),
        card("What follows", [notice(told(each)) for each in advise(heat)] or tag("p", "It is even.", class_="empty")),
        cards(card("Partitions", _partitions(heat)), card("Hot keys", _keys(heat))),
    ]


def _partitions(heat: TopicHeat) -> Content:
    shown = heat.partitions[: limits.CONSOLE_BARS_MAX]
    rates = [Bar(f"partition {each.partition}", each.records_per_s) for each in shown]
    columns: tuple[Column[HotPartition], ...] = (
        Column("Partition", lambda each: each.partition, is_number=True),
        Column("Records", lambda each: f"{each.records:,}", is_number=True),
        Column("Size", lambda each: bytes_text(each.size_bytes), is_number=True),
        Column("Records per second", lambda each: f"{each.records_per_s:,.1f}", is_number=True),
    )
    return [bars("records per second", rates, lambda value: f"{value:,.1f}"), plain_table(columns, shown)]


def _keys(heat: TopicHeat) -> Content:
    columns: tuple[Column[HotKey], ...] = (
        Column("Key", lambda each: code(each.key.decode("utf-8", "backslashreplace"))),
        Column("Records", lambda each: f"{each.records:,}", is_number=True),
        Column("Share", lambda each: f"{each.share:.1%}", is_number=True),
    )
    return plain_table(columns, heat.keys, empty="No key came more than once among the sampled records.")
