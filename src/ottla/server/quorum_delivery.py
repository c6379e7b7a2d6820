"""Delivery: committed records to the listener, each once and in order.

What this node appended itself as the leader is kept until it is committed, so that it need not be read and decoded
again; everything else comes from the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.cluster.entry import Entry
from ottla.cluster.journal import Item
from ottla.cluster.store import Store
from ottla.raft.port import Place

if TYPE_CHECKING:
    from ottla.server.quorum import QuorumListener


class Delivery:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.next_offset = 0  # what was delivered ends here
        self._snapshot: Place | None = None  # to be delivered before anything else
        self._own: deque[tuple[int, list[Item]]] = deque()  # groups with the offset behind them
        self.last_timestamp = 0  # of what was delivered

    def remember(self, entries: Sequence[Entry], start: int, end: int, epoch: int, now_ms: int) -> None:
        """What was just appended. A group that became a transaction has records around it: that is read back."""
        if end - start == len(entries):
            self._own.append((end, [Item(start + at, epoch, now_ms, entry) for at, entry in enumerate(entries)]))

    def forget(self) -> None:
        """Another leads: what was not committed may never be."""
        self._own.clear()

    def begin_anew(self, snapshot: Place) -> None:
        """The log begins with a snapshot, so the listener must."""
        self._own.clear()
        self._snapshot = snapshot

    def deliver(self, high_watermark: int, listener: QuorumListener) -> None:
        """Everything committed that was not delivered yet. StorageError: call it again later, nothing is left out."""
        if self._snapshot is not None:
            listener.load_snapshot(self._store.snapshot_items(), *self._snapshot)
            self.next_offset, self._snapshot = self._snapshot.offset, None
        while self.next_offset < high_watermark:
            items = self._take_own()
            if items is None:
                items = self._store.read_items(self.next_offset, min(high_watermark, self._own_start()))
            self.next_offset = items[-1].offset + 1
            self.last_timestamp = items[-1].timestamp
            listener.committed(items, self.next_offset)

    def _own_start(self) -> int:
        return self._own[0][1][0].offset if self._own else self._store.end_offset

    def _take_own(self) -> list[Item] | None:
        while self._own and self._own[0][0] <= self.next_offset:
            self._own.popleft()
        if self._own and self._own[0][1][0].offset == self.next_offset:
            return self._own.popleft()[1]
        return None
