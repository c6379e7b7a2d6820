"""CommitDelivery: committed records to the listener, each once and in order, very many of them in slices.

What this node appended itself as the leader is kept until it is committed, so that it need not be read and decoded
again; everything else comes from the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from ottla.cluster.entry import MetadataEntry
from ottla.cluster.journal import Item
from ottla.cluster.store import MetadataStore
from ottla.model.limits import METADATA_RECORDS_PER_SLICE
from ottla.raft.journal import OffsetAndEpoch


class QuorumListener(Protocol):
    """What a state machine over the journal offers the quorum: the host of the cluster's state."""

    def taking(self, entries: Sequence[MetadataEntry], epoch: int, high_watermark: int) -> Iterator[None]:
        """Applies the next committed records, in slices. The last of them is of `epoch`; `high_watermark` is the offset
        behind them."""
        ...

    def loading_snapshot(self, items: Iterable[Item], offset: int, epoch: int) -> Iterator[None]:
        """Begins anew with the state of everything below `offset`, in slices; the items can be read once."""
        ...

    def lead(self, epoch: int) -> None:
        """This node leads; everything before its epoch was delivered."""

    def follow(self, leader_id: int, epoch: int) -> None:
        """Another node leads, or nobody (-1): what was appended and not committed may be lost."""


class _Group(NamedTuple):
    """Committed records from `start` on, the last of them of `epoch`; `end` is the offset behind them."""

    start: int
    end: int
    epoch: int
    timestamp: int
    entries: Sequence[MetadataEntry]


class CommitDelivery:
    def __init__(self, store: MetadataStore, listener: QuorumListener) -> None:
        self._store = store
        self._listener = listener
        self.next_offset = 0  # what was delivered ends here
        self.committed_offset = 0  # what there is to deliver ends here
        self._snapshot: OffsetAndEpoch | None = None  # to be delivered before anything else
        self._own: deque[_Group] = deque()
        self.last_timestamp = 0  # of what was delivered

    def remember(self, entries: Sequence[MetadataEntry], start: int, end: int, epoch: int, now_ms: int) -> None:
        """What was just appended. A group that became a transaction has records around it: that is read back."""
        if end - start == len(entries):
            self._own.append(_Group(start, end, epoch, now_ms, entries))

    def forget(self) -> None:
        """Another leads: what was not committed may never be."""
        self._own.clear()

    def begin_anew(self, snapshot: OffsetAndEpoch) -> None:
        """The log begins with a snapshot, so the listener must."""
        self._own.clear()
        self._snapshot = snapshot

    def steps(self) -> Iterator[None]:
        """Delivers everything committed that was not delivered yet, also what is committed meanwhile.

        StorageError: begin again later, nothing is left out.
        """
        records = 0  # in this slice
        while True:
            if self._snapshot is not None:
                snapshot = self._snapshot
                yield from self._listener.loading_snapshot(self._store.snapshot_items(), *snapshot)
                self.next_offset = snapshot.offset
                if self._snapshot is snapshot:  # or another one has come meanwhile
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
        """The next records of the log."""
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
