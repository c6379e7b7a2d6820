"""RemoteLogs: the remote logs of all partitions that a broker has a replica of, and how far each of them is read.

Rules:
- One reader goes through the records of each partition of the metadata topic, from `read_from` on. A log that is added
  later, or whose snapshot is older, sends the reader back; the other logs pass over what they have already.
- The records of partitions that are not assigned here are passed over. What a record says is judged by its log: one
  that is refused is told and passed over, too, as in Kafka.
- A log answers for its partition only when it has what the metadata topic had when the broker became the leader of the
  partition, or later (`has_reached`): a new leader that knows less would copy again, or delete, what another one did.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ottla.tier.metadata.metadata_topic import metadata_partition
from ottla.tier.metadata.records import decode
from ottla.tier.metadata.remote_log import RemoteLog
from ottla.tier.metadata.segment import RemoteLogEvent, TopicIdPartition
from ottla.tier.metadata.snapshot import RemoteLogSnapshot
from ottla.tier.metadata.states import RemoteMetadataError


class RefusedRecord(NamedTuple):
    """A record of the metadata topic that was passed over, for the log."""

    offset: int
    problem: str


class _Followed:
    """A remote log, and the offset of the next record that it has not seen yet."""

    __slots__ = ("next_offset", "remote")

    def __init__(self, remote: RemoteLog, next_offset: int) -> None:
        self.remote = remote
        self.next_offset = next_offset


class RemoteLogs:
    def __init__(self, partition_count: int) -> None:
        """`partition_count` is that of the metadata topic, which never changes."""
        self._partition_count = partition_count
        self._by_metadata: dict[int, dict[TopicIdPartition, _Followed]] = {}

    def __getitem__(self, partition: TopicIdPartition) -> RemoteLog:
        """Return the log of a partition that is assigned; KeyError if it is not."""
        return self._followed(partition).remote

    def assign(self, partition: TopicIdPartition, snapshot: RemoteLogSnapshot | None = None) -> int:
        """Begin to follow a partition, from its snapshot on or from the beginning of the metadata topic.

        Return the partition of the metadata topic that has to be read, from its `read_from` on.
        """
        number = metadata_partition(partition, self._partition_count)
        followed = _Followed(RemoteLog(partition), 0)
        if snapshot is not None and snapshot.remote.partition == partition:
            followed = _Followed(*snapshot)
        self._by_metadata.setdefault(number, {}).setdefault(partition, followed)
        return number

    def unassign(self, partition: TopicIdPartition) -> None:
        """Forget a partition: its replica is gone, or all of its remote segments are deleted."""
        number = metadata_partition(partition, self._partition_count)
        logs = self._by_metadata.get(number, {})
        logs.pop(partition, None)
        if not logs:
            self._by_metadata.pop(number, None)

    def metadata_partitions(self) -> list[int]:
        """Return the partitions of the metadata topic that have to be read."""
        return sorted(self._by_metadata)

    def read_from(self, number: int) -> int | None:
        """Return the offset from which a partition of the metadata topic has to be read; None if nobody needs it."""
        logs = self._by_metadata.get(number)
        return min(followed.next_offset for followed in logs.values()) if logs else None

    def apply(
        self, number: int, records: Iterable[tuple[int, bytes | memoryview]], *, begin: int, end: int
    ) -> list[RefusedRecord]:
        """Apply the records, by their offsets, that were read from one partition of the metadata topic.

        They are all that there are from the offset `begin` to the one before `end`. Nothing may be missing before
        `begin`: it is at most `read_from`. Offsets without a value of a record are markers of transactions.
        """
        start = self.read_from(number)
        if start is None:
            return []
        assert begin <= start, f"records from {begin} on were read, but those from {start} on are missing"
        logs = self._by_metadata[number]
        refused = []
        for offset, value in records:
            try:
                self._apply(logs, offset, decode(value))
            except RemoteMetadataError as error:
                refused.append(RefusedRecord(offset, str(error)))
        for followed in logs.values():
            followed.next_offset = max(followed.next_offset, end)
        return refused

    def _apply(self, logs: dict[TopicIdPartition, _Followed], offset: int, event: RemoteLogEvent) -> None:
        followed = logs.get(event.partition)
        if followed is not None and offset >= followed.next_offset:
            followed.remote.apply(event)

    def has_reached(self, partition: TopicIdPartition, end_offset: int) -> bool:
        """Return whether a log has all records of the metadata topic below an offset."""
        return self._followed(partition).next_offset >= end_offset

    def snapshot(self, partition: TopicIdPartition) -> RemoteLogSnapshot:
        """Return what has to be written so that a restart goes on from here."""
        followed = self._followed(partition)
        return RemoteLogSnapshot(followed.remote, followed.next_offset)

    def _followed(self, partition: TopicIdPartition) -> _Followed:
        return self._by_metadata[metadata_partition(partition, self._partition_count)][partition]
