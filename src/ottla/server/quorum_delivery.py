"""Delivery: committed records to the listener, each once and in order.

What this node appended itself as the leader is kept until it is committed, so that it need not be read and decoded
again; everything else comes from the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.cluster.entry import Entry
from ottla.cluster.store import Store
from ottla.raft.port import Place

if TYPE_CHECKING:
    from ottla.server.quorum import QuorumListener


class _Own(NamedTuple):
    """A group that this node appended, with its offset and the one behind it."""

    start: int
    end: int
    epoch: int
    timestamp: int
    entries: Sequence[Entry]


class Delivery:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.next_offset = 0  # what was delivered ends here
        self._snapshot: Place | None = None  # to be delivered before anything else
        self._own: deque[_Own] = deque()
        self.last_timestamp = 0  # of what was delivered

    def remember(self, entries: Sequence[Entry], start: int, end: int, epoch: int, now_ms: int) -> None:
        """What was just appended. A group that became a transaction has records around it: that is read back."""
        if end - start == len(entries):
            self._own.append(_Own(start, end, epoch, now_ms, entries))

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
            own = self._take_own()
            if own is not None:
                self.next_offset, self.last_timestamp = own.end, own.timestamp
                listener.committed(own.entries, own.epoch, own.end)
                continue
            items = self._store.read_items(self.next_offset, min(high_watermark, self._own_start()))
            self.next_offset, self.last_timestamp = items[-1].offset + 1, items[-1].timestamp
            entries = [item.content for item in items if isinstance(item.content, Entry)]
            listener.committed(entries, items[-1].epoch, self.next_offset)

    def _own_start(self) -> int:
        return self._own[0].start if self._own else self._store.end_offset

    def _take_own(self) -> _Own | None:
        while self._own and self._own[0].end <= self.next_offset:
            self._own.popleft()
        if self._own and self._own[0].start == self.next_offset:
            return self._own.popleft()
        return None
