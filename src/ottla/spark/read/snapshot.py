"""A snapshot: all partitions of a read as they were at one moment; and what follows from it. Pure functions.

Rules:
- Topic ids, beginnings, ends and leader epochs belong together (`Lookup.snapshot` sees to it). Where a batch begins
  and ends, and what is lost before it, is decided from one snapshot and the mark that the last batch left
  (`spark.marks`), and nothing else. So a plan made again from a checkpoint is the same plan.
- What is new to the query is read from its beginning: partitions, topics, and a topic that was deleted and created
  anew, which is another topic with the same name.
- A log is only what was read before if the leader epoch of the mark still reaches as far as the mark (KIP-320). If it
  ends earlier, others have been written in place of what was read after it: these are read from there on.
- Whatever looks like a loss is named, once, by the batch that meets it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.model.ids import NO_ID, TopicPartition
from ottla.records.batch import NO_LEADER_EPOCH
from ottla.spark.options import OptionError
from ottla.spark.read.loss import DataLoss, Reason
from ottla.spark.read.marks import ReachedOffsets
from ottla.spark.read.offsets import EARLIEST_OFFSET, LATEST_OFFSET, ByTime, Everywhere, Limit, Offsets, Specific
from ottla.spark.read.plan import TaskRange


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The chosen partitions, in order. Beginnings are known where somebody needs them."""

    ends: Offsets
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    epochs: Offsets = field(default_factory=dict)
    beginnings: Offsets = field(default_factory=dict)
    # Where the leader epoch of the mark ends, in partitions that have another leader since.
    epoch_ends: Offsets = field(default_factory=dict)
    at_times: Mapping[tuple[TopicPartition, int], int | None] = field(default_factory=dict)  # None: nothing is so late

    def mark(self, offsets: Offsets, begun: Offsets | None = None) -> ReachedOffsets:
        """These offsets of this snapshot. An offset that is not there yet was seen under no leader."""
        epochs = {
            each: epoch for each, epoch in self.epochs.items() if each in offsets and offsets[each] <= self.ends[each]
        }
        return ReachedOffsets(
            offsets, {each.topic: self.topic_ids.get(each.topic, NO_ID) for each in offsets}, epochs, begun or {}
        )


# --- from one mark to the next ----------------------------------------------------------------------------------------


def is_new(partition: TopicPartition, reached: ReachedOffsets, topic_ids: Mapping[str, bytes]) -> bool:
    """Whether nothing of it was read yet, only perhaps something of the same name."""
    topic = partition.topic
    return partition not in reached.offsets or reached.is_of_another(topic, topic_ids.get(topic, NO_ID))


def begins_anew(reached: ReachedOffsets, snapshot: Snapshot) -> Offsets:
    """Where the next batch begins in partitions that do not go on at the mark."""
    found: Offsets = {}
    for partition in snapshot.ends:
        if is_new(partition, reached, snapshot.topic_ids):
            found[partition] = snapshot.beginnings.get(partition, 0)
        elif partition in snapshot.epoch_ends and reached.epochs.get(partition) != snapshot.epochs.get(partition):
            diverged_at = snapshot.epoch_ends[partition]
            if diverged_at < reached.offsets[partition]:
                found[partition] = diverged_at
    return found


def begins(reached: ReachedOffsets, snapshot: Snapshot) -> Offsets:
    """Where the next batch begins, in all partitions."""
    anew = begins_anew(reached, snapshot)
    return {each: anew[each] if each in anew else reached.offsets[each] for each in snapshot.ends}


def next_mark(reached: ReachedOffsets, snapshot: Snapshot, ends: Offsets) -> ReachedOffsets:
    """The mark of a batch that ends there. It is the last one, if there is nothing to read and nothing to learn: a
    leader epoch alone is worth no batch."""
    anew = begins_anew(reached, snapshot)
    told = {each: offset for each, offset in anew.items() if offset or not is_new(each, reached, snapshot.topic_ids)}
    mark = snapshot.mark(ends, told)
    known = {topic: topic_id for topic, topic_id in mark.topic_ids.items() if topic_id != NO_ID}
    is_same = not told and mark.offsets == reached.offsets and known == dict(reached.topic_ids)
    return reached if is_same else mark


def doubts(reached: ReachedOffsets, snapshot: Snapshot) -> list[TopicPartition]:
    """What seems to be lost. A broker that has just come up, or has just become the leader, may know no better: it is
    to be asked again."""
    return [
        each
        for each, offset in reached.offsets.items()
        if each not in snapshot.ends or is_new(each, reached, snapshot.topic_ids) or snapshot.ends[each] < offset
    ]


