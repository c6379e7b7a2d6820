"""CommitDelivery: hands committed records to the listener, each once and in order, many of them in slices.

Records that this node appended itself as the leader are kept until they are committed, so that they need not be read
and decoded again; all others are read from the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from ottla.cluster.entry import MetadataEntry
from ottla.cluster.journal import Item
from ottla.cluster.store import MetadataStore
from ottla.model.ids import LeaderEpoch
from ottla.model.limits import METADATA_RECORDS_PER_SLICE
from ottla.raft.journal import OffsetAndEpoch


class QuorumListener(Protocol):
    """The interface of a state machine over the journal, as the quorum uses it: the host of the cluster's state."""

    def taking(self, entries: Sequence[MetadataEntry], epoch: LeaderEpoch, high_watermark: int) -> Iterator[None]:
        """Apply the next committed records, in slices. `epoch` is that of the last record, `high_watermark` the offset
        after it.
        """
        ...

    def loading_snapshot(self, items: Iterable[Item], offset: int, epoch: LeaderEpoch) -> Iterator[None]:
        """Replace the state by that of a snapshot of everything below `offset`, in slices; the items can be
        read once.
        """
        ...

    def lead(self, epoch: LeaderEpoch) -> None:
        """Report that this node leads; all committed records before its epoch were delivered."""

    def follow(self, leader_id: int, epoch: LeaderEpoch) -> None:
        """Report that another node leads, or none (-1): records that are appended and not committed may be lost."""


class _Group(NamedTuple):
    """Committed records from `start` on; `epoch` is that of the last one, `end` the offset after it."""

    start: int
    end: int
    epoch: LeaderEpoch
    timestamp: int
    entries: Sequence[MetadataEntry]


class CommitDelivery:
    def __init__(self, store: MetadataStore, listener: QuorumListener) -> None:
        self._store = store
        self._listener = listener
        self.next_offset = 0  # everything below is delivered
        self.committed_offset = 0  # everything below is committed
        self._snapshot: OffsetAndEpoch | None = None  # a snapshot to be delivered before anything else
        self._own: deque[_Group] = deque()
        self.last_timestamp = 0  # the timestamp of the last delivered records

    def remember(self, entries: Sequence[MetadataEntry], start: int, end: int, epoch: LeaderEpoch, now_ms: int) -> None:
        """Keep records that were just appended. A group that was written as a transaction is read back, because control
        records surround it.
        """
        if end - start == len(entries):
            self._own.append(_Group(start, end, epoch, now_ms, entries))

    def forget(self) -> None:
        """Drop uncommitted records, because another node leads: they may never be committed."""
        self._own.clear()

    def begin_anew(self, snapshot: OffsetAndEpoch) -> None:
        """Deliver this snapshot before the next records, because the log now begins with it."""
        self._own.clear()
        self._snapshot = snapshot

    def steps(self) -> Iterator[None]:
        """Deliver all committed records that were not delivered yet, including those that are committed meanwhile.

        After a StorageError the caller may start again later: no record is left out.
        """
        records = 0  # the number of records in this slice
        while True:
            if self._snapshot is not None:
                snapshot = self._snapshot
                yield from self._listener.loading_snapshot(self._store.snapshot_items(), *snapshot)
                self.next_offset = snapshot.offset
                if self._snapshot is snapshot:  # unless another snapshot has come meanwhile
                    self._snapshot = None
                continue
            if self.next_offset >= self.committed_offset:
                return
            group = self._take_own() or (yield from self._read())
            self.last_timestamp = group.timestamp
            yield from self._listener.taking(group.entries, group.epoch, group.end)
            if self._snapshot is None:
                self.next_offset = group.end
            records += len(group.entries)
            if records >= METADATA_RECORDS_PER_SLICE:
                records = 0
                yield

    def _read(self) -> Generator[None, None, _Group]:
        """Read the next records of the log."""
        start = self.next_offset
        end = min(self.committed_offset, self._own[0].start if self._own else self._store.end_offset)
        entries: list[MetadataEntry] = []
        for number, item in enumerate(self._store.read_items(start, end), start=1):
            if isinstance(item.content, MetadataEntry):
                entries.append(item.content)
            if number % METADATA_RECORDS_PER_SLICE == 0:
                yield
        return _Group(start, item.offset + 1, item.epoch, item.timestamp, entries)

    def _take_own(self) -> _Group | None:
        while self._own and self._own[0].end <= self.next_offset:
            self._own.popleft()
        if self._own and self._own[0].start == self.next_offset:
            return self._own.popleft()
        return None
