"""One topic: its figures, and its partitions with leaders, replicas, offsets and sizes."""

from __future__ import annotations

from collections.abc import Callable

from ottla.client.consumer.offsets import PartitionBounds
from ottla.client.metadata import PartitionInfo, TopicInfo
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, Markup, path_to, tag
from ottla.console.pages.topics.figures import TopicFigures, adding_in, bytes_text, count_text, figures_of
from ottla.console.pages.topics.frame import (
    Adding,
    count_behind,
    is_offline,
    is_under_replicated,
    topic_of,
    topic_page,
    topic_path,
    warn_of_internal,
)
from ottla.console.parts.charts import Bar, bars
from ottla.console.parts.tables import Column, listing
from ottla.console.parts.words import Mood, badge, card, cards, facts, figure, figures, link
from ottla.console.routing import page
from ottla.model import limits
from ottla.model.ids import TopicPartition, uuid_text
from ottla.operations.formats import size_text

_IN_SYNC, _BEHIND, _OFFLINE = "in sync", "under-replicated", "offline"
_MOODS: dict[str, Mood] = {_IN_SYNC: "good", _BEHIND: "fair", _OFFLINE: "bad"}  # from well to ill
_ORDER = tuple(_MOODS)


@page("/topics/{topic}")
async def topic_overview(call: PageCall) -> Page:
    topic = await call.admin.topics.describe(topic_of(call))
    known = await figures_of(call.admin, [topic])
    adding = await adding_in(call.admin, topic)

    def state(each: PartitionInfo) -> str:
        return _state(topic.name, each, adding)

    def words(each: PartitionInfo) -> str:
        return f"{each.index} {state(each)} leader {each.leader}"

    columns = _columns(topic, known, state, may_change=call.may_change)
    return topic_page(
        topic.name,
        warn_of_internal(topic.name),
        _figures(topic, known, count_behind(topic, adding)),
        _actions(call, topic),
        card("Partitions", listing(call, columns, topic.partitions, text=words, noun="partition")),
        _drawn(topic, known),
        card("Identity", facts([("Topic id", tag("code", uuid_text(topic.topic_id)))])),
    )


def _figures(topic: TopicInfo, known: TopicFigures, behind: int) -> Markup:
    offline = sum(map(is_offline, topic.partitions))
    replicas = sorted({len(each.replicas) for each in topic.partitions})
    return figures(
        figure("records", count_text(known.records(topic)), note="as the offsets tell"),
        figure("on disk", bytes_text(known.size(topic)), note="each partition once"),
        figure("partitions", f"{topic.partition_count:,}"),
        figure("replicas", " or ".join(map(str, replicas)), note="of each partition"),
        figure("under-replicated", behind, mood="fair" if behind else "good"),
        figure("offline", offline, mood="bad" if offline else "good"),
    )


def _actions(call: PageCall, topic: TopicInfo) -> Content:
    if not call.may_change:
        return None
    named = (("Add partitions", "partitions"), ("Delete records", "delete-records"), ("Delete the topic", "delete"))
    return tag(
        "p", [link(text, topic_path(topic.name, name), class_="button plain") for text, name in named], class_="row"
    )


def _columns(
    topic: TopicInfo, known: TopicFigures, state: Callable[[PartitionInfo], str], *, may_change: bool
) -> tuple[Column[PartitionInfo], ...]:
    def bounds(each: PartitionInfo) -> PartitionBounds | None:
        return known.bounds.get(TopicPartition(topic.name, each.index))

    def records(each: PartitionInfo) -> int | None:
        found = bounds(each)
        return None if found is None else found.end - found.start

    def size(each: PartitionInfo) -> int | None:
        return known.size_bytes.get(TopicPartition(topic.name, each.index))

    def number(each: PartitionInfo) -> Markup:
        return link(each.index, topic_path(topic.name, "records", partition=each.index))

    def start(each: PartitionInfo) -> int | None:
        return None if (found := bounds(each)) is None else found.start

    def end(each: PartitionInfo) -> int | None:
        return None if (found := bounds(each)) is None else found.end

    def move(each: PartitionInfo) -> Markup:
        return link("move", path_to("brokers", "moves", "new", topic=topic.name, partition=each.index))

    shown: tuple[Column[PartitionInfo], ...] = (
        Column("Partition", number, lambda each: each.index, True),
        Column("State", lambda each: badge(state(each), _MOODS[state(each)]), lambda each: _ORDER.index(state(each))),
        Column("Leader", lambda each: "none" if is_offline(each) else each.leader, lambda each: each.leader, True),
        Column("Replicas", _replicas, lambda each: each.replicas),
        Column("First offset", lambda each: count_text(start(each)), start, True),
        Column("End offset", lambda each: count_text(end(each)), end, True),
        Column("Records", lambda each: count_text(records(each)), records, True),
        Column("Size", lambda each: bytes_text(size(each)), size, True),
    )
    return (*shown, Column("", move)) if may_change else shown


def _drawn(topic: TopicInfo, known: TopicFigures) -> Content:
    if not known.bounds:
        return None
    shown = topic.partitions[: limits.CONSOLE_BARS_MAX]
    more = topic.partition_count - len(shown)
    rest = tag("p", f"The other {more:,} partitions are in the table.", class_="empty") if more else None
    return cards(
        card(
            "Records by partition", bars("", [_bar(topic, each, known, is_size=False) for each in shown], _count), rest
        ),
        card("Size by partition", bars("", [_bar(topic, each, known, is_size=True) for each in shown], _bytes), rest),
    )


def _bar(topic: TopicInfo, each: PartitionInfo, known: TopicFigures, *, is_size: bool) -> Bar:
    at = TopicPartition(topic.name, each.index)
    bounds = known.bounds.get(at)
    records = 0 if bounds is None else bounds.end - bounds.start
    value = known.size_bytes.get(at, 0) if is_size else records
    return Bar(f"partition {each.index}", value, topic_path(topic.name, "records", partition=each.index))


def _count(value: float) -> str:
    return f"{int(value):,}"


def _bytes(value: float) -> str:
    return size_text(int(value))


def _state(topic: str, each: PartitionInfo, adding: Adding) -> str:
    if is_offline(each):
        return _OFFLINE
    return _BEHIND if is_under_replicated(topic, each, adding) else _IN_SYNC


def _replicas(each: PartitionInfo) -> list[Markup]:
    """The brokers of a partition: the leader, those in sync, and those that are not."""
    return [
        badge(
            f"{broker}{' leader' if broker == each.leader else ''}",
            "bad" if broker in each.offline else "good" if broker in each.isr else "fair",
        )
        for broker in each.replicas
    ]
