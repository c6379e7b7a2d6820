"""The list of topics. Ten thousand stay quick: offsets and sizes are asked for the rows of one page only."""

from __future__ import annotations

from ottla.client.metadata import TopicInfo
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, tag
from ottla.console.pages.topics.figures import TopicFigures, bytes_text, count_text, figures_of
from ottla.console.pages.topics.frame import NEW, ailment_of, is_internal, is_offline, state_of, topic_path
from ottla.console.pages.topics.frame import is_under_replicated as is_behind
from ottla.console.pages.topics.seen import topics_seen
from ottla.console.parts.tables import Column, cut, listed
from ottla.console.parts.words import badge, figure, figures, link, told
from ottla.console.routing import page


@page("/topics")
async def topics_page(call: PageCall) -> Page:
    every = await topics_seen(call.access).all()
    shows_internal = call.query.get("internal") == "yes"
    shown = [each for each in every if shows_internal or not _is_internal(each)]
    columns = _columns(TopicFigures())
    part = cut(call, columns, shown, text=_name, sort="topic")
    known = await figures_of(call.admin, part.shown)
    table = listed(call, _columns(known), part, noun="topic", empty="There are no topics yet.")
    return Page("Topics", [_summary(shown), _above(call, every, shows_internal), table])


def _columns(known: TopicFigures) -> tuple[Column[TopicInfo], ...]:
    return (
        Column("Topic", _link, lambda each: each.name),
        Column("Partitions", lambda each: f"{each.partition_count:,}", lambda each: each.partition_count, True),
        Column("Replicas", _replicas, _replicas, True),
        Column("Records", lambda each: count_text(known.records(each)), is_number=True),
        Column("Size", lambda each: bytes_text(known.size(each)), is_number=True),
        Column("State", state_of, ailment_of),
    )


def _summary(shown: list[TopicInfo]) -> Content:
    partitions = [each for topic in shown for each in topic.partitions]
    behind, offline = sum(map(is_behind, partitions)), sum(map(is_offline, partitions))
    return figures(
        figure("topics", f"{len(shown):,}"),
        figure("partitions", f"{len(partitions):,}"),
        figure("under-replicated", f"{behind:,}", mood="fair" if behind else "good"),
        figure("offline", f"{offline:,}", mood="bad" if offline else "good"),
    )


def _above(call: PageCall, every: list[TopicInfo], shows_internal: bool) -> Content:
    internal = sum(map(_is_internal, every))
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
