"""How even a topic is: partitions by size and by rate, the keys that are most frequent at its end, and what follows.

Sizes come from the brokers, rates from two looks at the ends of the partitions, and keys from the last records, read
without a group. Memory is bounded: keys are counted by `SpaceSaving`, one fetch at a time.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from ottla.client.admin import Admin
from ottla.client.consumer.offsets import PartitionBounds
from ottla.client.consumer.ranges import RangeReader, Span
from ottla.client.errors import ClientError
from ottla.client.explain.words import plural
from ottla.client.producer.hot_keys import SpaceSaving
from ottla.model import limits
from ottla.model.errors import ApiError

# What one partition can be expected to carry, with a consumer that does some work for each record.
PARTITION_BYTES_PER_S = 10_000_000
_SKEWED = 2.0  # the fullest or busiest partition against the average
_HOT_KEY_SHARE = 0.1
_SAMPLED_MIN = 100  # records: fewer say nothing about keys, or about skew


class HotPartition(NamedTuple):
    """One partition: its records, its bytes on disk (None: not told), and what was written per second."""

    partition: int
    records: int
    size_bytes: int | None
    records_per_s: float


class HotKey(NamedTuple):
    """A key, and how many of the sampled records had it at least."""

    key: bytes
    records: int
    share: float


class TopicHeat(NamedTuple):
    """A topic's partitions, watched for `window_s`, and the most frequent keys among its last records."""

    topic: str
    window_s: float
    partitions: tuple[HotPartition, ...]
    sampled: int
    without_key: int
    keys: tuple[HotKey, ...]

    @property
    def records_per_s(self) -> float:
        return sum(each.records_per_s for each in self.partitions)

    @property
    def bytes_per_s(self) -> float | None:
        """What is written to disk per second, if the brokers tell sizes."""
        records = sum(each.records for each in self.partitions)
        sizes = [each.size_bytes for each in self.partitions]
        known = [size for size in sizes if size is not None]
        return self.records_per_s * sum(known) / records if records and len(known) == len(sizes) else None


async def topic_heat(admin: Admin, topic: str, *, seconds: float, records: int, keys: int) -> TopicHeat:
    """Watch the topic for some seconds, and sample so many of its last records. Raises UNKNOWN_TOPIC_OR_PARTITION."""
    loop = asyncio.get_running_loop()
    before, begun_s = await admin.topics.bounds(topic), loop.time()
    await asyncio.sleep(seconds)
    bounds, window_s = await admin.topics.bounds(topic), loop.time() - begun_s
    sizes = await _sizes(admin, topic, bounds)
    sketch, sampled, without_key = await _tail(admin, topic, bounds, records)
    partitions = [
        HotPartition(
            index,
            found.end - found.start,
            sizes.get(index),
            max(found.end - before.get(index, found).end, 0) / window_s,
        )
        for index, found in sorted(bounds.items())
    ]
    found_keys = [HotKey(key, count, count / sampled) for key, count in sketch.top(keys) if count > 1]
    return TopicHeat(topic, window_s, tuple(partitions), sampled, without_key, tuple(found_keys))


async def _sizes(admin: Admin, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    sizes: dict[int, int] = {}
    with suppress(ApiError, ClientError):  # not everybody may ask
        for directories in (await admin.nodes.log_dirs_each(topics={topic: partitions})).found.values():
            for replica in (each for directory in directories for each in directory.replicas):
                if replica.topic == topic and not replica.is_future:
                    sizes[replica.partition] = max(replica.size_bytes, sizes.get(replica.partition, 0))
    return sizes


async def _tail(
    admin: Admin, topic: str, bounds: Mapping[int, PartitionBounds], records: int
) -> tuple[SpaceSaving, int, int]:
    """Count the keys of the last records: of each partition as many as its part of all of them."""
    total = sum(each.end - each.start for each in bounds.values())
    sketch, without_key, sampled = SpaceSaving(limits.SAMPLED_KEYS_MAX), 0, 0
    spans = [
        Span(topic, index, max(each.start, each.end - -(-records * (each.end - each.start) // total)), each.end)
        for index, each in bounds.items()
        if each.end > each.start
    ]
    if not spans or not records:
        return sketch, 0, 0
    async with RangeReader(admin.cluster, spans) as reader:
        async for record in reader:
            sampled += 1
            if record.key is None:
                without_key += 1
            else:
                sketch.add(bytes(record.key[: limits.SAMPLED_KEY_BYTES_MAX]))
    return sketch, sampled, without_key


def advise(heat: TopicHeat) -> list[str]:
    """Return what follows from the measurements: about keys, about skew, about the number of partitions."""
    hottest = heat.keys[0] if heat.keys and heat.sampled >= _SAMPLED_MIN else None
    is_hot = hottest is not None and hottest.share >= _HOT_KEY_SHARE
    return [
        *(_of_keys(heat, hottest) if hottest is not None and is_hot else ()),
        *_of_skew(heat, is_hot=is_hot),
        *_of_count(heat, hottest if is_hot else None),
    ]


def _of_keys(heat: TopicHeat, hottest: HotKey) -> Sequence[str]:
    useful = max(int(1 / hottest.share), 1)
    return [
        f"one key has {hottest.share:.0%} of the last records: all of them are in one partition, so more than "
        f"{plural(useful, 'partition')} cannot share the work evenly",
        "spread that key over partitions (SaltedKeys of our producer keeps its order for consumers), or choose "
        "another key",
    ]


def _of_skew(heat: TopicHeat, *, is_hot: bool) -> Sequence[str]:
    told: list[str] = []
    if sum(each.records for each in heat.partitions) < _SAMPLED_MIN:
        return told
    for what, values in (
        ("records per second", [each.records_per_s for each in heat.partitions]),
        ("records", [float(each.records) for each in heat.partitions]),
    ):
        average = sum(values) / len(values) if values else 0.0
        if average and max(values) >= _SKEWED * average:
            at = heat.partitions[values.index(max(values))].partition
            told.append(f"partition {at} has {max(values) / average:.1f} times the average of {what}")
    if told and not is_hot and heat.sampled and heat.without_key == heat.sampled:
        told.append("the records have no keys: the producers choose the partitions, look at their partitioner")
    elif told and not is_hot and heat.sampled >= _SAMPLED_MIN:
        told.append("no single key explains it: few keys, or producers that choose the partitions themselves")
    return told


def _of_count(heat: TopicHeat, hottest: HotKey | None) -> Sequence[str]:
    count, bytes_per_s = len(heat.partitions), heat.bytes_per_s
    if bytes_per_s is None or not heat.records_per_s:
        return ["nothing was written while the topic was watched, so nothing can be said about its partitions"] * (
            not heat.records_per_s
        )
    needed = max(-(-int(bytes_per_s) // PARTITION_BYTES_PER_S), 1)
    now = f"{bytes_per_s / 1e6:.2f} MB/s are written to {plural(count, 'partition')}"
    rule = f"at {PARTITION_BYTES_PER_S // 1_000_000} MB/s for each"
    if needed <= count:
        return [f"{now}; {rule}, {needed} would be enough: more partitions only help if consumers are slow"]
    if hottest is not None:
        return [f"{now}; {rule}, {needed} are needed, but the hot key has to be spread first"]
    return [f"{now}; {rule}, {needed} are needed: ottla topic add-partitions {heat.topic} {needed}"]
