"""The log alone on the simulated disk: appended to, flushed, rolled, cut, killed inside any operation, opened again.

Thousands of crashes per second, without a node in the way. The model is a list of what lies at each offset.
"""

import random

import pytest

from ottla.log.config import LogConfig
from ottla.log.files.disk import StorageError
from ottla.log.log import Log
from ottla.records.build import build_batch
from ottla.records.record import records
from ottla.sim.world.disk import Crash, DiskFaults, HostCrashedError, SimDisk

DIRECTORY = "t-0"


class Torture:
    def __init__(self, seed: int, *, kinds: tuple[Crash, ...], synced: bool) -> None:
        self.rng = random.Random(seed)
        self.synced = synced  # flush after every append, and expect everything to last
        self.kinds = kinds
        self.config = LogConfig(
            segment_bytes=self.rng.choice((4000, 10_000, 50_000)),
            index_interval_bytes=self.rng.choice((1, 200, 4096)),
            index_bytes=self.rng.choice((64, 10_000)),
            file_delete_delay_ms=self.rng.choice((0, 1000)),
        )
        self.disk = SimDisk(self.rng, DiskFaults(garbage_rate=self.rng.choice((0, 0.3))))
        self.now_ms = 1_000_000
        self.model: list[bytes] = []  # value at each offset
        self.sure = 0  # every offset below must survive
        self.maybe: list[bytes] = []  # what the append that was interrupted tried to add
        self.checkpoint = self.start = 0
        self.sequence = 0
        self.pending_batch: tuple[int, list[bytes]] | None = None
        self.clean = False
        self.log = self.open()

    def open(self) -> Log:
        log = Log.open(
            self.disk,
            DIRECTORY,
            self.config,
            now_ms=self.now_ms,
            recovery_point=self.checkpoint,
            log_start_offset=self.start,
            clean=self.clean,
        )
        self.clean = False
        return log

    # -- steps

    def append(self) -> None:
        values = [self.rng.randbytes(self.rng.choice((0, 5, 100, 900))) for _ in range(self.rng.randint(1, 4))]
        self.maybe = values
        self.pending_batch = (self.sequence, values)
        first = self.send(*self.pending_batch)
        assert first == len(self.model)
        self.took(values)

    def send(self, sequence: int, values: list[bytes]) -> int:
        batch = build_batch(
            [(None, value) for value in values],
            timestamp=self.now_ms,
            producer_id=7,
            producer_epoch=0,
            base_sequence=sequence,
        )
        appended = self.log.append(batch, leader_epoch=self.epoch(), now_ms=self.now_ms)
        self.duplicate = appended.duplicate
        return appended.first_offset

    def epoch(self) -> int:
        return len(self.model) // 40

    def took(self, values: list[bytes]) -> None:
        self.sequence += len(values)
        self.model += values
        self.maybe, self.pending_batch = [], None
        if self.synced:
            self.flush()
        if Crash.POWER not in self.kinds:
            self.sure = len(self.model)

    def flush(self) -> None:
        end = self.log.next_offset
        self.log.flush()
        self.sure = max(self.sure, end)
        self.checkpoint = self.log.recovery_point

    def roll(self) -> None:
        self.log.roll(self.now_ms)

    def delete_records(self) -> None:
        wanted = self.rng.randint(self.start, len(self.model))
        if self.log.advance_log_start(wanted):
            self.start = wanted
        self.log.delete_old_segments(self.now_ms, self.log.next_offset)
        self.log.remove_deleted(self.now_ms)

    def restart(self) -> None:
        self.log.close()
        self.checkpoint = self.log.recovery_point
        self.clean = True
        self.sure = len(self.model)
        self.reopen(Crash.PROCESS)

    def read(self) -> None:
        if self.start < len(self.model):
            offset = self.rng.randrange(self.start, len(self.model))
            fetched = self.log.read(offset, self.rng.choice((1, 500, 10_000)), max_offset=self.log.next_offset)
            assert fetched.slice is not None
            found = dict(self.values(fetched.slice.read()))
            assert found[offset] == self.model[offset]

    def values(self, data: bytes) -> list[tuple[int, bytes]]:
        return [(record.offset, record.value or b"") for record in records(memoryview(data))]

    # -- crashes

    def reopen(self, kind: Crash) -> None:
        self.disk = self.disk.crash(kind)
        for _ in range(20):
            try:
                if self.rng.random() < 0.2:
                    self.disk.crash_within(self.rng.randint(1, 20), lambda: None)
                self.log = self.open()
                self.disk.crash_never()
                break
            except HostCrashedError:
                self.clean = False
                self.disk = self.disk.crash(self.rng.choice(self.kinds))
        else:
            self.disk.crash_never()
            self.log = self.open()
        self.compare()

    def compare(self) -> None:
        """What is there now is a prefix of the model that reaches as far as it must, possibly one batch longer."""
        end = self.log.next_offset
        longest = self.model + self.maybe
        assert self.sure <= end <= len(longest), (self.sure, end, len(longest))
        assert self.log.log_start_offset == self.start or self.start > end
        found: list[tuple[int, bytes]] = []
        offset = self.log.log_start_offset
        while offset < end:
            fetched = self.log.read(offset, 1_000_000, max_offset=end)
            assert fetched.slice is not None, f"nothing at {offset} of {end}"
            part = self.values(fetched.slice.read())
            found += [(at, value) for at, value in part if at >= offset]
            offset = part[-1][0] + 1
        assert found == list(enumerate(longest[:end]))[self.log.log_start_offset :], "content"
        if self.pending_batch is not None and end in (len(self.model), len(longest)):
            survived = end == len(longest)
            self.model = longest[:end]
            self.retry(*self.pending_batch, survived=survived)
        elif end < len(self.model):
            self.lose(end)

    def lose(self, end: int) -> None:
        """The end is gone: the producer cannot go on with its sequence and starts a new one, as a new epoch would."""
        self.model = self.model[:end]
        self.maybe, self.pending_batch = [], None
        self.start = min(self.start, end)
        self.sure = min(self.sure, end)
        self.checkpoint = min(self.checkpoint, end)
        last = [each.last_sequence for each in self.log.producer_states() if each.producer_id == 7]
        self.sequence = last[0] + 1 if last else 0

    def retry(self, sequence: int, values: list[bytes], *, survived: bool) -> None:
        """The producer never got its answer and sends again: in the log once, whatever happened."""
        before = len(self.model)
        first = self.send(sequence, values)
        assert self.duplicate == survived
        if survived:
            assert first == before - len(values)
            self.sequence += len(values)
            self.maybe, self.pending_batch = [], None
        else:
            assert first == before
            self.took(values)

    def run(self, steps: int) -> None:
        actions = [self.append] * 12 + [self.read] * 3 + [self.flush, self.roll, self.delete_records, self.restart]
        for _ in range(steps):
            self.now_ms += self.rng.randint(0, 500)
            kind = self.rng.choice(self.kinds)
            if self.rng.random() < 0.15:
                self.disk.crash_within(self.rng.randint(1, 8), lambda: None)
            try:
                self.rng.choice(actions)()
                if self.rng.random() < 0.1:
                    self.reopen(kind)
            except HostCrashedError:
                self.reopen(kind)


