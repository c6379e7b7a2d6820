"""Where a topic lies: its replicas on brokers and directories, and its segments, indexes and retention as pictures.

Segments are told by Ottla's brokers only; of a real Kafka's topics there are sizes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

from ottla.client.admin.segments import LogSegment, PartitionSegments
from ottla.client.errors import ClientError, UnsupportedApi
from ottla.client.metadata import TopicInfo
from ottla.console.answers import Page
from ottla.console.call import PageCall
from ottla.console.html import Content, path_to, tag
from ottla.console.pages.topics.drawing import Retention, legend, segment_picture
from ottla.console.pages.topics.frame import is_offline, topic_of, topic_page
from ottla.console.parts.forms import field, query_form
from ottla.console.parts.tables import Column, listing, plain_table
from ottla.console.parts.words import badge, card, code, figure, figures, notice, told
from ottla.console.refusals import WrongInput
from ottla.console.routing import page
from ottla.model import limits
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.model.resources import Resource
from ottla.operations.failures import message_of
from ottla.operations.formats import size_text, time_text

_RETENTION = ("cleanup.policy", "retention.ms", "retention.bytes")


class ReplicaOnDisk(NamedTuple):
    """One replica of a partition in a directory of a broker."""

    partition: int
    node_id: int
    path: str
    size_bytes: int
    lag: int
    is_future: bool


@page("/topics/{topic}/storage")
async def storage_page(call: PageCall) -> Page:
    topic = await call.admin.topics.describe(topic_of(call))
    chosen = _chosen(call, topic)
    retention, (replicas, problem), segments = await asyncio.gather(
        _retention(call, topic.name), _replicas(call, topic), _segments(call, topic.name, chosen)
    )
    return topic_page(
        topic.name,
        _figures(replicas) if replicas else None,
        notice(["Sizes are not told: ", told(problem)], "fair") if problem else None,
        card("Retention", tag("p", retention.sentence)),
        card("Segments", _choice(call, topic), _drawn(segments, retention)),
        _one(segments, retention) if len(chosen) == 1 else None,
        card("Replicas", listing(call, _COLUMNS, replicas, text=_words, sort="partition", noun="replica")),
        tab="storage",
    )


def _chosen(call: PageCall, topic: TopicInfo) -> list[int]:
    """The partitions that are drawn."""
    led = [each.index for each in topic.partitions if not is_offline(each)]
    if call.query.get("partition"):
        index = call.number("partition", most=limits.INT32_MAX)
        if topic.partition(index) is None:
            raise WrongInput(f"topic {topic.name} has no partition {index}")
        return [index]
    return led[: limits.CONSOLE_PARTITIONS_DRAWN_MAX]


async def _retention(call: PageCall, topic: str) -> Retention:
    now_ms = time.time_ns() // 1_000_000
    try:
        entries = await call.admin.configs.describe(Resource.topic(topic), _RETENTION)
    except ApiError:  # seeing settings is a right of its own
        return Retention(None, None, deletes=False, now_ms=now_ms, is_known=False)
    values = {each.name: each.value or "" for each in entries}

    def bound(name: str) -> int | None:
        text = values.get(name, "")
        return int(text) if text.isascii() and text.isdecimal() else None

    deletes = "delete" in values.get("cleanup.policy", "")
    return Retention(bound("retention.ms"), bound("retention.bytes"), deletes, now_ms)


async def _replicas(call: PageCall, topic: TopicInfo) -> tuple[list[ReplicaOnDisk], str]:
    """The replicas on the brokers that tell them, and why others do not."""
    try:
        async with asyncio.timeout(limits.CONSOLE_FIGURES_S):
            wanted = {topic.name: [each.index for each in topic.partitions]}
            outcomes = await call.admin.nodes.log_dirs_each(topics=wanted)
    except (TimeoutError, ApiError, ClientError) as error:
        return [], message_of(error)
    found = [
        ReplicaOnDisk(each.partition, node_id, directory.path, each.size_bytes, each.offset_lag, each.is_future)
        for node_id, directories in outcomes.found.items()
        for directory in directories
        for each in directory.replicas
        if each.topic == topic.name
    ]
    problems = [f"broker {node_id}: {message_of(error)}" for node_id, error in outcomes.failed.items()]
    return found, "; ".join(problems)


async def _segments(call: PageCall, topic: str, chosen: Sequence[int]) -> dict[int, PartitionSegments | Exception]:
    if not await call.access.is_ottla():
        return dict.fromkeys(chosen[:1], UnsupportedApi("these brokers are not Ottla's"))
    try:
        async with asyncio.timeout(limits.CONSOLE_FIGURES_S):
            asked = [TopicPartition(topic, index) for index in chosen]
            outcomes = await call.admin.topics.segments_each(asked)
    except TimeoutError as error:
        return dict.fromkeys(chosen[:1], error)
    found: dict[int, PartitionSegments | Exception] = {at.partition: each for at, each in outcomes.found.items()}
    return found | {at.partition: error for at, error in outcomes.failed.items()}


def _figures(replicas: Sequence[ReplicaOnDisk]) -> Content:
    sizes = [each.size_bytes for each in replicas]
    return figures(
        figure("on disk", size_text(sum(sizes)), note="all replicas"),
        figure("replicas", f"{len(replicas):,}"),
        figure("the largest", size_text(max(sizes))),
        figure("brokers", len({each.node_id for each in replicas})),
    )


def _choice(call: PageCall, topic: TopicInfo) -> Content:
    if topic.partition_count == 1:
        return None
    drawn = limits.CONSOLE_PARTITIONS_DRAWN_MAX
    hint = f"empty: the first {drawn} of {topic.partition_count:,}" if topic.partition_count > drawn else "empty: all"
    entry = field("partition", "Only partition", call.query.get("partition", ""), hint=hint)
    return query_form(path_to("topics", topic.name, "storage"), entry, submit="Show", class_="form wide")


def _drawn(segments: dict[int, PartitionSegments | Exception], retention: Retention) -> Content:
    drawn: list[Content] = []
    for index, found in sorted(segments.items()):
        if isinstance(found, UnsupportedApi):
            return notice(
                "A real Kafka tells the sizes of partitions, and not their segments.",
                hint="Ottla's brokers tell segments, indexes and what retention takes next.",
            )
        if isinstance(found, Exception):
            drawn.append(notice(["Partition ", index, ": ", told(message_of(found))], "bad"))
        else:
            drawn.append(segment_picture(index, found, retention))
    return [legend(), drawn] if drawn else tag("p", "No partition has a leader.", class_="empty")


def _one(segments: dict[int, PartitionSegments | Exception], retention: Retention) -> Content:
    """The segments of one partition as a table, the newest first."""
    tables = []
    for index, found in segments.items():
        if isinstance(found, PartitionSegments):
            due = retention.due(found)
            rows = found.segments[::-1][: limits.CONSOLE_ROWS_MAX]
            tables.append(card(f"Segments of partition {index}", plain_table(_segment_columns(due), rows)))
    return tables


def _segment_columns(due: set[int]) -> tuple[Column[LogSegment], ...]:
    def state(each: LogSegment) -> Content:
        if each.is_active:
            return badge("active", "good")
        return badge("due for deletion", "bad") if each.base_offset in due else badge("closed")

    return (
        Column("Base offset", lambda each: f"{each.base_offset:,}", is_number=True),
        Column("State", state),
        Column("Size", lambda each: size_text(each.size_bytes), is_number=True),
        Column("Offset index", lambda each: size_text(each.offset_index_bytes), is_number=True),
        Column("Time index", lambda each: size_text(each.time_index_bytes), is_number=True),
        Column("Transaction index", lambda each: size_text(each.transaction_index_bytes), is_number=True),
        Column("Newest record", lambda each: time_text(each.largest_timestamp)),
    )


_COLUMNS: tuple[Column[ReplicaOnDisk], ...] = (
    Column("Partition", lambda each: each.partition, lambda each: (each.partition, each.node_id), is_number=True),
    Column("Broker", lambda each: each.node_id, lambda each: each.node_id, is_number=True),
    Column("Directory", lambda each: code(each.path), lambda each: each.path),
    Column("Size", lambda each: size_text(each.size_bytes), lambda each: each.size_bytes, is_number=True),
    Column("Lag", lambda each: f"{each.lag:,}", lambda each: each.lag, is_number=True),
    Column("State", lambda each: badge("moving here", "fair") if each.is_future else badge("in place")),
)


def _words(each: ReplicaOnDisk) -> str:
    return f"{each.partition} broker {each.node_id} {each.path}"
