"""The log against a list: any sequence of appends, reads, rolls, cuts, retention, flushes, stops and crashes."""

import random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.log.logs import (
    DIRECTORY,
    batch,
    check_indexes,
    max_timestamp_offset,
    offset_for_time,
    read_batches,
    read_records,
)

from ottla.log.config import LogConfig
from ottla.log.log import Log
from ottla.model.errors import ApiError, ErrorCode
from ottla.sim.world.disk import Crash, SimDisk

PRODUCERS = (7, 8)
CONFIG = LogConfig(
    segment_bytes=2_000, index_interval_bytes=300, index_bytes=12 * 12, segment_ms=50_000, retention_ms=200_000
)
offsets = st.floats(0, 1)


class LogModel(RuleBasedStateMachine):
    """`model` holds (offset, timestamp) of every record; the value of a record is not interesting here."""

    @initialize(seed=st.integers(0, 1 << 32))
    def start(self, seed: int) -> None:
        self.disk = SimDisk(random.Random(seed))
        self.now_ms = 1_000_000
        self.model: list[tuple[int, int]] = []
        self.batches: list[tuple[int, int]] = []  # (first offset, last offset)
        self.start_offset = 0
        self.next = 0
        self.sequences = dict.fromkeys(PRODUCERS, 0)
        self.last: dict[int, tuple[int, int, int]] = {}  # producer -> (sequence, count, first offset)
        self.saved = (0, 0)  # recovery point and log start, as the checkpoints have them
        self.log = self._open(clean=False)

    def _open(self, *, clean: bool) -> Log:
        return Log.open(
            self.disk,
            DIRECTORY,
            CONFIG,
            now_ms=self.now_ms,
            recovery_point=self.saved[0],
            log_start_offset=self.saved[1],
            clean=clean,
        )

    def _pick(self, fraction: float) -> int:
        return self.start_offset + int(fraction * (self.next - self.start_offset))

    @rule(
        count=st.integers(1, 5),
        size=st.integers(0, 200),
        step=st.integers(0, 3_000),
        late_ms=st.integers(0, 5_000),
        producer=st.sampled_from((-1, *PRODUCERS)),
    )
    def append(self, count: int, size: int, step: int, late_ms: int, producer: int) -> None:
        self.now_ms += step
        timestamp = self.now_ms - late_ms
        sequence = self.sequences[producer] if producer >= 0 else -1
        records = batch(count, timestamp=timestamp, step_ms=1, size_bytes=size, producer=producer, sequence=sequence)
        appended = self.log.append(records, leader_epoch=0, now_ms=self.now_ms)
        assert (appended.first_offset, appended.last_offset) == (self.next, self.next + count - 1)
        assert not appended.duplicate
        self.model += [(self.next + i, timestamp + i) for i in range(count)]
        self.batches.append((self.next, self.next + count - 1))
        if producer >= 0:
            self.last[producer] = (sequence, count, self.next)
            self.sequences[producer] += count
        self.next += count

    @rule(producer=st.sampled_from(PRODUCERS))
    def repeat(self, producer: int) -> None:
        if producer not in self.last:
            return
        sequence, count, first = self.last[producer]
        records = batch(count, timestamp=self.now_ms, producer=producer, sequence=sequence)
        appended = self.log.append(records, leader_epoch=0, now_ms=self.now_ms)
        assert appended.duplicate and appended.first_offset == first

    @rule(producer=st.sampled_from(PRODUCERS))
    def skip_a_sequence(self, producer: int) -> None:
        if producer not in self.last:
            return
        records = batch(timestamp=self.now_ms, producer=producer, sequence=self.sequences[producer] + 1)
        with pytest.raises(ApiError) as refused:
            self.log.append(records, leader_epoch=0, now_ms=self.now_ms)
        assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(fraction=offsets, max_bytes=st.integers(0, 1_000), limit=offsets)
    def read(self, fraction: float, max_bytes: int, limit: float) -> None:
        offset, end = self._pick(fraction), self._pick(limit)
        fetched = self.log.read(offset, max_bytes, max_offset=end)
        expected = [first for first, last in self.batches if last >= offset and last < end]
        if not expected:
            assert fetched.slice is None
            return
        assert fetched.slice is not None
        data = fetched.slice.read()
        assert int.from_bytes(data[:8], "big") == expected[0]
        first_bytes = int.from_bytes(data[8:12], "big") + 12
        assert first_bytes <= len(data) <= max(max_bytes, first_bytes)
        strict = self.log.read(offset, max_bytes, max_offset=end, at_least_one=False)
        assert (strict.slice is None) == (first_bytes > max_bytes)

    @rule(back_ms=st.integers(-10, 60_000))
    def look_up(self, back_ms: int) -> None:
        timestamp = max(self.now_ms - back_ms, 0)
        found = offset_for_time(self.log, timestamp, max_offset=self.next)
        readable = [entry for entry in self.model if entry[0] >= self.start_offset]
        expected = next(((offset, time) for offset, time in readable if time >= timestamp), None)
        assert (found and found[:2]) == expected
        largest = max_timestamp_offset(self.log, max_offset=self.next)
        best = max(readable, key=lambda entry: (entry[1], -entry[0]), default=None)
        # Kafka, too, looks for the largest timestamp of all segments, readable or not.
        if best is not None and best[1] == max(segment.max_timestamp for segment in self.log.segments):
            assert largest is not None and largest[:2] == best

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.next

    @rule()
    def checkpoint(self) -> None:
        self.saved = (self.log.recovery_point, self.log.log_start_offset)

    @rule(fraction=offsets)
    def truncate(self, fraction: float) -> None:
        target = self._pick(fraction)
        self.log.truncate_to(target, now_ms=self.now_ms)
        self.log.flush()
        self._keep_batches_below(target)

    def _keep_batches_below(self, offset: int) -> None:
        self.batches = [entry for entry in self.batches if entry[1] < offset]
        self.next = self.log.next_offset
        if self.next == self.saved[1]:
            # All that was left lay below the log start: the log goes on there, empty.
            self.batches = []
        self.start_offset = min(self.start_offset, self.next)
        self.model = [entry for entry in self.model if entry[0] < self.next]
        assert self.next == max((last + 1 for _, last in self.batches), default=self.next)
        self.saved = (min(self.saved[0], self.log.recovery_point), min(self.saved[1], self.log.log_start_offset))
        self._forget_producers()

    def _forget_producers(self) -> None:
        """After a cut each producer goes on from what is left of it."""
        for producer in PRODUCERS:
            state = self.log.producers.get(producer)
            if state is None:
                self.last.pop(producer, None)
                self.sequences[producer] = 0
            else:
                last = state.batches[-1]
                self.last[producer] = (last.first_sequence, last.last_offset - last.first_offset + 1, last.first_offset)
                self.sequences[producer] = last.last_sequence + 1

    @rule(fraction=offsets)
    def delete_records(self, fraction: float) -> None:
        target = self._pick(fraction)
        self.log.advance_log_start(target)
        self.start_offset = max(self.start_offset, target)

    @rule(later_ms=st.integers(0, 300_000))
    def retain(self, later_ms: int) -> None:
        self.now_ms += later_ms
        before = self.log.size_bytes
        gone = self.log.delete_old_segments(self.now_ms, self.next)
        assert (self.log.size_bytes < before) == bool(gone)
        self.start_offset = max(self.start_offset, self.log.segments[0].base_offset)
        self.log.remove_deleted(self.now_ms + CONFIG.file_delete_delay_ms)

    @rule()
    def stop_and_start(self) -> None:
        # Of a log that retention has emptied the last epoch is forgotten with the next start, as with Kafka.
        has_empty_epoch = any(start >= self.next for _, start in self.log.epochs.entries)
        self.log.close()
        self.saved = (self.log.recovery_point, self.log.log_start_offset)
        operations: list[str] = []
        self.disk.on_operation = lambda what, path, size: operations.append(what)
        self.log = self._open(clean=True)
        self.disk.on_operation = None
        assert "write" not in operations or has_empty_epoch, "a clean start changes nothing"
        assert self.log.next_offset == self.next

    @rule()
    def kill(self) -> None:
        self.disk = self.disk.crash(Crash.PROCESS)
        self.log = self._open(clean=False)
        assert self.log.next_offset == self.next
        self._after_crash()

    @rule()
    def lose_power(self) -> None:
        durable = self.log.recovery_point
        self.disk = self.disk.crash(Crash.POWER)
        self.log = self._open(clean=False)
        assert durable <= self.log.next_offset <= self.next
        self._keep_batches_below(self.log.next_offset)
        self._after_crash()

    def _after_crash(self) -> None:
        """The log start may be an older one, down to the checkpoint; what it shows again must be what was there."""
        assert self.saved[1] <= self.log.log_start_offset <= max(self.start_offset, self.saved[1])
        self.start_offset = self.log.log_start_offset

    @precondition(lambda self: hasattr(self, "log"))
    @invariant()
    def agrees(self) -> None:
        assert self.log.next_offset == self.next
        assert self.log.log_start_offset == self.start_offset
        found = [(record.offset, record.timestamp) for record in read_records(self.log)]
        assert found == [entry for entry in self.model if entry[0] >= self.start_offset]
        assert [(h.base_offset, h.last_offset) for h, _ in read_batches(self.log)] == [
            entry for entry in self.batches if entry[1] >= self.start_offset
        ]
        check_indexes(self.log)


LogModel.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestLogModel = LogModel.TestCase
