"""Topics whose settings change: seeds that failed once, a sample of others, and bugs that must be found.

A mutation puts an old bug back, or a likely one in. It is tried on topics and a kind of trouble that bring it to light
within a few seeds; without it the same seeds find nothing.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.sim.sampling import check, check_sample

from ottla.log import committed
from ottla.log.compaction.batch_filter import BatchFilter
from ottla.log.compaction.transactions import CleanedTxns
from ottla.log.recovery.recover import _Recovery
from ottla.log.recovery.seams import Seams
from ottla.records.batch import BatchHeader
from ottla.records.compress import Codec
from ottla.records.record import frames
from ottla.server.coordination.host import Host
from ottla.server.loop.clocks import Clocks
from ottla.server.storage import cleaning, directories, partitions, removal
from ottla.server.storage import directory_choice as placing
from ottla.server.storage.removal import Retirement
from ottla.server.storage.syncing import Syncer
from ottla.sim.check import Guarantee
from ottla.sim.run import Outcome
from ottla.sim.scenario import Durability, SimFault
from ottla.sim.seeds import kept_seeds
from ottla.sim.topics.plan import KeyedWriterPlan, TopicPlan, TopicsPlan
from ottla.sim.topics.run import TopicScenario, TopicSimulation, changing
from ottla.sim.world import loop as machines

KEPT = kept_seeds(Path(__file__).with_name("topics_seeds.txt"))
SEEDS = range(6)


def simulate(seed: int) -> Outcome:
    return TopicSimulation(changing(seed)).run()


@pytest.mark.parametrize("seed", KEPT)
def test_seeds_that_failed_once(seed: int) -> None:
    check("topics", simulate(seed))


def test_a_sample_of_seeds() -> None:
    check_sample("topics", simulate, 500_000, cpu_seconds=10.0, least=8)


def test_a_seed_tells_the_same_story_twice() -> None:
    first, second = simulate(1), simulate(1)
    assert first.trace == second.trace


# -- what the mutations are tried on

CONFIGS = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "1024",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "86400000",
    "retention.ms": "-1",
    "message.timestamp.after.max.ms": str(1 << 50),
}


def one_topic(seed: int, *faults: SimFault, changes: tuple[str, ...] = (), **more: Any) -> TopicScenario:
    """One partition, one writer, default settings; `more`: of the plan."""
    configs = CONFIGS | more.pop("configs", {})
    transactional = more.pop("transactional", False)
    topic = TopicPlan("k0", 1, configs, transactional)
    writers = [KeyedWriterPlan(0, (topic,), False, 0.0, True, Codec.NONE, 0.02, 50)]
    if transactional:
        writers.append(KeyedWriterPlan(1, (topic,), True, 0.7, True, Codec.NONE, 0.02, 50))
    plan = TopicsPlan((topic,), tuple(writers), keys=6, records=250, changes=changes, pause_between_changes_seconds=0.7)
    return replace(
        changing(seed),
        durability=Durability.PAGE_CACHE,
        guarantee=Guarantee.SAFE,
        log_dirs=1,
        faults=dict.fromkeys(faults, 1.0),
        pause_between_faults_seconds=1.5,
        chaos_seconds=6.0,
        topics=replace(plan, **more),
    )


def changed_policies(seed: int) -> TopicScenario:
    return one_topic(seed, SimFault.KILL, changes=("policy", "compression"))


def aborted(seed: int) -> TopicScenario:
    """Most transactions are aborted, in topics that are compacted or not."""
    policy = {"cleanup.policy": "compact" if seed % 2 else "delete"}
    return one_topic(
        seed, SimFault.KILL, changes=("segments",), configs=policy, transactional=True, aborted_per_fetch_max=2
    )


def tombstones(seed: int) -> TopicScenario:
    return one_topic(seed, SimFault.KILL, changes=("compression",), keys=20)


def strangers(seed: int) -> TopicScenario:
    return one_topic(seed, SimFault.KILL, changes=("recreate",), strangers=True)


def recreated(seed: int) -> TopicScenario:
    changes = ("erase", "erase", "recreate")
    return one_topic(seed, SimFault.KILL, changes=changes, configs={"cleanup.policy": "delete"})


def outages(seed: int) -> TopicScenario:
    """Losses of power, and nothing is synced before it is acknowledged."""
    made = one_topic(seed, SimFault.POWER_LOSS, changes=("segments",), configs={"cleanup.policy": "delete"})
    return replace(made, guarantee=Guarantee.AT_RISK)


def clocks(seed: int) -> TopicScenario:
    """Nothing goes wrong but the time."""
    protocol = "consumer" if seed % 2 else "classic"
    made = one_topic(
        seed,
        SimFault.CLOCK_JUMP,
        transactional=True,
        staying_members=2,
        protocol=protocol,
        undisturbed=True,
        changes=("policy",),
    )
    return replace(made, chaos_seconds=20.0)


def finds(make: Callable[[int], TopicScenario], *words: str, seeds: range = SEEDS) -> bool:
    """Whether one of a few seeds shows one of these."""
    for seed in seeds:
        violations = "\n".join(TopicSimulation(make(seed)).run().violations)
        if any(each in violations for each in words):
            return True
    return False


@pytest.mark.parametrize("make", [changed_policies, aborted, tombstones, strangers, recreated, outages, clocks])
def test_without_a_mutation_nothing_is_found(make: Callable[[int], TopicScenario]) -> None:
    for seed in SEEDS[:3]:
        assert not TopicSimulation(make(seed)).run().violations


# -- recovery


def test_a_gap_is_taken_for_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: where the topic is not compacted now, recovery cuts the log off at the first gap."""
    honest = _Recovery._is_out_of_place

    def strict(self: Any, batch: Any, next_offset: int, *more: Any) -> bool:
        gap = batch.header.base_offset > next_offset and not self._config.compact
        return gap or honest(self, batch, next_offset, *more)

    monkeypatch.setattr(_Recovery, "_is_out_of_place", strict)
    assert finds(changed_policies, "lost", "is now", seeds=range(20, 40))


