"""Compute the new offset of each partition when the offsets of a group are reset."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.operations.formats import parse_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.client.admin import Admin
    from ottla.client.consumer.offsets import Time
    from ottla.model.ids import TopicPartition


class Target(NamedTuple):
    """The target of a reset; exactly one field is set."""

    word: str | None = None  # earliest, latest
    offset: int | None = None
    time_ms: int | None = None
    back_ms: int | None = None
    shift: int | None = None

    @classmethod
    def of(cls, to: str | None, time_ms: int | None, back_ms: int | None, shift: int | None) -> Target:
        """Raises ValueError if `to` is neither a word nor an offset."""
        if to is None:
            return cls(time_ms=time_ms, back_ms=back_ms, shift=shift)
        if to in ("earliest", "latest"):
            return cls(word=to)
        if not to.isdecimal():
            raise ValueError(f"--to takes earliest, latest or an offset, not {to!r}")
        return cls(offset=int(to))


class OffsetMove(NamedTuple):
    """The change of a committed offset; `old` is None if nothing was committed."""

    partition: TopicPartition
    old: int | None
    new: int
    wanted: int  # the offset asked for, which may lie outside the log


async def chosen_partitions(admin: Admin, topics: Iterable[str]) -> list[TopicPartition]:
    """The partitions of `orders` (all of the topic) or `orders:3` (one)."""
    from ottla.model.ids import TopicPartition

    chosen: list[TopicPartition] = []
    for text in topics:
        name, colon, index = text.rpartition(":")
        if colon and (number := parse_index(index)) is not None:
            chosen.append(TopicPartition(name, number))
        else:
            found = await admin.topics.describe(text)
            chosen.extend(TopicPartition(text, each.index) for each in found.partitions)
    return chosen


async def new_offsets(
    admin: Admin, group: str, topics: list[str], target: Target, *, share: bool = False
) -> list[OffsetMove]:
    """The new offsets for the chosen topics, or for all that the group has committed offsets for; never before the
    first or after the last offset of a partition.
    """
    committed = await offsets_of(admin, group, share=share)
    partitions = await chosen_partitions(admin, topics) if topics else sorted(committed)
    from ottla.client.metadata import NoPartition

    for name in dict.fromkeys(at.topic for at in partitions if topics):
        topic = await admin.topics.describe(name)
        for at in partitions:
            if at.topic == name and topic.partition(at.partition) is None:
                raise NoPartition(name, topic.partition_count, at.partition)
    return await moves_to(admin, partitions, committed, target)


async def offsets_of(admin: Admin, group: str, *, share: bool) -> dict[TopicPartition, int]:
    """The offsets that a group has committed; of a share group, where each partition starts."""
    if share:
        return {each.partition: each.start for each in await admin.shares.places(group) if each.start is not None}
    return {at: place.offset for at, place in (await admin.groups.offsets(group)).items()}


async def moves_to(
    admin: Admin, partitions: list[TopicPartition], committed: Mapping[TopicPartition, int], target: Target
) -> list[OffsetMove]:
    """The new offsets of partitions that exist."""
    from ottla.client.consumer.offsets import EARLIEST, LATEST

    first = await _offsets(admin, partitions, EARLIEST)
    last = await _offsets(admin, partitions, LATEST)
    wanted = await _wanted(admin, partitions, target, committed, first, last)
    return [
        OffsetMove(at, committed.get(at), min(max(wanted[at], first[at]), last[at]), wanted[at])
        for at in partitions
        if at in wanted
    ]


async def _wanted(
    admin: Admin,
    partitions: list[TopicPartition],
    target: Target,
    committed: Mapping[TopicPartition, int],
    first: Mapping[TopicPartition, int],
    last: Mapping[TopicPartition, int],
) -> Mapping[TopicPartition, int]:
    from ottla.client.consumer.offsets import Time

    if target.word is not None:
        return first if target.word == "earliest" else last
    if target.offset is not None:
        return dict.fromkeys(partitions, target.offset)
    if target.shift is not None:
        return {each: committed[each] + target.shift for each in partitions if each in committed}
    time_ms = target.time_ms
    if time_ms is None:
        assert target.back_ms is not None, "one of them was given"
        time_ms = max(0, admin.cluster.options.now_ms() - target.back_ms)
    found = await _offsets(admin, partitions, Time(time_ms))
    return {each: found[each] if found[each] >= 0 else last[each] for each in partitions}


async def _offsets(admin: Admin, partitions: list[TopicPartition], time: Time) -> dict[TopicPartition, int]:
    from ottla.client.consumer.offsets import list_offsets

    found = await list_offsets(admin.cluster, dict.fromkeys(partitions, time))
    return {partition: answer.offset for partition, answer in found.items()}
