"""Compaction against a model: any sequence of writes, rounds and restarts, and a crash at every single step."""

import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.log.compacting import Model, compact_now

from ottla.records.compress import Codec
from ottla.sim.world.disk import Crash, HostCrashedError, SimDisk

KEYS = st.sampled_from([b"a", b"b", b"c", b"dd", b"e" * 70])
VALUES = st.none() | st.binary(max_size=60)
PAIRS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4)
PRODUCERS = st.sampled_from([1, 2, 3])


class CompactedLog(RuleBasedStateMachine):
    @initialize(seed=st.integers(0, 1000))
    def start(self, seed: int) -> None:
        self.model = Model(disk=SimDisk(random.Random(seed)))
        self.whole = False  # nothing happened since the last whole round

    @rule(pairs=PAIRS, codec=st.sampled_from([Codec.NONE, Codec.LZ4]))
    def append(self, pairs: list[tuple[bytes, bytes | None]], codec: Codec) -> None:
        self.model.append(list(pairs), codec=codec)

    @rule(pairs=PAIRS)
    def append_idempotent(self, pairs: list[tuple[bytes, bytes | None]]) -> None:
        self.model.append(list(pairs), producer_id=9)

    @rule(pairs=PAIRS, producer_id=PRODUCERS)
    def append_in_transaction(self, pairs: list[tuple[bytes, bytes | None]], producer_id: int) -> None:
        self.model.append(list(pairs), producer_id=producer_id, transactional=True)

    @rule(producer_id=PRODUCERS, commit=st.booleans())
    def end_transaction(self, producer_id: int, commit: bool) -> None:
        if producer_id in self.model.sequences:
            self.model.end(producer_id, commit=commit)

    @rule(wait_ms=st.integers(0, 3_000))
    def wait(self, wait_ms: int) -> None:
        self.model.now_ms += wait_ms

    @rule()
    def roll(self) -> None:
        self.model.roll()

    @rule()
    def compact(self) -> None:
        self.model.compact()
        self.model.check_clean()

    @rule()
    def compact_with_little_memory(self) -> None:
        self.model.compact(budget_bytes=0)

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        if clean:
            self.model.log.close()
        self.model.reopen(self.model.disk.crash(Crash.PROCESS), clean=clean)

    @precondition(lambda self: self.model.log.next_offset > 0)
    @rule(operations=st.integers(1, 60), power=st.booleans())
    def crash_while_compacting(self, operations: int, power: bool) -> None:
        model = self.model
        model.log.flush()
        compaction = model.compaction()
        model.disk.crash_within(operations, lambda: None)
        try:
            compact_now(compaction, model.now_ms)
        except HostCrashedError:
            pass
        else:
            model.disk._operations_left = None
            model.clean_offset = compaction.end_offset
        model.reopen(model.disk.crash(Crash.POWER if power else Crash.PROCESS))

    @invariant()
    def readers_find_the_latest_values(self) -> None:
        self.model.check()

    @invariant()
    def producers_go_on(self) -> None:
        for producer_id, sequence in self.model.sequences.items():
            state = self.model.log.producers.get(producer_id)
            assert state is not None
            assert state.last_sequence == sequence - 1


TestCompactedLog = CompactedLog.TestCase
TestCompactedLog.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def _prepared(seed: int) -> Model:
    model = Model(disk=SimDisk(random.Random(seed)))
    rng = random.Random(seed)
    for _ in range(12):
        model.append([(b"k%d" % rng.randrange(4), rng.randbytes(20)) for _ in range(2)], producer_id=9)
        model.append([(b"t", b"x")], producer_id=1, transactional=True)
        model.end(1, commit=rng.random() < 0.5)
    model.append([(b"k1", None)])
    model.roll()
    model.log.flush()
    return model


@pytest.mark.parametrize("kind", list(Crash))
def test_a_crash_at_every_disk_operation(kind: Crash) -> None:
    operations = 0
    crashed = True
    while crashed:
        operations += 1
        model = _prepared(operations)
        compaction = model.compaction()
        model.disk.crash_within(operations, lambda: None)
        try:
            compact_now(compaction, model.now_ms)
            crashed = False
            model.disk._operations_left = None
        except HostCrashedError:
            pass
        model.reopen(model.disk.crash(kind))
        model.check()
        leftovers = [path for path in model.disk.paths() if path.endswith((".cleaned", ".swap", ".deleted"))]
        assert not leftovers
        # And the round can simply be run again.
        model.compact()
        model.check_clean()
    assert operations > 20
