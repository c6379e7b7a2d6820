"""Topics that change in clusters: seeds that failed once, a sample of others, and bugs that must be found."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.sim.replicated.test_cluster_mutations import harsh
from tests.sim.sampling import check, check_sample
from tests.sim.topics.test_topics import one_topic

from ottla.log.durable import Durable
from ottla.log.log import Log
from ottla.log.recovery.recover import _Recovery
from ottla.replica.partition import Partition
from ottla.server.storage.syncing import Syncer
from ottla.sim.replicated.run import ClusterSimulation
from ottla.sim.replicated.scenario import ClusterScenario, topical, with_topics
from ottla.sim.run import Outcome
from ottla.sim.scenario import SimFault
from ottla.sim.seeds import kept_seeds

KEPT = kept_seeds(Path(__file__).with_name("cluster_topics_seeds.txt"))


def simulate(seed: int) -> Outcome:
    return ClusterSimulation(topical(seed)).run()


@pytest.mark.parametrize("seed", KEPT or [0])
def test_seeds_that_failed_once(seed: int) -> None:
    check("cluster-topics", simulate(seed))


def test_a_sample_of_seeds() -> None:
    check_sample("cluster-topics", simulate, 800_000, cpu_seconds=12.0, least=8)


def finds(make: Callable[[int], ClusterScenario], *words: str, seeds: range) -> bool:
    """Whether one of a few seeds shows one of these."""
    for seed in seeds:
        violations = "\n".join(ClusterSimulation(make(seed)).run().violations)
        if any(each in violations for each in words):
            return True
    return False


def late_syncs(seed: int) -> ClusterScenario:
    """Leaders whose syncs are slow are cut off, while their clients go on; when they are back others lead."""
    made = harsh(seed, SimFault.LATE_SYNC, durable=True, acks=1, records=600, chaos_seconds=16.0)
    writers = tuple(replace(plan, pause_seconds=0.04, linger_ms=0.0) for plan in made.writers)
    sessions = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}
    return replace(
        made, writers=writers, pause_between_faults_seconds=1.5, settings=made.settings | sessions, second_look=False
    )


def failing_syncs(seed: int) -> ClusterScenario:
    """Syncs fail, and nodes are killed before or after they notice."""
    made = harsh(seed, SimFault.FAILING_SYNCS, SimFault.KILL, durable=True, records=40, chaos_seconds=5.0)
    return replace(made, pause_between_faults_seconds=0.5, second_look=False)


def thinned(seed: int) -> ClusterScenario:
    """Followers that were away copy what their leader compacted, and the policy changes before they are killed."""
    plan = replace(one_topic(seed, changes=("policy",)).topics, records=400, pause_between_changes_seconds=0.8)
    made = with_topics(harsh(seed, SimFault.KILL, SimFault.KILL_SEVERAL, records=5, chaos_seconds=10.0), plan)
    return replace(made, pause_between_faults_seconds=1.2, second_look=False, clean_end=False)


@pytest.mark.parametrize("make", [late_syncs, failing_syncs, thinned])
def test_without_a_mutation_nothing_is_found(make: Callable[[int], ClusterScenario]) -> None:
    for seed in range(2):
        assert not ClusterSimulation(make(seed)).run().violations


def test_a_sync_claims_what_was_cut_and_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: the end of a sync raised the recovery point to where the log had ended when it began."""

    def forgetful(self: Durable, offset: int) -> None:
        claim = self._claim
        honest(self, offset)
        self._claim = claim

    honest = Durable.cut
    monkeypatch.setattr(Durable, "cut", forgetful)
    assert finds(late_syncs, "is on disk, but", seeds=range(4, 12))


def test_a_life_that_trusts_what_the_one_before_failed_to_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: only the life in which a sync failed wrote its pages again."""

    def trusting(self: Log, *arguments: Any) -> None:
        honest(self, *arguments)
        self.durable._suspect = False

    honest = Log._recover
    monkeypatch.setattr(Log, "_recover", trusting)
    assert finds(failing_syncs, "is on disk, but", seeds=range(5, 12))


def test_followers_are_cut_at_the_gaps_that_they_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was. Only leaders sync what they rolled here: what is synced is believed, gaps and all."""
    seal, honest = Syncer.seal, _Recovery._is_out_of_place

    def seal_as_leader(self: Syncer, partition: Partition) -> None:
        if partition.is_leader:
            seal(self, partition)

    def strict(self: Any, batch: Any, next_offset: int, *more: Any) -> bool:
        gap = batch.header.base_offset > next_offset and not self._config.compact
        return gap or honest(self, batch, next_offset, *more)

    monkeypatch.setattr(Syncer, "seal", seal_as_leader)
    assert not ClusterSimulation(thinned(1)).run().violations
    monkeypatch.setattr(_Recovery, "_is_out_of_place", strict)
    assert finds(thinned, "was committed", seeds=range(1, 4))