def test_a_lost_end_is_taken_for_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loss of power takes the end of one segment, and spares the next: while neither is synced."""
    monkeypatch.setattr(machines.SimHost, "WORKER_DELAY_SECONDS", (0.5, 2.0))
    assert not TopicSimulation(outages(0)).run().violations
    monkeypatch.setattr(Seams, "make", lambda self, offset: None)
    assert finds(outages, "lost", "not dense", seeds=range(20))


def test_nobody_syncs_what_was_rolled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: the recovery point stayed at 0, and each start after a crash read everything."""
    monkeypatch.setattr(Syncer, "seal", lambda self, partition: None)
    assert finds(changed_policies, "sealed up to")


# -- transactions


def test_some_aborted_transactions_are_not_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: at the limit the list ended, and not the slice."""
    honest = committed.read

    def cut_short(log: Any, *position: Any, aborted_max: int, **more: Any) -> Any:
        fetched, txns = honest(log, *position, aborted_max=1 << 30, **more)
        return fetched, txns[:aborted_max]

    monkeypatch.setattr(committed, "read", cut_short)
    assert finds(aborted, "aborted record")


def test_aborted_records_count_in_compaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest of a key would be one that nobody is ever given."""
    monkeypatch.setattr(CleanedTxns, "data", lambda self, header: False)
    assert finds(aborted, "lost", "aborted record")


# -- compaction


def test_compaction_takes_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(self: Any, data: bytes, header: BatchHeader) -> Any:
        frames, tombstones = honest(self, data, header)
        return frames[:-1], tombstones

    honest = BatchFilter._latest
    monkeypatch.setattr(BatchFilter, "_latest", hasty)
    assert finds(tombstones, "lost")


def test_tombstones_go_before_what_they_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(self: Any, data: bytes, header: BatchHeader) -> Any:
        return [frame for frame in frames(data, header) if frame.has_value], False

    monkeypatch.setattr(BatchFilter, "_latest", hasty)
    assert finds(tombstones, "revived")


def test_compaction_relies_on_what_is_not_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record went for a newer one, and a loss of power in the same round took that: then both are gone."""

    def in_a_round(seed: int) -> TopicScenario:
        """Much is there when compaction begins, and nothing of it is synced."""
        policy = {"cleanup.policy": "delete"}
        made = one_topic(seed, SimFault.POWER_LOSS_IN_WRITE, changes=("policy",), keys=20, configs=policy)
        return replace(made, guarantee=Guarantee.AT_RISK, pause_between_faults_seconds=1.0)

    monkeypatch.setattr(Syncer, "seal", lambda self, partition: None)
    assert not finds(in_a_round, "lost", seeds=range(10, 13))
    monkeypatch.setattr(cleaning, "_lasting", lambda partition: partition.last_stable_offset)
    assert finds(in_a_round, "lost", seeds=range(10, 20))


# -- topics that are made anew


def test_a_topic_finds_what_one_of_its_name_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose the files are is not looked at, and those of a deleted topic stay."""
    monkeypatch.setattr(Retirement, "add", lambda *_: None)
    monkeypatch.setattr(partitions, "identity_of", lambda home: None)
    assert finds(recreated, "is of a topic that was deleted", seeds=range(2, 8))  # seed 1 shows nothing, 0 takes hours


# -- time


def test_coordinators_wait_by_the_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: a clock that is set forward ends every session and every transaction."""

    def watchful(self: Host) -> None:
        self._disarm()
        honest(self)

    honest = Host._arm
    monkeypatch.setattr(Clocks, "steady_ms", lambda self: self.now_ms())
    monkeypatch.setattr(Host, "_arm", watchful)
    assert finds(clocks, "though only clocks jump")


# -- files of others


def test_a_folder_is_taken_for_a_partition_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: renamed, and deleted in a while."""
    for module in (directories, partitions, placing):
        monkeypatch.setattr(module, "is_partition", lambda home: True)
    assert finds(strangers, "is not ours")


def test_of_a_deleted_topic_something_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: a seam (of what is not synced yet) was nobody's file, so its directory stayed for ever."""
    honest = removal.is_partition_file
    monkeypatch.setattr(removal, "is_partition_file", lambda name: not name.endswith(".seam") and honest(name))
    monkeypatch.setattr(Syncer, "seal", lambda self, partition: None)
    assert finds(recreated, "is left, with")
