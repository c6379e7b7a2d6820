"""A journal in memory that loses what was not flushed when its node crashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ottla.raft.journal import ElectionState, OffsetAndEpoch, QuorumRecord
from ottla.records.batch import headers
from ottla.records.build import build_batch
from ottla.records.control import ControlType, control_batch, control_type
from ottla.records.record import records as records_of

ABOUT_VOTERS = (ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS)


class Batch(NamedTuple):
    base: int
    end: int
    epoch: int
    data: bytes


class MemoryJournal:
    def __init__(self, controls: Sequence[tuple[ControlType, bytes]] = ()) -> None:
        """`controls`: what a formatter put before the first record."""
        self.batches: list[Batch] = []
        self.start_offset = 0
        self.flushed_offset = 0
        self.snapshots: dict[OffsetAndEpoch, bytes] = {}
        self.election = ElectionState()
        self.in_doubt = False
        self.bootstrap = [QuorumRecord(-1, kind, value) for kind, value in controls]
        self.receiving: dict[OffsetAndEpoch, bytes] = {}
        self.sealed: OffsetAndEpoch | None = None
        self.voters_at: dict[OffsetAndEpoch, list[QuorumRecord]] = {}

    # --- the port

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end if self.batches else self.start_offset

    @property
    def last_epoch(self) -> int:
        if self.batches:
            return self.batches[-1].epoch
        latest = self.latest_snapshot
        return latest.epoch if latest is not None and latest.offset == self.end_offset else 0

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        if not self.batches or epoch > self.batches[-1].epoch:
            return -1, -1
        before = [batch for batch in self.batches if batch.epoch <= epoch]
        if not before:
            return epoch, self.batches[0].base
        return before[-1].epoch, before[-1].end

    def read(self, offset: int, max_bytes: int) -> bytes:
        found = [batch for batch in self.batches if batch.end > offset]
        taken: list[bytes] = []
        size = 0
        for batch in found:
            if taken and size + len(batch.data) > max_bytes:
                break
            taken.append(batch.data)
            size += len(batch.data)
        return b"".join(taken)

    def append_controls(self, controls: Sequence[tuple[ControlType, bytes]], epoch: int) -> None:
        base = self.end_offset
        data = control_batch(list(controls), timestamp=0, base_offset=base, leader_epoch=epoch)
        self.batches.append(Batch(base, base + len(controls), epoch, bytes(data)))

    def append(self, value: bytes, epoch: int) -> int:
        """As a leader's state machine; the offset behind it."""
        base = self.end_offset
        data = build_batch([(None, value)], base_offset=base, leader_epoch=epoch, timestamp=0)
        self.batches.append(Batch(base, base + 1, epoch, bytes(data)))
        return base + 1

    def append_fetched(self, records: bytes | memoryview) -> None:
        view = memoryview(records)
        for position, header in headers(view):
            assert header.base_offset == self.end_offset, "a gap, or the same again"
            data = bytes(view[position : position + header.size_bytes])
            self.batches.append(Batch(header.base_offset, header.last_offset + 1, header.leader_epoch, data))

    def truncate(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch.end <= offset]
        self.flushed_offset = min(self.flushed_offset, self.end_offset)

    def quorum_records(self) -> list[QuorumRecord]:
        latest = self.latest_snapshot
        found = list(self.voters_at[latest]) if latest is not None else list(self.bootstrap)
        for batch in self.batches:
            for record in records_of(memoryview(batch.data)) if _is_control(batch) else ():
                kind = control_type(record.key)
                if kind in ABOUT_VOTERS and (latest is None or record.offset >= latest.offset):
                    found.append(QuorumRecord(record.offset, kind, record.value or b""))
        return found

    @property
    def earliest_snapshot(self) -> OffsetAndEpoch | None:
        return min(self.snapshots, default=None)

    @property
    def latest_snapshot(self) -> OffsetAndEpoch | None:
        return max(self.snapshots, default=None)

    def read_snapshot(self, snapshot: OffsetAndEpoch, position: int, max_bytes: int) -> tuple[int, bytes] | None:
        data = self.snapshots.get(snapshot)
        return (len(data), data[position : position + max_bytes]) if data is not None else None

    def receive_snapshot(self, snapshot: OffsetAndEpoch, position: int, data: bytes | memoryview) -> None:
        self.receiving[snapshot] = self.receiving.get(snapshot, b"")[:position] + bytes(data)

    def seal_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        self.sealed = snapshot

    def install_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        assert self.sealed == snapshot, "it must last before it takes the place of the log"
        data = self.receiving.pop(snapshot)
        size = int.from_bytes(data[:4], "big")
        if len(data) < 4 or len(data) != size:
            raise ValueError("damaged")
        self.snapshots = {snapshot: data}
        self.voters_at[snapshot] = _decode_voters(data, snapshot)
        self.batches = []
        self.start_offset = self.flushed_offset = snapshot.offset

    def begin_doubt(self) -> None:
        self.in_doubt = True

    def end_doubt(self) -> None:
        self.in_doubt = False

    def read_election(self) -> ElectionState:
        return self.election

    def write_election(self, election: ElectionState, voters: Sequence[int], kraft_version: int) -> None:
        assert election.epoch >= self.election.epoch, "epochs only go up"
        if election.epoch == self.election.epoch and self.election.voted is not None:
            assert election.voted in (None, self.election.voted), "one vote per epoch"
        elif election.epoch == self.election.epoch and self.election.leader_id >= 0:
            assert election.leader_id in (-1, self.election.leader_id), "one leader per epoch"
        self.election = election

    # --- for tests

    def flush(self) -> None:
        self.flushed_offset = self.end_offset

    def crash(self) -> None:
        self.receiving.clear()
        self.truncate(self.flushed_offset)

    def take_snapshot(self, offset: int, controls: Sequence[tuple[ControlType, bytes]]) -> None:
        """Of everything below `offset`, which is committed; the log begins there."""
        inside = [batch for batch in self.batches if batch.end <= offset]
        if not inside or inside[-1].end != offset:
            return
        place = OffsetAndEpoch(offset, inside[-1].epoch)
        body = b"".join(bytes([kind]) + len(value).to_bytes(4, "big") + value for kind, value in controls)
        body += b"x" * 300
        data = (len(body) + 8).to_bytes(4, "big") + len(controls).to_bytes(4, "big") + body
        self.snapshots = {place: data}
        self.voters_at[place] = _decode_voters(data, place)
        self.batches = [batch for batch in self.batches if batch.base >= offset]
        self.start_offset = offset
        self.flushed_offset = max(self.flushed_offset, offset)

    def values(self) -> dict[int, tuple[int, bytes]]:
        """Offset → (epoch, batch)."""
        return {batch.base: (batch.epoch, batch.data) for batch in self.batches}


def _is_control(batch: Batch) -> bool:
    return next(iter(headers(memoryview(batch.data))))[1].is_control


def _decode_voters(data: bytes, place: OffsetAndEpoch) -> list[QuorumRecord]:
    count, position, found = int.from_bytes(data[4:8], "big"), 8, []
    for _ in range(count):
        size = int.from_bytes(data[position + 1 : position + 5], "big")
        value = data[position + 5 : position + 5 + size]
        found.append(QuorumRecord(place.offset - 1, ControlType(data[position]), value))
        position += 5 + size
    return found
