"""A simulator that never fails proves nothing: these bugs of replication and consensus, put in on purpose, must be
caught within a few seeds; without them the same seeds find nothing."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from ottla.cluster import journal_check
from ottla.cluster.commands import register_broker
from ottla.cluster.commands.fence import UnregisterBroker
from ottla.cluster.leader_election import Elections, _Draft, _Elected
from ottla.log.log import Log
from ottla.log.recovery.recover import _Recovery
from ottla.machine.kit import Result
from ottla.model.errors import ErrorCode
from ottla.raft import committing, election, membership, upgrade
from ottla.raft.node import RaftNode
from ottla.replica.isr import FollowerState, InSync
from ottla.replica.partition import Partition
from ottla.server.quorum import flushing as quorum_flushing
from ottla.sim.check import Guarantee, SimWriter
from ottla.sim.replicated.run import ClusterSimulation
from ottla.sim.replicated.scenario import BROKER, COMBINED, CONTROLLER, NO_WORKLOADS, ClusterScenario, Voting, clustered
from ottla.sim.scenario import Durability, SimFault
from ottla.sim.world.links import LinkQuality
from ottla.sim.world.loop import SimHost

SEEDS = range(12)


def harsh(
    seed: int, *faults: SimFault, durable: bool = False, acks: int = -1, records: int = 40, chaos_seconds: float = 4.0
) -> ClusterScenario:
    """Three nodes, one partition, one writer, much trouble of a few kinds."""
    base = clustered(seed)
    writers = tuple(
        replace(plan, writer=SimWriter(plan.writer.number, acks == -1, acks), records=records, pause_seconds=0.1)
        for plan in base.writers[:1]
    )
    settings = {name: value for name, value in base.settings.items() if name != "ottla.fsync.before.ack"}
    return replace(
        base,
        durability=Durability.FSYNC_BEFORE_ACK if durable else Durability.PAGE_CACHE,
        guarantee=Guarantee.SAFE,
        partitions=1,
        log_dirs=1,
        writers=writers,
        jumping_readers=0,
        erasers=0,
        faults=dict.fromkeys(faults, 1.0),
        pause_between_faults_seconds=0.5,
        chaos_seconds=chaos_seconds,
        shape=(COMBINED,) * 3,
        spares=(),
        settings=settings | ({"ottla.fsync.before.ack": "true"} if durable else {}),
        operations=0,
        workloads=NO_WORKLOADS,
        voting=Voting.FIXED,
        changes=0,
        topics=None,
    )


def found(make: Callable[[int], ClusterScenario], seeds: Iterable[int] = SEEDS) -> str:
    """The violations of the first seed that has any."""
    for seed in seeds:
        outcome = ClusterSimulation(make(seed)).run()
        if not outcome.ok:
            return "\n".join(outcome.violations)
    return ""


def crashes(seed: int) -> ClusterScenario:
    return harsh(seed, SimFault.KILL, SimFault.ISOLATE)


def busy(seed: int) -> ClusterScenario:
    """The lead moves all the time, and there is always something on its way."""
    return harsh(seed, SimFault.ISOLATE, SimFault.KILL, records=150, chaos_seconds=8.0)


def cuts(seed: int) -> ClusterScenario:
    return harsh(seed, SimFault.ISOLATE, SimFault.SPLIT, acks=1)


def outages(seed: int) -> ClusterScenario:
    return harsh(seed, SimFault.POWER_LOSS, SimFault.POWER_LOSS_IN_WRITE, SimFault.POWER_LOSS_OF_SEVERAL, durable=True)


def one_outage(seed: int) -> ClusterScenario:
    return harsh(seed, SimFault.POWER_LOSS)


def elections(seed: int) -> ClusterScenario:
    """Voters of five controllers come and go, over a slow network."""
    made = harsh(seed, SimFault.ISOLATE, SimFault.KILL, records=10)
    settings = made.settings | {"controller.quorum.auto.join.enable": "true"}
    return replace(
        made,
        shape=(COMBINED,) * 3 + (CONTROLLER,) * 2,
        quality=LinkQuality(latency_seconds=(0.01, 0.1)),
        settings=settings,
        voting=Voting.ALL if seed % 2 else Voting.FIRST,
        changes=5,
    )


def departures(seed: int) -> ClusterScenario:
    """Brokers join, and others leave for good, while much is written."""
    made = harsh(seed, SimFault.KILL, SimFault.FAR_NODE, records=100)
    return replace(made, shape=(COMBINED,) * 3 + (BROKER,) * 2, spares=(BROKER,), operations=4, changes=3)


def upgrades(seed: int) -> ClusterScenario:
    """Fixed voters become ones that change, while now one and then another is not there."""
    made = harsh(seed, SimFault.ISOLATE, SimFault.KILL, records=10)
    return replace(made, voting=Voting.UPGRADED, changes=6)


def damage(seed: int) -> ClusterScenario:
    """Bits flip in the metadata, now of one node, then of another."""
    return replace(harsh(seed, SimFault.METADATA_ROT, records=10), pause_between_faults_seconds=1.0, operations=4)


def slow_writes(seed: int) -> ClusterScenario:
    """The lead moves while disks make their writers wait."""
    return harsh(seed, SimFault.SLOW_DISK, SimFault.ISOLATE, SimFault.KILL, records=150, chaos_seconds=8.0)


@pytest.mark.parametrize(
    "make", [crashes, cuts, outages, one_outage, elections, departures, upgrades, damage, slow_writes]
)
def test_without_a_mutation_nothing_is_found(make: Callable[[int], ClusterScenario]) -> None:
    for seed in SEEDS[:3]:
        assert not ClusterSimulation(make(seed)).run().violations


def test_a_high_watermark_that_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InSync, "high_watermark", lambda self, own_end, *others: own_end)
    assert "which is in sync, has only" in found(crashes)


def test_acknowledging_before_the_others_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "enough_after", lambda self, offset: ErrorCode.NONE)
    violations = found(busy, range(50, 60))  # one seed in fifty shows it
    assert any(word in violations for word in ("is now", "lost", "went back"))


def test_showing_what_waits_to_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Log, "written_offset", property(lambda log: log.next_offset))
    assert found(slow_writes)


def test_members_of_the_isr_that_lack_something(monkeypatch: pytest.MonkeyPatch) -> None:
    def weak(seed: int) -> ClusterScenario:
        return harsh(seed, SimFault.POWER_LOSS, SimFault.KILL, records=150, chaos_seconds=8.0)

    def anybody(self: InSync, follower: FollowerState, least: int, around: Any) -> bool:
        return follower.log_end >= 0 and follower.broker_id not in self.isr

    monkeypatch.setattr(InSync, "_can_join", anybody)
    assert "which is in sync, has only" in found(weak)


def test_followers_that_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partition, "truncate_for", lambda self, epoch, end_offset, now_ms=0: self.log.next_offset)
    assert found(cuts)


def test_leaders_that_lack_what_was_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first replica that is up, in sync or not."""

    def restless(seed: int) -> ClusterScenario:
        """Who comes back is not in sync for a moment: the next must go before that is over."""
        made = harsh(seed, SimFault.KILL, records=150, chaos_seconds=8.0)
        return replace(made, pause_between_faults_seconds=0.1)

    def anybody(self: Elections, draft: _Draft, _: Any) -> _Elected:
        for broker_id in draft.replicas:
            if self._may_lead(draft.partition, broker_id):
                return _Elected(broker_id, True)
        return _Elected(-1, False)

    assert not ClusterSimulation(restless(0)).run().violations
    monkeypatch.setattr(Elections, "_elect", anybody)
    assert "was committed" in found(restless)


