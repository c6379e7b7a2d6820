"""Partitions whose readers of committed records wait behind an open transaction, and whose it is.

A transaction hangs if a partition has it open and no coordinator knows it: nobody will ever end it. Because one may
begin or end between two questions, the partitions are asked before and after the coordinators.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.client.consumer.offsets import LATEST
from ottla.client.metadata import NO_LEADER
from ottla.model.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin import Admin
    from ottla.client.admin.topics import ActiveProducer
    from ottla.client.admin.transactions import TransactionDescription

OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
_PARTITIONS_AT_ONCE = 2_000


class OpenInPartition(NamedTuple):
    """An open transaction in one partition; `transactional_id` is None if no coordinator knows it."""

    producer: ActiveProducer
    transactional_id: str | None
    started_ms: int | None


class HeldPartition(NamedTuple):
    """Readers of committed records get nothing from `stable_end` on; `problem` says why nothing else is known."""

    at: TopicPartition
    stable_end: int
    end: int
    transactions: tuple[OpenInPartition, ...] = ()
    problem: str = ""

    @property
    def records(self) -> int:
        return self.end - self.stable_end


async def find_held(admin: Admin, tell: Callable[[int, int], None] = lambda done, of: None) -> list[HeldPartition]:
    """All held partitions; `tell` hears how many partitions were looked at, and of how many."""
    led = [
        TopicPartition(topic.name, each.index)
        for topic in await admin.topics.all()
        for each in topic.partitions
        if each.leader != NO_LEADER
    ]
    held: list[HeldPartition] = []
    for first in range(0, len(led), _PARTITIONS_AT_ONCE):
        tell(first, len(led))
        held += await held_of(admin, led[first : first + _PARTITIONS_AT_ONCE])
    tell(len(led), len(led))
    return held


async def held_of(admin: Admin, partitions: Sequence[TopicPartition]) -> list[HeldPartition]:
    """Those of the partitions that are held, with the transactions that hold them. All of them must have leaders."""
    if not partitions:
        return []
    stable, ends = await asyncio.gather(
        admin.topics.offsets_each(dict.fromkeys(partitions, LATEST), read_committed=True),
        admin.topics.offsets_each(dict.fromkeys(partitions, LATEST)),
    )
    held = {
        at: HeldPartition(at, stable.found[at].offset, each.offset)
        for at, each in ends.found.items()
        if at in stable.found and stable.found[at].offset < each.offset
    }
    if not held:
        return []
    before = await admin.topics.producers_each(held)
    known = await _known(admin, {each.producer_id for found in before.found.values() for each in _open(found)})
    after = await admin.topics.producers_each(before.found)
    found = []
    for at, each in held.items():
        if at in before.failed:
            found.append(each._replace(problem=str(before.failed[at])))
            continue
        still = {(one.producer_id, one.current_txn_start_offset) for one in _open(after.found.get(at, ()))}
        transactions = [
            _of(one, at, known)
            for one in _open(before.found[at])
            if (one.producer_id, one.current_txn_start_offset) in still
        ]
        if transactions:
            found.append(each._replace(transactions=tuple(transactions)))
    return found


def _open(producers: Iterable[ActiveProducer]) -> list[ActiveProducer]:
    return [each for each in producers if each.current_txn_start_offset >= 0]


def _of(
    producer: ActiveProducer, at: TopicPartition, known: Mapping[tuple[int, TopicPartition], TransactionDescription]
) -> OpenInPartition:
    whose = known.get((producer.producer_id, at))
    if whose is None:
        return OpenInPartition(producer, None, None)
    return OpenInPartition(producer, whose.transactional_id, whose.started_ms)


async def _known(admin: Admin, producer_ids: set[int]) -> dict[tuple[int, TopicPartition], TransactionDescription]:
    """The open transactions of these producers that coordinators know, by producer and partition."""
    listed = (await admin.transactions.all_each(producer_ids=producer_ids)).all() if producer_ids else {}
    ids = [each.transactional_id for found in listed.values() for each in found if each.state in OPEN_STATES]
    described = (await admin.transactions.describe_each(ids)).found.values() if ids else ()
    return {(each.producer_id, at): each for each in described for at in each.partitions}
