"""The topics with dead letters: those that share groups and contracts name, and those whose names say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.client.admin import Admin
from ottla.client.errors import ClientError
from ottla.client.explain.words import some
from ottla.console.answers import Answer, Page, Redirect
from ottla.console.call import PageCall
from ottla.console.html import Content, path_to
from ottla.console.pages.topics.seen import topics_seen
from ottla.console.parts.forms import field, query_form
from ottla.console.parts.tables import Column, cut, listed
from ottla.console.parts.words import card, link, notice, told
from ottla.console.routing import page
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource
from ottla.model.topic_settings import (
    OTTLA_SCHEMA_VALIDATION,
    OTTLA_SCHEMA_VALIDATION_ACTION,
    OTTLA_SCHEMA_VALIDATION_DLQ,
)
from ottla.operations.dead_letter_topics import is_named_for_letters, settings_each, topics_of_share_groups

_CONTRACT_ENDING = ".dlq"
_INTRO = (
    "A dead letter is a record that a share group, a contract or a Spark reader could not take, with headers that say "
    "why and where it comes from."
)
_NOT_OTTLA = (
    "Only Ottla's brokers tell which topics their share groups and contracts name. Here, topics are found by their "
    "names, and letters with headers ottla.dlq.* can be shown and sent back."
)


class LetterTopic(NamedTuple):
    """A topic, and who names it."""

    name: str
    named_by: tuple[str, ...]
    partitions: int


@page("/letters")
async def letter_topics(call: PageCall) -> Answer:
    if call.query.get("topic", "").strip():
        return Redirect(path_to("letters", call.text("topic")))
    is_ottla = await call.access.is_ottla()
    counts = {each.name: each.partition_count for each in await topics_seen(call.access).all()}
    named: dict[str, list[str]] = {}
    if is_ottla:
        await _of_groups(call.admin, named)
        await _of_contracts(call.admin, sorted(counts), named)
    for name in counts:
        if is_named_for_letters(name):
            named.setdefault(name, []).append("its own name")
    rows = [LetterTopic(name, tuple(by), counts.get(name, 0)) for name, by in sorted(named.items())]
    columns = _columns({})
    shown = cut(call, columns, rows, text=lambda each: f"{each.name} {' '.join(each.named_by)}", sort="topic")
    counted = await _counted(call.admin, shown.shown)
    empty = "no topic is known to have dead letters"
    another = query_form("/letters", field("topic", "Topic", options=sorted(counts)[:1000]), submit="Show its letters")
    content: list[Content] = [
        notice(_INTRO),
        None if is_ottla else notice(_NOT_OTTLA, "fair"),
        card("Topics", listed(call, _columns(counted), shown, noun="topic", empty=empty)),
        card("Any other topic", another),
    ]
    return Page("Dead letters", content)


async def _of_groups(admin: Admin, named: dict[str, list[str]]) -> None:
    """Note the topics that share groups name."""
    groups = [each for found in (await admin.groups.all_each(kinds=["share"])).found.values() for each in found]
    names = sorted({each.group_id for each in groups if each.group_id})[: limits.CONSOLE_TOPICS_ASKED_MAX]
    for group, topic in (await topics_of_share_groups(admin, names)).items():
        named.setdefault(topic, []).append(f"share group {group}")


async def _of_contracts(admin: Admin, topics: Sequence[str], named: dict[str, list[str]]) -> None:
    """Note the topics that contracts name."""
    if len(topics) > limits.CONSOLE_TOPICS_ASKED_MAX:
        return
    resources = list(map(Resource.topic, topics))
    contract, action = OTTLA_SCHEMA_VALIDATION.name, OTTLA_SCHEMA_VALIDATION_ACTION.name
    wanted = (contract, action, OTTLA_SCHEMA_VALIDATION_DLQ.name)
    for topic, values in (await settings_each(admin, resources, *wanted)).items():
        if values[contract] != "none" and values[action] == "dlq":
            name = values[OTTLA_SCHEMA_VALIDATION_DLQ.name] or f"{topic}{_CONTRACT_ENDING}"
            named.setdefault(name, []).append(f"contract of {topic}")


async def _counted(admin: Admin, rows: Sequence[LetterTopic]) -> dict[str, int]:
    """How many records the topics of one page have; of transactions and compaction there may be fewer."""
    partitions = [TopicPartition(each.name, index) for each in rows for index in range(each.partitions)]
    try:
        bounds = (await admin.topics.bounds_each(partitions)).found if partitions else {}
    except (ApiError, ClientError):
        return {}
    counted: dict[str, int] = {}
    for at, (start, end) in bounds.items():
        counted[at.topic] = counted.get(at.topic, 0) + end - start
    return counted


def _columns(counted: Mapping[str, int]) -> tuple[Column[LetterTopic], ...]:
    def records(each: LetterTopic) -> str:
        if not each.partitions:
            return "not there yet"
        return f"{counted[each.name]:,}" if each.name in counted else "unknown"

    def name(each: LetterTopic) -> Content:
        return link(told(each.name), path_to("letters", each.name)) if each.partitions else told(each.name)

    return (
        Column("Topic", name, lambda each: each.name),
        Column("Named by", lambda each: told(some(each.named_by)), lambda each: each.named_by),
        Column("Records", records, is_number=True),
    )
