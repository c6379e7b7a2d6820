"""RemoteSegmentMetadata: what is known about one segment in the remote tier.

Rules:
- Start and end offsets are inclusive, as in Kafka's records; an epoch's range within a segment ends where the next
  epoch of the segment begins.
- A segment has at least one leader epoch; the epochs ascend strictly.
- There may be very many segments, so the class has slots, and the partition is one object for all of its segments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from ottla.model.ids import LeaderEpoch, uuid_text
from ottla.tier.metadata.states import PartitionDeleteState, RemoteMetadataError, SegmentState

# Which leader epochs a range of offsets has, and where each of them begins in it.
EpochStarts = tuple[tuple[LeaderEpoch, int], ...]


class TopicIdPartition(NamedTuple):
    """A partition of a topic, told from partitions of earlier topics of that name by the topic's id."""

    topic: str
    topic_id: bytes
    partition: int

    def __str__(self) -> str:
        return f"{uuid_text(self.topic_id)}:{self.topic}-{self.partition}"


class RemoteSegmentId(NamedTuple):
    """One copy of one segment. Each copy gets a UUID of its own, also when a segment is copied again."""

    partition: TopicIdPartition
    uuid: bytes

    def __str__(self) -> str:
        return f"{self.partition}:{uuid_text(self.uuid)}"


class EpochRange(NamedTuple):
    """The offsets of one leader epoch within a segment, both inclusive; none if the end is below the start."""

    epoch: LeaderEpoch
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class RemoteSegmentMetadata:
    partition: TopicIdPartition
    uuid: bytes
    start_offset: int
    end_offset: int
    max_timestamp_ms: int
    broker_id: int  # that wrote the last record about the segment
    event_timestamp_ms: int  # when it did
    size_bytes: int
    leader_epochs: EpochStarts
    state: SegmentState = SegmentState.COPY_SEGMENT_STARTED
    custom_metadata: bytes | None = None  # what the store wants to be given again with the segment
    txn_index_empty: bool = False  # no transaction that was aborted has records in the segment

    def __post_init__(self) -> None:
        if not 0 <= self.start_offset <= self.end_offset:
            raise RemoteMetadataError(f"a remote segment has offsets from {self.start_offset} to {self.end_offset}")
        epochs = self.leader_epochs
        if not epochs or (len(epochs) > 1 and any(one[0] >= next[0] for one, next in pairwise(epochs))):
            raise RemoteMetadataError(f"a remote segment has the leader epochs {epochs}")

    @property
    def id(self) -> RemoteSegmentId:
        return RemoteSegmentId(self.partition, self.uuid)

    @property
    def last_epoch(self) -> LeaderEpoch:
        return self.leader_epochs[-1][0]

    def epoch_ranges(self) -> Iterator[EpochRange]:
        """Return the range of each leader epoch, also of those without offsets."""
        epochs = self.leader_epochs
        for (epoch, start), (_, next_start) in pairwise(epochs):
            yield EpochRange(epoch, start, next_start - 1)
        yield EpochRange(*epochs[-1], self.end_offset)

    def updated(self, update: SegmentUpdate) -> RemoteSegmentMetadata:
        """Return the segment after an update, which replaces the custom metadata, too, as in Kafka."""
        return replace(
            self,
            broker_id=update.broker_id,
            event_timestamp_ms=update.event_timestamp_ms,
            custom_metadata=update.custom_metadata,
            state=update.state,
        )


class SegmentUpdate(NamedTuple):
    """A segment got another state."""

    partition: TopicIdPartition
    uuid: bytes
    broker_id: int
    event_timestamp_ms: int
    state: SegmentState
    custom_metadata: bytes | None = None


class PartitionDeletion(NamedTuple):
    """The deletion of a partition's remote segments came to another state."""

    partition: TopicIdPartition
    broker_id: int
    event_timestamp_ms: int
    state: PartitionDeleteState


# What the metadata topic tells: a copy begins, a segment or the deletion of a partition gets another state.
RemoteLogEvent = RemoteSegmentMetadata | SegmentUpdate | PartitionDeletion
