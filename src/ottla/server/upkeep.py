"""Upkeep: what a node does by the clock — retention, checkpoints, flushes, compaction, idle connections.

Every job is short, or does a bounded part of its work at each turn; what blocks goes to the worker threads. A job that
fails is logged and comes back at its next turn: upkeep never takes the node down.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.log.disk import StorageError
from ottla.model import limits
from ottla.replica.partition import Partition
from ottla.server.cleaning import Cleaner

if TYPE_CHECKING:
    from ottla.server.node import Node

log = logging.getLogger(__name__)

TIDY_MS = 1_000
OPENING_MS = 50
REMOVING_MS = 1_000
FLUSH_CHECK_MS = 500
METADATA_MS = 10_000


class Upkeep:
    def __init__(self, loop: Any, node: Node) -> None:
        self._loop = loop
        self._node = node
        self._timers: dict[str, Any] = {}
        self._stopped = False
        self._unflushed_since_ms: dict[Partition, int] = {}
        self._cleaner = Cleaner(loop, node)
        settings = node.configs.broker
        self._every("connections", TIDY_MS, self._tidy_connections)
        self._every("opening", OPENING_MS, self._open_some)
        self._every("removing", REMOVING_MS, self._remove_deleted)
        self._every("flush", FLUSH_CHECK_MS, self._flush)
        self._every("retention", settings.get("log.retention.check.interval.ms"), self._retain)
        self._every("checkpoints", settings.get("log.flush.offset.checkpoint.interval.ms"), self._checkpoint)
        self._every("metadata", METADATA_MS, lambda: node.metadata.upkeep(node.ports.now_ms()))
        self._every("producers", settings.get("producer.id.expiration.check.interval.ms"), self._expire_producers)

    def _every(self, name: str, interval_ms: float, job: Callable[[], None]) -> None:
        """Runs `job` again and again, `interval_ms` after it ended."""

        def turn() -> None:
            if self._stopped:
                return
            try:
                job()
            except Exception:
                log.exception("upkeep: %s failed", name)
            self._timers[name] = self._loop.call_later(interval_ms / 1000, turn)

        self._timers[name] = self._loop.call_later(interval_ms / 1000, turn)

    async def stop(self) -> None:
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        await self._cleaner.stop()

    def _tidy_connections(self) -> None:
        self._node.door.tidy(self._loop.time())

    def _open_some(self) -> None:
        self._node.partitions.open_some(limits.PARTITIONS_OPENED_PER_TURN)

    def _remove_deleted(self) -> None:
        now_ms = self._node.ports.now_ms()
        self._node.partitions.remove_deleted(now_ms)
        for partition in self._node.partitions.opened():
            partition.log.remove_deleted(now_ms)

    def _flush(self) -> None:
        """`flush.ms`: no record waits longer than that to be synced."""
        now_ms = self._node.ports.now_ms()
        for partition in self._node.partitions.opened():
            flush_ms = partition.log.config.flush_ms
            if flush_ms == limits.INT64_MAX or not partition.log.unflushed:
                self._unflushed_since_ms.pop(partition, None)
                continue
            since_ms = self._unflushed_since_ms.setdefault(partition, now_ms)
            if now_ms - since_ms + FLUSH_CHECK_MS >= flush_ms:
                del self._unflushed_since_ms[partition]
                self._node.services.syncer.request(partition)

    def _retain(self) -> None:
        now_ms = self._node.ports.now_ms()
        for partition in self._node.partitions.opened():
            try:
                if partition.log.delete_old_segments(now_ms, partition.high_watermark):
                    self._node.services.waiters.notify(partition)
            except StorageError as error:
                self._node.partitions.storage_failed(partition, error)

    def _checkpoint(self) -> None:
        self._node.partitions.checkpoint()

    def _expire_producers(self) -> None:
        now_ms = self._node.ports.now_ms()
        for partition in self._node.partitions.opened():
            partition.log.producers.expire(now_ms, partition.log.config.producer_expiration_ms)