def test_trusting_whoever_lost_power(monkeypatch: pytest.MonkeyPatch) -> None:
    """KIP-966: who comes back after an unclean end is in no ISR."""
    monkeypatch.setattr(register_broker, "_without", lambda view, broker_id, *, clean: iter(()))
    assert found(one_outage)


def test_followers_that_acknowledge_before_their_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    def dark(seed: int) -> ClusterScenario:
        """Syncs are slow, also those of votes, and all machines lose power at once, now and then."""
        made = harsh(seed, SimFault.POWER_LOSS_OF_SEVERAL, durable=True, records=500, chaos_seconds=10.0)
        writers = tuple(replace(plan, pause_seconds=0.02) for plan in made.writers)
        settings = made.settings | {"controller.quorum.election.timeout.ms": "4000"}
        return replace(made, pause_between_faults_seconds=2.0, writers=writers, settings=settings)

    monkeypatch.setattr(SimHost, "WORKER_DELAY_SECONDS", (0.1, 0.4))
    assert not ClusterSimulation(dark(0)).run().violations
    monkeypatch.setattr(Partition, "fetch_offset", property(lambda self: self.log.next_offset))
    monkeypatch.setattr(Partition, "own_end", property(lambda self: self.log.next_offset))
    assert "was committed" in found(dark)


