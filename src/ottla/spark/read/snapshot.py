"""A snapshot: the state of all partitions of a read at one moment; and the plan of a batch from it. Pure functions.

Rules:
- Topic ids, first and end offsets and leader epochs are of the same moment (`Lookup.snapshot` ensures that). Where a
  batch begins and ends, and which records are lost before it, is decided only from one snapshot and the mark of the
  last batch (`spark.read.marks`). So a plan made again from a checkpoint is the same plan.
- Partitions and topics that are new to the query are read from their beginning; so is a topic that was deleted and
  created again, because it is another topic with the same name.
- The log still has the records that were read if the leader epoch of the mark reaches as far as the mark (KIP-320). If
  that epoch ends earlier, the log was truncated there and other records were written: reading continues at that end.
- Every data loss is reported once, by the first batch that notices it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.model.ids import NO_ID, NO_LEADER_EPOCH, TopicPartition
from ottla.spark.option_values import OptionError
from ottla.spark.read.loss import DataLoss, Reason
from ottla.spark.read.marks import ReachedOffsets
from ottla.spark.read.offsets import EARLIEST_OFFSET, LATEST_OFFSET, ByTime, Everywhere, Limit, Offsets, Specific
from ottla.spark.read.plan import TaskRange


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of the chosen partitions, in order. First offsets are only in it where they are needed."""

    ends: Offsets
    topic_ids: Mapping[str, bytes] = field(default_factory=dict)
    epochs: Offsets = field(default_factory=dict)
    beginnings: Offsets = field(default_factory=dict)
    # The end offset of the mark's leader epoch, in partitions whose leader epoch has changed since.
    epoch_ends: Offsets = field(default_factory=dict)
    at_times: Mapping[tuple[TopicPartition, int], int | None] = field(default_factory=dict)  # None: no record so late

    def mark(self, offsets: Offsets, begun: Offsets | None = None) -> ReachedOffsets:
        """The mark of these offsets. An offset beyond the end of its log gets no leader epoch."""
        epochs = {
            each: epoch for each, epoch in self.epochs.items() if each in offsets and offsets[each] <= self.ends[each]
        }
        return ReachedOffsets(
            offsets, {each.topic: self.topic_ids.get(each.topic, NO_ID) for each in offsets}, epochs, begun or {}
        )


# --- from one mark to the next ----------------------------------------------------------------------------------------


def is_new(partition: TopicPartition, reached: ReachedOffsets, topic_ids: Mapping[str, bytes]) -> bool:
    """Whether no record of this partition was read yet; at most records of another topic with the same name were."""
    topic = partition.topic
    return partition not in reached.offsets or reached.is_of_another(topic, topic_ids.get(topic, NO_ID))


def begins_anew(reached: ReachedOffsets, snapshot: Snapshot) -> Offsets:
    """Where the next batch begins in the partitions that do not continue at the mark."""
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
    """Where the next batch begins, for all partitions."""
    anew = begins_anew(reached, snapshot)
    return {each: anew[each] if each in anew else reached.offsets[each] for each in snapshot.ends}


def next_mark(reached: ReachedOffsets, snapshot: Snapshot, ends: Offsets) -> ReachedOffsets:
    """The mark of a batch with these ends. It is the last mark if there is no record to read and no topic id to note: a
    new leader epoch alone does not make a batch.
    """
    anew = begins_anew(reached, snapshot)
    told = {each: offset for each, offset in anew.items() if offset or not is_new(each, reached, snapshot.topic_ids)}
    mark = snapshot.mark(ends, told)
    known = {topic: topic_id for topic, topic_id in mark.topic_ids.items() if topic_id != NO_ID}
    is_same = not told and mark.offsets == reached.offsets and known == dict(reached.topic_ids)
    return reached if is_same else mark


def doubts(reached: ReachedOffsets, snapshot: Snapshot) -> list[TopicPartition]:
    """Partitions that seem to have lost records. A broker that has just started, or has just become the leader, may
    answer with old values, so the caller asks again.
    """
    return [
        each
        for each, offset in reached.offsets.items()
        if each not in snapshot.ends or is_new(each, reached, snapshot.topic_ids) or snapshot.ends[each] < offset
    ]


class Plan(NamedTuple):
    """The ranges that a batch reads, and the losses that it reports."""

    ranges: list[TaskRange]
    losses: list[DataLoss]


def planned(reached: ReachedOffsets, mark: ReachedOffsets) -> Plan:
    """The batch between two marks. It is empty if they are the same: Spark passes equal marks to tell the reader where
    a restarted query is.
    """
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
    """Losses by topics that were created again, and by partitions that do not exist any more."""
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


# --- offsets from options ---------------------------------------------------------------------------------------------


def times_of(limit: Limit, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The times that have to be looked up for an option."""
    if not isinstance(limit, ByTime):
        return {}
    return limit.times if isinstance(limit.times, dict) else dict.fromkeys(partitions, limit.times)


def check_partitions(limit: Limit, partitions: Mapping[TopicPartition, object], side: str) -> None:
    """Raise OptionError if an option that names partitions does not name all of them. `side` is "starting" or
    "ending".
    """
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
    """An option as offsets of all partitions. If a partition has no record at or after the given time, the offset is
    the partition's end, or OptionError is raised, as `nothing_so_late` says.
    """
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
