"""SoleQuorum: the quorum of a node that is its only voter, until `server/quorum.py` is there for all."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.client.connection import Address
from ottla.cluster.entry import Entry
from ottla.cluster.journal import Item
from ottla.cluster.store import Store

if TYPE_CHECKING:
    from ottla.server.ports import Ports


class SoleQuorum:
    listener: Any

    def __init__(self, node_id: int, store: Store, ports: Ports) -> None:
        self.leader_id = -1
        self.store = store
        self._node_id = node_id
        self._now_ms = ports.now_ms
        self._found: list[Any] = []
        store.replay(self._found.append, ports.now_ms())

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self.store.lead(self._node_id, self._now_ms())
        self.store.sync(self.store.end_offset, self._now_ms())
        self.leader_id = self._node_id
        items = [Item(0, self.epoch, 0, Entry(record)) for record in self._found]
        self._found.clear()
        self.listener.committed(items, self.end_offset)
        self.listener.lead(self.epoch)

    async def stop(self) -> None:
        return

    @property
    def epoch(self) -> int:
        return self.store.epoch

    @property
    def end_offset(self) -> int:
        return self.store.end_offset

    high_watermark = end_offset
    is_leader = is_voter = is_alone = True

    @property
    def snapshot_due(self) -> bool:
        return self.store.snapshot_due

    @property
    def snapshot_offset(self) -> int:
        return self.end_offset - 1 if self.store.changed else self.end_offset

    def leader_address(self) -> Address | None:
        return None

    def append(self, entries: Sequence[Entry]) -> int:
        start = self.end_offset
        end = self.store.append(entries, self._now_ms())
        items = [Item(start + place, self.epoch, 0, entry) for place, entry in enumerate(entries)]
        self.listener.committed(items, end)
        return end

    def resign(self) -> None:
        self.listener.lead(self.epoch)

    def write_snapshot(self, entries: Iterable[Entry], offset: int, epoch: int) -> None:
        self.store.write_snapshot(entries, self._now_ms())