def test_voting_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def contested(seed: int) -> ClusterScenario:
        """Elections that begin together, because nobody hears of the others in time."""
        made = harsh(seed, SimFault.KILL_SEVERAL)
        times = dict.fromkeys(("election.timeout.ms", "election.backoff.max.ms"), "100")
        quality = LinkQuality(latency_seconds=(0.02, 0.15))
        settings = {f"controller.quorum.{name}": value for name, value in times.items()}
        return replace(made, quality=quality, settings=made.settings | settings)

    assert not ClusterSimulation(contested(0)).run().violations
    monkeypatch.setattr(election, "_elects", lambda node, candidate, up_to_date: True)
    assert "quorum: " in found(contested)


def test_voting_for_whoever_knows_less(monkeypatch: pytest.MonkeyPatch) -> None:
    honest_vote, honest_question = election._elects, election._would_elect
    monkeypatch.setattr(election, "_elects", lambda node, candidate, _: honest_vote(node, candidate, True))
    monkeypatch.setattr(election, "_would_elect", lambda node, last, _: honest_question(node, last, True))
    assert "quorum: " in found(lambda seed: replace(crashes(seed), operations=6))


def test_metadata_that_a_minority_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(node: Any, state: Any) -> list[Any]:
        return [replace_end(each, node.journal.end_offset) for each in honest(node, state)]

    def replace_end(progress: Any, end_offset: int) -> Any:
        progress.end_offset = end_offset
        return progress

    honest = committing.voter_progress
    monkeypatch.setattr(committing, "voter_progress", hasty)
    assert "quorum: " in found(crashes)


def test_metadata_that_was_never_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quorum_flushing, "_sync_all", lambda files: None)
    assert found(outages)


def test_two_changes_of_the_voters_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = membership._refusal

    def hasty(node: Any, cluster_id: str | None) -> tuple[ErrorCode, str]:
        error, message = honest(node, cluster_id)
        return (ErrorCode.NONE, "") if "not finished" in message else (error, message)

    monkeypatch.setattr(membership, "_refusal", hasty)
    assert "although the last change is not committed" in found(elections, range(12, 36))


def test_a_leader_that_removed_itself_and_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = RaftNode.is_voter
    monkeypatch.setattr(RaftNode, "is_voter", property(lambda self: self.is_leader or honest.fget(self)))
    assert "is committed, but node" in found(elections)


def test_new_voters_that_count_only_when_they_are_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record that adds a voter would be committed by those that were voters before."""

    def committed(self: RaftNode) -> Any:
        sets = [voters for offset, voters in self.history._sets if offset < max(self.high_watermark, 0)]
        return sets[-1] if sets else self.history.latest

    monkeypatch.setattr(RaftNode, "voters", property(committed))
    assert "quorum: " in found(elections)


def test_an_upgrade_that_does_not_wait_for_all_voters(monkeypatch: pytest.MonkeyPatch) -> None:
    """From kraft.version 1 on a voter is a node with its directory, and those that are not there have told none."""
    monkeypatch.setattr(upgrade, "refusal", lambda node, level: None)
    assert "vote, whatever its directory is" in found(upgrades)


def test_brokers_that_are_forgotten_in_words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnregisterBroker, "decide", lambda self, view, now_ms: Result())
    assert "was forgotten, and is still known" in found(departures)


def test_moves_that_do_not_wait_for_the_new_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker is drained, stopped and forgotten, and nobody has what it had."""

    def at_once(self: _Draft) -> None:
        if self.adding or self.removing:
            replicas = tuple(each for each in self.replicas if each not in self.removing)
            self.isr, self.replicas, self.adding, self.removing = replicas, replicas, (), ()

    monkeypatch.setattr(_Draft, "finish_move", at_once)
    assert any(word in found(departures) for word in ("which is in sync, has only", "was committed"))


def test_damaged_metadata_that_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Recovery, "_is_sound", lambda self, batch: True)
    monkeypatch.setattr(journal_check, "check", lambda data, position, header: None)
    monkeypatch.setattr(ClusterSimulation, "step_limit", 40_000)  # some never come to rest
    assert "CORRUPT_MESSAGE" in found(damage)
