"""A simulator that never fails proves nothing: these bugs, put in on purpose, must be caught within a few seeds."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ottla.log.log import Log
from ottla.log.producers.producers import Producers
from ottla.log.recovery.recover import _Recovery
from ottla.records import batch
from ottla.replica.partition import Partition
from ottla.server.quorum.producer_ids import ProducerIds
from ottla.server.storage.checkpoints import Checkpoints
from ottla.sim.check import Guarantee, SimWriter
from ottla.sim.run import Simulation
from ottla.sim.scenario import Durability, Scenario, SimFault, scenario
from ottla.sim.world.disk import SimDisk

SEEDS = range(15)
CRASHES = {SimFault.KILL: 1.0, SimFault.POWER_LOSS: 1.0}


def durable(seed: int, faults: dict[SimFault, float] | None = None) -> Scenario:
    """A scenario in which nothing may be lost, and a lot goes wrong."""
    return replace(
        scenario(seed),
        durability=Durability.FSYNC_BEFORE_ACK,
        guarantee=Guarantee.SAFE,
        topic_configs={"ottla.fsync.before.ack": "true", "internal.segment.bytes": "16384"},
        faults=CRASHES if faults is None else faults,
        erasers=1,
        chaos_seconds=15.0,
        pause_between_faults_seconds=2.0,
    )


def at_risk(seed: int) -> Scenario:
    return replace(
        durable(seed),
        durability=Durability.PAGE_CACHE,
        guarantee=Guarantee.AT_RISK,
        topic_configs={"internal.segment.bytes": "16384"},
        erasers=0,
    )


def found(make: Callable[[int], Scenario]) -> str:
    """The violations of the first seed that has any."""
    for seed in SEEDS:
        outcome = Simulation(make(seed)).run()
        if not outcome.ok:
            return "\n".join(outcome.violations)
    return ""


def shows_loss(violations: str) -> bool:
    """Lost records show in several ways: they are gone, or others have taken their offsets."""
    return any(words in violations for words in ("lost", "went back", "is now", "does not exist yet"))


def test_without_a_mutation_nothing_is_found() -> None:
    for seed in SEEDS[:4]:
        for make in (durable, at_risk):
            assert not Simulation(make(seed)).run().violations


def test_a_disk_that_does_not_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SimDisk._sync

    def lie(self: SimDisk, inode: Any, path: str) -> None:
        if not path.startswith("t-"):
            honest(self, inode, path)

    monkeypatch.setattr(SimDisk, "_sync", lie)
    assert shows_loss(found(durable))


def test_acknowledging_before_the_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: Partition, config: Any) -> None:
        self.durable = False

    monkeypatch.setattr(Partition, "_set_durable", never)
    assert shows_loss(found(durable))


def test_acknowledging_what_a_failed_sync_took_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "sync_failed", lambda self, now_ms=0: self.synced())
    assert shows_loss(found(lambda seed: durable(seed, CRASHES | {SimFault.FAILING_SYNCS: 3.0})))


def test_a_recovery_that_believes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Recovery, "_is_sound", lambda self, batch: True)
    assert "cannot be read" in found(lambda seed: replace(at_risk(seed), garbage_rate=0.5))


def test_forgetting_what_producers_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def restless(seed: int) -> Scenario:
        """Exactly-once producers whose connections break while they wait for slow syncs."""
        made = durable(seed, {SimFault.RESET: 3.0, SimFault.SLOW_DISK: 1.0})
        writers = tuple(replace(plan, writer=SimWriter(plan.writer.number, True, -1)) for plan in made.writers)
        return replace(made, writers=writers, pause_between_faults_seconds=0.3)

    assert not Simulation(restless(0)).run().violations
    monkeypatch.setattr(Producers, "check", lambda self, header, offset, origin: None)
    assert "duplicate" in found(restless)


def test_giving_two_producers_the_same_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProducerIds, "next_producer_id", lambda self: 7)
    assert found(durable)


def test_a_log_start_that_is_only_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forgets(self: Checkpoints, starts: object) -> None:
        """Says that it is on disk."""

    monkeypatch.setattr(Checkpoints, "remember_log_starts", forgets)
    assert "log start went back" in found(durable)


def test_a_reader_that_does_not_look_at_the_crc(monkeypatch: pytest.MonkeyPatch) -> None:
    def rotten(seed: int) -> Scenario:
        return replace(durable(seed, {SimFault.BIT_ROT: 1.0}), guarantee=Guarantee.ROTTEN, erasers=0)

    for seed in SEEDS[:4]:
        assert not Simulation(rotten(seed)).run().violations
    monkeypatch.setattr(batch, "check", lambda view, position, header: None)
    assert "corrupt record" in found(rotten)


def slow_to_write(seed: int) -> Scenario:
    """Whatever was acknowledged is in the page cache, and survives the process; its disk makes writers wait."""
    return replace(
        durable(seed, {SimFault.KILL: 3.0, SimFault.SLOW_DISK: 3.0, SimFault.FULL_DISK: 1.0}),
        durability=Durability.PAGE_CACHE,
        topic_configs={"internal.segment.bytes": "16384"},
        pause_between_faults_seconds=0.5,
    )


def test_slow_writes_lose_nothing() -> None:
    for seed in SEEDS[:3]:
        assert not Simulation(slow_to_write(seed)).run().violations


def test_acknowledging_what_waits_to_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Partition.append

    def early(self: Partition, *args: Any, **options: Any) -> Any:
        appended = honest(self, *args, **options)
        self._raise_to(self.log.next_offset)
        return appended

    monkeypatch.setattr(Log, "written_offset", property(lambda log: log.next_offset))
    monkeypatch.setattr(Partition, "append", early)
    assert shows_loss(found(slow_to_write))
