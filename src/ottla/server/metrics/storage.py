"""What the node does with its disks and its memory. Rooms count it; only the room on disks is asked for here."""

from __future__ import annotations

import asyncio

from ottla.model.config import Config
from ottla.observe.metrics.catalogue import storage as told
from ottla.observe.metrics.exposition import Exposition
from ottla.server.loop.runtime import Runtime
from ottla.server.loop.slices import Steps
from ottla.server.metrics.named import OTHER, NamedTotals
from ottla.server.metrics.sources import MetricSources
from ottla.server.metrics.topics import topic_names
from ottla.server.storage.directories import UNKNOWN_BYTES, DataDirectory, disk_room


class StorageCollector:
    def __init__(self, of: MetricSources) -> None:
        self._of = of
        self._disks = [_DiskRoom(of.runtime, each) for each in of.storage.directories]
        self._refusals = ContractRefusals(of, of.configs.broker)

    def turn(self) -> None:
        """Begin another interval of the quantiles."""
        self._of.storage.syncer.times.turn()

    def collect(self, exposition: Exposition) -> Steps:
        storage, memory = self._of.storage, self._of.connections.memory
        times = storage.syncer.times
        exposition.summarize(told.FLUSH, times.recent(), times.all.count, times.all.sum / 1e3, scale=1e-3)
        upkeep, cleaned = storage.upkeep, storage.upkeep.cleaner_counts
        for metric, value in (
            (told.RETAINED_SEGMENTS, upkeep.deleted_segments),
            (told.RETAINED_BYTES, upkeep.deleted_bytes),
            (told.CLEANED, cleaned.runs),
            (told.CLEANED_BYTES, cleaned.read_bytes),
            (told.COLD_READS, storage.cold.count),
            (told.SLOW_WRITES, storage.writer.count),
            (told.MEMORY, memory.used_bytes),
            (told.MEMORY_MAX, memory.limit_bytes),
            (told.MEMORY_WAITING, len(memory.waiting)),
            (told.WAITING, storage.waiters.count),
        ):
            exposition.add(metric, value)
        exposition.add(told.DIRTY, cleaned.max_dirty_ratio)
        if cleaned.ended_ms is not None:
            exposition.add(told.CLEANED_AGE, (self._of.runtime.steady_ms() - cleaned.ended_ms) / 1000)
        if self._of.fetches is not None:
            sessions = self._of.fetches.sessions
            exposition.add(told.SESSIONS, len(sessions))
            exposition.add(told.EVICTED, sessions.evicted)
        letters = self._of.dead_letters()
        exposition.add(told.LETTERS, 0 if letters is None else letters.count)
        for disk in self._disks:
            disk.tell(exposition)
        yield
        yield from self._refusals.collect(exposition)


class ContractRefusals:
    def __init__(self, of: MetricSources, settings: Config) -> None:
        self._of = of
        self._totals = NamedTotals(topic_names(settings), 1, (0,))
        self._former: dict[str, int] = {}

    def collect(self, exposition: Exposition) -> Steps:
        now = dict(self._of.contracts.refusals)
        yield from self._totals.add({topic: [count - self._former.get(topic, 0)] for topic, count in now.items()})
        self._former = now
        for topic, (count,) in self._totals.named.items():
            exposition.add(told.REFUSED, count, topic)
        if self._totals.other[0]:
            exposition.add(told.REFUSED, self._totals.other[0], OTHER)


class _DiskRoom:
    """The room on one disk, as a worker found it after the last scrape: a disk that hangs delays no scrape."""

    def __init__(self, runtime: Runtime, directory: DataDirectory) -> None:
        self._runtime = runtime
        self._path = directory.path
        self._room = UNKNOWN_BYTES, UNKNOWN_BYTES
        self._asking: asyncio.Future[None] | None = None

    def tell(self, exposition: Exposition) -> None:
        size_bytes, free_bytes = self._room
        if size_bytes != UNKNOWN_BYTES:
            exposition.add(told.DISK_SIZE, size_bytes, self._path)
            exposition.add(told.DISK_FREE, free_bytes, self._path)
        if self._asking is None:
            self._asking = self._runtime.slices.begin(self._ask())
            self._asking.add_done_callback(self._asked)

    async def _ask(self) -> None:
        self._room = await self._runtime.in_worker(disk_room, self._path)

    def _asked(self, _: asyncio.Future[None]) -> None:
        self._asking = None
