"""Gathers the facts about a group: two samples, and what they do not show: members, transactions, quotas.

Facts that a user may not see, or that a broker does not tell, are left out: the verdicts say less then.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import suppress

from ottla.client.admin import Admin
from ottla.client.admin.first_times import first_times
from ottla.client.admin.group_descriptions import GroupDescription, GroupMember
from ottla.client.admin.group_events import GroupPast
from ottla.client.admin.quotas import DEFAULT
from ottla.client.admin.topics import ActiveProducer
from ottla.client.consumer.offsets import PartitionBounds
from ottla.client.errors import ClientError, UnsupportedApi
from ottla.client.explain.facts import FirstOpenTransaction, GroupState, PartitionFacts, QuotaFact
from ottla.client.explain.sample import Sample, Sampler
from ottla.model.errors import ApiError
from ottla.model.ids import ProducerId, TopicPartition

_RATE = "consumer_byte_rate"
_STEP_S = 1.0  # between looks at whether a sample is long enough
# Members may commit only every five seconds (auto.commit.interval.ms): one that seems to stand still is watched longer.
_LONGER = 3


async def gather_group(admin: Admin, group_id: str, seconds: float) -> GroupState:
    """Sample the group for some seconds, up to three times as long if members seem to stand still. Raises
    GROUP_ID_NOT_FOUND.
    """
    described = await admin.groups.describe(group_id)
    sampler = Sampler(admin, group_id, described.kind, described.members)
    first = await sampler.take()
    last = await _later(sampler, first, seconds, still_counts=bool(described.members))
    described = await admin.groups.describe(group_id)
    seen, transactions, sizes, quotas, past = await asyncio.gather(
        _seen(admin, described, sampler, first, last),
        _transactions(admin, first, last),
        _sizes(admin, last),
        _quotas(admin, described.members),
        past_of(admin, group_id),
    )
    facts = [
        each._replace(transaction=transactions.get(each.partition), record_bytes=sizes.get(each.partition))
        for each in seen.partitions
    ]
    return seen._replace(partitions=tuple(facts), quotas=quotas, past=past)


async def watch_group(admin: Admin, group_id: str, seconds: float) -> AsyncGenerator[GroupState, None]:
    """Yield the group's state for ever, each as it was in that many seconds; without transactions, quotas and the
    past.
    """
    described = await admin.groups.describe(group_id)
    sampler = Sampler(admin, group_id, described.kind, described.members)
    first = await sampler.take()
    while True:
        await asyncio.sleep(seconds)
        described = await admin.groups.describe(group_id)
        sampler.follow(described.members)
        last = await sampler.take()
        yield await _seen(admin, described, sampler, first, last)
        first = last


async def _seen(admin: Admin, described: GroupDescription, sampler: Sampler, first: Sample, last: Sample) -> GroupState:
    """Return what two samples show."""
    owners = {partition: member for member in described.members for partition in member.partitions}
    times = await _waiting(admin, last)
    facts = [
        _facts(each, sampler, first, last)._replace(
            owner=owners.get(each), seconds=0.0 if last.lag(each) == 0 else times.get(each)
        )
        for each in sorted({*last.committed, *owners})
    ]
    return GroupState(
        described.group_id,
        described.kind,
        described.state,
        described.epoch,
        described.members,
        tuple(facts),
        last.at_s - first.at_s,
    )


async def past_of(admin: Admin, group_id: str) -> GroupPast | None:
    """Return what the coordinator remembers; None if it is not Ottla's."""
    try:
        return await admin.groups.events(group_id)
    except UnsupportedApi:
        return None


async def _later(sampler: Sampler, first: Sample, seconds: float, *, still_counts: bool) -> Sample:
    """Return a sample after the given time, or later if a partition that is behind has not moved since the first."""
    loop = asyncio.get_running_loop()
    while True:
        waited_s = loop.time() - first.at_s
        await asyncio.sleep(max(min(seconds - waited_s, _STEP_S), 0.0) if waited_s < seconds else _STEP_S)
        if loop.time() - first.at_s < seconds:
            continue
        last = await sampler.take()
        is_long = last.at_s - first.at_s >= seconds * _LONGER
        if is_long or not still_counts or not any(_stands_still(each, first, last) for each in last.committed):
            return last


def _stands_still(partition: TopicPartition, first: Sample, last: Sample) -> bool:
    return bool(last.lag(partition)) and first.committed.get(partition) == last.committed.get(partition)


def _facts(partition: TopicPartition, sampler: Sampler, first: Sample, last: Sample) -> PartitionFacts:
    if not sampler.exists(partition):
        return PartitionFacts(partition, last.committed.get(partition), exists=False)
    if not sampler.has_leader(partition):
        return PartitionFacts(partition, last.committed.get(partition), has_leader=False)
    now, before = last.bounds.found.get(partition), first.bounds.found.get(partition)
    if now is None:
        error = last.bounds.failed.get(partition)
        return PartitionFacts(partition, last.committed.get(partition), error=str(error or "its offsets are not known"))
    stable = last.stable.get(partition)
    found = PartitionFacts(
        partition,
        last.committed.get(partition),
        now.start,
        now.end,
        last.lag(partition),
        stable_end=stable,
        is_stuck=stable is not None and stable < now.end and first.stable.get(partition) == stable,
    )
    elapsed_s = last.at_s - first.at_s
    if before is None or elapsed_s <= 0:
        return found
    produced = max(now.end - before.end, 0) / elapsed_s
    return found._replace(produced_per_s=produced, consumed_per_s=_consumed(partition, first, last, elapsed_s))