@pytest.mark.parametrize("seed", range(40))
def test_process_crashes_lose_nothing(seed: int) -> None:
    Torture(seed, kinds=(Crash.PROCESS,), synced=False).run(150)


@pytest.mark.parametrize("seed", range(40))
def test_power_losses_lose_nothing_that_was_flushed(seed: int) -> None:
    Torture(seed, kinds=(Crash.PROCESS, Crash.POWER), synced=False).run(150)


@pytest.mark.parametrize("seed", range(40))
def test_power_losses_lose_nothing_at_all_if_every_append_is_flushed(seed: int) -> None:
    Torture(seed, kinds=(Crash.PROCESS, Crash.POWER), synced=True).run(150)


@pytest.mark.parametrize("seed", range(30))
def test_a_failing_disk_leaves_the_log_as_it_was(seed: int) -> None:
    torture = Torture(seed, kinds=(Crash.PROCESS,), synced=False)
    rng = torture.rng
    for _ in range(100):
        torture.disk.faults.write_error_rate = rng.choice((0.0, 0.3, 1.0))
        try:
            torture.append()
        except StorageError:
            torture.maybe, torture.pending_batch = [], None
            assert torture.log.next_offset == len(torture.model)
        torture.disk.faults.write_error_rate = 0.0
        torture.read()
        if rng.random() < 0.05:
            torture.reopen(Crash.PROCESS)
