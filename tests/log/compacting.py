"""A log under compaction beside a plain model of it: what was written, and what readers of both kinds must find.

The model keeps every record ever appended. `check` then reads the log as clients do, batch by batch, and holds it
against the model:

- nothing invented or changed: every record in the log was appended so, at that offset;
- a reader of committed data, with nothing but the batches and the list of aborted transactions, ends with the latest
  value of each key;
- above what was cleaned nothing is missing; below it no record is left that a later one below it supersedes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.log.logs import aborted

from ottla.log.compaction.compact import Compaction
from ottla.log.compaction.offset_map import OffsetMap
from ottla.log.compaction.schedule import cleanable
from ottla.log.config import LogConfig
from ottla.log.log import Log, Origin
from ottla.records.batch import BatchHeader, check, headers
from ottla.records.build import build_batch
from ottla.records.compress import Codec
from ottla.records.control import ControlType, EndTxnMarker, control_type, end_txn_batch
from ottla.records.record import NO_OFFSET, Record, records
from ottla.sim.world.disk import SimDisk

NAME = "topic-0"
CONFIG = LogConfig(
    segment_bytes=600,
    index_interval_bytes=100,
    compact=True,
    delete=False,
    delete_retention_ms=1_000,
    file_delete_delay_ms=0,
)


def compact_now(compaction: Compaction, now_ms: int) -> bool:
    """Run a whole round in this thread, without a throttle; False if the log changed meanwhile."""
    for _ in compaction.build_map():
        pass
    for group in compaction.groups():
        work = compaction.rewrite(group)
        while True:
            try:
                next(work)
            except StopIteration as done:
                if not compaction.swap(done.value, now_ms):
                    return False
                break
    return True


class Written(NamedTuple):
    record: Record
    producer_id: int
    transactional: bool


@dataclass
class Model:
    """A log on a simulated disk and everything that was ever put into it."""

    disk: SimDisk = field(default_factory=SimDisk)
    config: LogConfig = CONFIG
    now_ms: int = 1_000_000
    written: dict[int, Written] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)  # offsets
    open_txns: dict[int, list[int]] = field(default_factory=dict)  # producer id -> offsets
    sequences: dict[int, int] = field(default_factory=dict)
    clean_offset: int = 0
    touched: int = 0  # no round reached beyond this offset
    log: Log = field(init=False)

    def __post_init__(self) -> None:
        self.log = Log.open(self.disk, NAME, self.config, now_ms=self.now_ms)

    # --- writing

    def append(
        self,
        pairs: list[tuple[bytes | None, bytes | None]],
        *,
        producer_id: int = -1,
        transactional: bool = False,
        codec: Codec = Codec.NONE,
    ) -> int:
        found = [Record(NO_OFFSET, self.now_ms + i, key, value, (("h", b"x"),)) for i, (key, value) in enumerate(pairs)]
        sequence = self.sequences.get(producer_id, 0) if producer_id >= 0 else -1
        batch = build_batch(
            found,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
        )
        first = self.log.append(batch, leader_epoch=0, now_ms=self.now_ms).first_offset
        if producer_id >= 0:
            self.sequences[producer_id] = sequence + len(found)
        for i, record in enumerate(found):
            self.written[first + i] = Written(record._replace(offset=first + i), producer_id, transactional)
            if transactional:
                self.open_txns.setdefault(producer_id, []).append(first + i)
        self.now_ms += 10
        return first

    def end(self, producer_id: int, *, commit: bool) -> None:
        marker = EndTxnMarker(commit, 0)
        batch = end_txn_batch(marker, producer_id=producer_id, producer_epoch=0, timestamp=self.now_ms)
        self.log.append(batch, leader_epoch=0, now_ms=self.now_ms, origin=Origin.COORDINATOR)
        self.log.producers.replicated(self.log.next_offset)
        offsets = self.open_txns.pop(producer_id, [])
        if not commit:
            self.aborted.update(offsets)
        self.now_ms += 10

    def roll(self) -> None:
        self.log.roll(self.now_ms)

    # --- compacting

    def compaction(self, budget_bytes: int = 1 << 20) -> Compaction:
        unstable = self.log.first_unstable_offset
        stable = self.log.next_offset if unstable is None else unstable
        found = cleanable(self.log, self.clean_offset, last_stable_offset=stable, now_ms=self.now_ms)
        self.touched = max(self.touched, found.first_uncleanable_offset)
        return Compaction(
            self.log,
            OffsetMap(budget_bytes),
            first_dirty_offset=found.first_dirty_offset,
            first_uncleanable_offset=found.first_uncleanable_offset,
            now_ms=self.now_ms,
            read_bytes=500,
        )

    def compact(self, budget_bytes: int = 1 << 20) -> Compaction:
        compaction = self.compaction(budget_bytes)
        assert compact_now(compaction, self.now_ms)
        self.clean_offset = compaction.end_offset
        self.log.remove_deleted(self.now_ms)
        return compaction

    def reopen(self, disk: SimDisk, *, clean: bool = False) -> None:
        self.disk = disk
        self.log = Log.open(disk, NAME, self.config, now_ms=self.now_ms, clean=clean)
        self.log.producers.replicated(self.log.next_offset)

    # --- reading

    def batches(self) -> Iterator[tuple[memoryview, BatchHeader]]:
        """Everything a fetch from the start of the log to its end gives."""
        offset = self.log.log_start_offset
        while True:
            fetched = self.log.read(offset, 10_000, max_offset=self.log.next_offset)
            if fetched.slice is None:
                return
            data = memoryview(fetched.slice.read())
            for at, header in headers(data):
                check(data, at, header)
                offset = header.next_offset
                yield data[at:], header

    def records(self) -> list[Record]:
        return [record for view, header in self.batches() if not header.is_control for record in records(view)]

    def committed(self) -> list[Record]:
        """What a read_committed consumer hands out: it drops aborted transactions by the list it was given."""
        waiting = sorted(aborted(self.log, 0, self.log.next_offset), key=lambda txn: txn[1])
        aborting: set[int] = set()
        found: list[Record] = []
        for view, header in self.batches():
            while waiting and waiting[0][1] <= header.last_offset:
                aborting.add(waiting.pop(0)[0])
            if header.is_control:
                first = next(records(view), None)
                if first is not None and control_type(first.key) is ControlType.ABORT:
                    aborting.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborting):
                found.extend(records(view))
        return found

    # --- checking

    def check(self) -> None:
        present = self.records()
        offsets = [record.offset for record in present]
        assert offsets == sorted(set(offsets))
        for record in present:
            assert record == self.written[record.offset].record
        open_offsets = {offset for found in self.open_txns.values() for offset in found}
        committed = [r for r in self.committed() if r.offset not in open_offsets]
        assert not self.aborted & {record.offset for record in committed}, "an aborted record is handed out"
        expected = [w.record for o, w in self.written.items() if o not in self.aborted and o not in open_offsets]
        assert _table(committed) == _table(expected)
        head = {offset for offset in self.written if offset >= self.touched}
        assert head <= set(offsets), "the head of the log was touched"

    def check_clean(self) -> None:
        """After a whole round: nothing superseded is left below the first dirty offset."""
        self.check()
        below = [r for r in self.records() if r.offset < self.clean_offset]
        keys = [record.key for record in below]
        assert None not in keys
        assert len(keys) == len(set(keys))
        assert not self.aborted & {record.offset for record in below}


def _table(found: list[Record]) -> dict[bytes, bytes]:
    table: dict[bytes, bytes] = {}
    for record in found:
        if record.key is None:
            continue
        if record.value is None:
            table.pop(record.key, None)
        else:
            table[record.key] = record.value
    return table


def small(**changes: object) -> LogConfig:
    return CONFIG._replace(**changes)  # type: ignore[arg-type]