def _consumed(partition: TopicPartition, first: Sample, last: Sample, elapsed_s: float) -> float | None:
    """Return the records per second that the group has finished."""
    if partition in last.unfinished and partition in first.unfinished:
        written = last.bounds.found[partition].end - first.bounds.found[partition].end
        return max(written - (last.unfinished[partition] - first.unfinished[partition]), 0) / elapsed_s
    before, now = first.committed.get(partition), last.committed.get(partition)
    return None if now is None else max(now - (now if before is None else before), 0) / elapsed_s


async def _waiting(admin: Admin, last: Sample) -> dict[TopicPartition, float]:
    """Return for how long the first unread record of each partition has waited."""
    unread = {
        partition: PartitionBounds(max(offset, bounds.start), bounds.end)
        for partition, offset in last.committed.items()
        if (bounds := last.bounds.found.get(partition)) is not None and max(offset, bounds.start) < bounds.end
    }
    times = await first_times(admin.cluster, unread)
    now_ms = admin.cluster.options.now_ms()
    return {
        partition: max(now_ms - time_ms, 0) / 1000 for partition, time_ms in times.found.items() if time_ms is not None
    }


async def _transactions(admin: Admin, first: Sample, last: Sample) -> dict[TopicPartition, FirstOpenTransaction]:
    """Return the first open transaction of each partition whose stable end has not moved."""
    held = [
        partition
        for partition, stable in last.stable.items()
        if (bounds := last.bounds.found.get(partition)) is not None
        and stable < bounds.end
        and first.stable.get(partition) == stable
    ]
    with suppress(ApiError, ClientError):
        found = (await admin.topics.producers_each(held)).found if held else {}
        oldest = {partition: opened for partition, each in found.items() if (opened := _first_open(each)) is not None}
        named = await _named_transactions(admin, {each.producer_id for each in oldest.values()})
        return {
            partition: named.get(
                each.producer_id, FirstOpenTransaction(each.producer_id, each.current_txn_start_offset)
            )._replace(start_offset=each.current_txn_start_offset)
            for partition, each in oldest.items()
        }
    return {}


def _first_open(producers: Iterable[ActiveProducer]) -> ActiveProducer | None:
    is_open = [each for each in producers if each.current_txn_start_offset >= 0]
    return min(is_open, key=lambda each: each.current_txn_start_offset, default=None)


async def _named_transactions(admin: Admin, producer_ids: set[int]) -> dict[int, FirstOpenTransaction]:
    """Return the transactions of these producers that a coordinator knows."""
    found: dict[int, FirstOpenTransaction] = {}
    with suppress(ApiError, ClientError):
        listed = await admin.transactions.all_each(producer_ids=producer_ids) if producer_ids else None
        ids = [each.transactional_id for part in (listed.found.values() if listed else ()) for each in part]
        now_ms = admin.cluster.options.now_ms()
        for each in (await admin.transactions.describe_each(ids)).found.values() if ids else ():
            open_ms = None if each.started_ms is None else max(now_ms - each.started_ms, 0)
            producer_id = ProducerId(each.producer_id)
            found[producer_id] = FirstOpenTransaction(producer_id, -1, each.transactional_id, each.state, open_ms)
    return found


async def _sizes(admin: Admin, last: Sample) -> dict[TopicPartition, float]:
    """Return the average size of a record on disk, of partitions with records."""
    sizes: dict[TopicPartition, int] = {}
    with suppress(ApiError, ClientError):
        for directories in (await admin.nodes.log_dirs_each()).found.values():
            for replica in (each for directory in directories for each in directory.replicas):
                partition = TopicPartition(replica.topic, replica.partition)
                sizes[partition] = max(replica.size_bytes, sizes.get(partition, 0))
    return {
        partition: sizes[partition] / (bounds.end - bounds.start)
        for partition, bounds in last.bounds.found.items()
        if partition in sizes and bounds.end > bounds.start
    }


async def _quotas(admin: Admin, members: Sequence[GroupMember]) -> tuple[QuotaFact, ...]:
    """Return the quotas of reading that are known to hold for the members' client ids."""
    found: dict[str, QuotaFact] = {}
    with suppress(ApiError, ClientError):
        quotas = {
            entity: values[_RATE] for entity, values in (await admin.quotas.describe()).items() if _RATE in values
        }
        clients = sorted({each.client_id for each in members})
        for entity, bytes_per_s in quotas.items():
            for client_id in clients:
                if entity.user is None and entity.client_id == client_id:
                    found[client_id] = QuotaFact(client_id, bytes_per_s, f"--client-id {client_id}")
                elif entity.user is None and entity.client_id is DEFAULT:
                    found.setdefault(client_id, QuotaFact(client_id, bytes_per_s, "--default-client-id"))
    return tuple(found.values())