class Plan(NamedTuple):
    """What a batch reads, and what it cannot read any more."""

    ranges: list[TaskRange]
    losses: list[DataLoss]


def planned(reached: ReachedOffsets, mark: ReachedOffsets) -> Plan:
    """The batch between two marks; none if they are the same, which is how Spark tells where a restarted query is."""
    if mark == reached:
        return Plan([], [])
    ranges: list[TaskRange] = []
    losses = _gone(reached, mark)
    for partition, end in mark.offsets.items():
        topic = partition.topic
        is_fresh = is_new(partition, reached, mark.topic_ids)
        if is_fresh:
            start = mark.begun.get(partition, 0)
            if start > 0 and not reached.is_of_another(topic, mark.topic_id(topic)):
                what = f"{partition} begins at offset {start}, not at 0"
                losses.append(DataLoss(partition, Reason.LATE_PARTITION, what))
        else:
            start, was = mark.begun.get(partition, reached.offsets[partition]), reached.offsets[partition]
            if start != was:
                what = f"{partition} was read up to {was} and has been cut at {start} since"
                losses.append(DataLoss(partition, Reason.TRUNCATED, what))
        if end < start and not is_fresh:
            what = f"{partition} was read up to {start} and now ends at {end}"
            losses.append(DataLoss(partition, Reason.AHEAD, what))
        epoch = mark.epochs.get(partition, NO_LEADER_EPOCH)
        ranges.append(TaskRange(partition, start, end, topic_id=mark.topic_id(topic), leader_epoch=epoch))
    return Plan([each for each in ranges if each.size > 0], losses)


def _gone(reached: ReachedOffsets, mark: ReachedOffsets) -> list[DataLoss]:
    """Topics made anew, and partitions that do not exist any more."""
    topics = dict.fromkeys(each.topic for each in mark.offsets)
    losses = [
        DataLoss(None, Reason.RECREATED, f"what was not read of topic {topic!r} is gone")
        for topic in topics
        if reached.is_of_another(topic, mark.topic_id(topic))
    ]
    for partition, offset in reached.offsets.items():
        if partition not in mark.offsets:
            reason = Reason.PARTITION_GONE if partition.topic in topics else Reason.TOPIC_DELETED
            losses.append(DataLoss(partition, reason, f"{partition} is gone; it was read up to {offset}"))
    return losses


# --- what options name ------------------------------------------------------------------------------------------------


def times_of(limit: Limit, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The times that have to be looked up for an option."""
    if not isinstance(limit, ByTime):
        return {}
    return limit.times if isinstance(limit.times, dict) else dict.fromkeys(partitions, limit.times)


def check_partitions(limit: Limit, partitions: Mapping[TopicPartition, object], side: str) -> None:
    """OptionError unless an option that names partitions names all of them. `side` is "starting" or "ending"."""
    named = limit.offsets if isinstance(limit, Specific) else limit.times if isinstance(limit, ByTime) else None
    if not isinstance(named, dict) or named.keys() == partitions.keys():
        return
    absent = [str(each) for each in sorted(partitions) if each not in named]
    extra = [str(each) for each in sorted(named) if each not in partitions]
    wrong = [f"not named: {', '.join(absent)}"] if absent else []
    wrong += [f"not assigned: {', '.join(extra)}"] if extra else []
    raise OptionError(
        f"{side} offsets must name all partitions that are read (-1 is latest, -2 earliest); {'; '.join(wrong)}"
    )


def resolved(limit: Limit, snapshot: Snapshot, *, nothing_so_late: str = "latest") -> Offsets:
    """An option's places as offsets of all partitions. Where nothing is as late as a time says, it is the end, or an
    OptionError."""
    if isinstance(limit, ByTime):
        return _resolved_times(times_of(limit, snapshot.ends), snapshot, nothing_so_late)
    if isinstance(limit, Everywhere):
        return dict(snapshot.beginnings if limit.offset == EARLIEST_OFFSET else snapshot.ends)
    named = {EARLIEST_OFFSET: snapshot.beginnings, LATEST_OFFSET: snapshot.ends}
    return {each: named[offset][each] if offset in named else offset for each, offset in limit.offsets.items()}


def _resolved_times(times: Mapping[TopicPartition, int], snapshot: Snapshot, nothing_so_late: str) -> Offsets:
    found: Offsets = {}
    for partition, time_ms in times.items():
        offset = snapshot.at_times[partition, time_ms]
        if offset is None and nothing_so_late == "error":
            raise OptionError(
                f"nothing in {partition} is as late as timestamp {time_ms}; "
                "set startingOffsetsByTimestampStrategy to latest to begin at its end"
            )
        found[partition] = snapshot.ends[partition] if offset is None else offset
    return found
