"""The list of topics. Ten thousand stay quick: offsets and sizes are asked for the rows of one page only."""

from __future__ import annotations

from typing import NamedTuple

from ottla.client.metadata import TopicInfo
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, tag
from ottla.console.pages.topics.figures import TopicFigures, adding_in, bytes_text, count_text, figures_of
from ottla.console.pages.topics.frame import (
    NEW,
    Adding,
    ailment_of,
    count_behind,
    is_internal,
    is_offline,
    state_of,
    topic_path,
)
from ottla.console.pages.topics.seen import topics_seen
from ottla.console.parts.tables import Column, TableCut, cut, listed
from ottla.console.parts.words import badge, figure, figures, link, told
from ottla.console.routing import page
from ottla.operations.threads import BlockingWork, in_thread


@page("/topics")
async def topics_page(call: PageCall) -> Page:
    every = await topics_seen(call.access).all()
    shows_internal = call.query.get("internal") == "yes"
    adding = await adding_in(call.admin)
    part, counts = await in_thread(BlockingWork.rows, _looked_through, call, every, adding, shows_internal)
    known = await figures_of(call.admin, part.shown)
    table = listed(call, _columns(known, adding), part, noun="topic", empty="There are no topics yet.")
    return Page("Topics", [_summary(counts), _above(call, counts, shows_internal), table])


class TopicCounts(NamedTuple):
    """What there is in all: topics and partitions that are shown, those that are ill, and topics that are internal."""

    topics: int
    partitions: int
    behind: int
    offline: int
    internal: int


def _looked_through(
    call: PageCall, every: list[TopicInfo], adding: Adding, shows_internal: bool
) -> tuple[TableCut[TopicInfo], TopicCounts]:
    """The rows of the page, and the counts; of very many topics that takes longer than others should wait."""
    hidden = [each for each in every if _is_internal(each)]
    shown = every if shows_internal or not hidden else [each for each in every if not _is_internal(each)]
    part = cut(call, _columns(TopicFigures(), adding), shown, text=_name, sort="topic")
    partitions = [each for topic in shown for each in topic.partitions]
    behind, offline = sum(count_behind(each, adding) for each in shown), sum(map(is_offline, partitions))
    return part, TopicCounts(len(shown), len(partitions), behind, offline, len(hidden))


def _columns(known: TopicFigures, adding: Adding) -> tuple[Column[TopicInfo], ...]:
    return (
        Column("Topic", _link, lambda each: each.name),
        Column("Partitions", lambda each: f"{each.partition_count:,}", lambda each: each.partition_count, True),
        Column("Replicas", _replicas, _replicas, True),
        Column("Records", lambda each: count_text(known.records(each)), is_number=True),
        Column("Size", lambda each: bytes_text(known.size(each)), is_number=True),
        Column("State", lambda each: state_of(each, adding), lambda each: ailment_of(each, adding)),
    )


def _summary(counts: TopicCounts) -> Content:
    return figures(
        figure("topics", f"{counts.topics:,}"),
        figure("partitions", f"{counts.partitions:,}"),
        figure("under-replicated", f"{counts.behind:,}", mood="fair" if counts.behind else "good"),
        figure("offline", f"{counts.offline:,}", mood="bad" if counts.offline else "good"),
    )


def _above(call: PageCall, counts: TopicCounts, shows_internal: bool) -> Content:
    internal = counts.internal
    create = link("Create a topic", NEW, class_="button") if call.may_change else None
    if not internal:
        return tag("p", create, class_="row")
    other = "Hide internal topics" if shows_internal else f"Show {internal} internal topics"
    to = call.here(internal=None if shows_internal else "yes", page=None)
    return tag("p", create, link(other, to), class_="row")


def _link(topic: TopicInfo) -> Content:
    mark = [" ", badge("internal")] if _is_internal(topic) else None
    return [link(told(topic.name), topic_path(topic.name)), mark]


def _is_internal(topic: TopicInfo) -> bool:
    return topic.is_internal or is_internal(topic.name)


def _name(topic: TopicInfo) -> str:
    return topic.name


def _replicas(topic: TopicInfo) -> int:
    return max((len(each.replicas) for each in topic.partitions), default=0)
