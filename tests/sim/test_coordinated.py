"""Groups, copiers and share groups under chaos: seeds that failed once, some others, and bugs that must be found.

A mutation is tried on workloads and a kind of trouble that bring it to light within a few seeds; without the mutation
the same seeds find nothing.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ottla.client.assign import ASSIGNORS
from ottla.groups.consumer import reconcile
from ottla.groups.offsets.commit import CommitOffsets
from ottla.groups.offsets.store import OffsetStore
from ottla.log.log import Log
from ottla.model.ids import TopicPartition
from ottla.replica.partition import Partition
from ottla.server.shares.stored_changes import StoredChanges
from ottla.shares.partition.partition import SharePartition
from ottla.shares.partition.terms import AckType
from ottla.sim.check import Guarantee, SimWriter
from ottla.sim.coordinated import CoordinatedSimulation, WorkloadPlans, coordinated
from ottla.sim.copying import CopyPlan
from ottla.sim.grouping import GroupPlan
from ottla.sim.scenario import Durability, Scenario, SimFault
from ottla.sim.seeds import kept_seeds
from ottla.sim.shares.member import AcknowledgementRates
from ottla.sim.shares.sharing import SharePlan

KEPT = kept_seeds(Path(__file__).with_name("coordinated_seeds.txt"))
SAMPLE = range(9000, 9008)


@pytest.mark.parametrize("seed", [*KEPT, *SAMPLE])
def test_seed(seed: int) -> None:
    outcome = CoordinatedSimulation(coordinated(seed)).run()
    assert outcome.ok, f"replay with: make sim KIND=coordinated SEED={seed}\n" + "\n".join(outcome.violations)


def test_a_seed_tells_the_same_story_twice() -> None:
    first, second = (CoordinatedSimulation(coordinated(4)).run() for _ in range(2))
    assert first.trace == second.trace


GROUP = GroupPlan("g", "classic", ("range",), 3, 0, life_seconds=6.0, crash_rate=0.5)
MODERN = replace(GROUP, protocol="consumer")
GROUPS = WorkloadPlans(groups=(GROUP,), copying=None, sharing=None)
MODERN_GROUPS = WorkloadPlans(groups=(MODERN,), copying=None, sharing=None)
COPIERS = WorkloadPlans(
    groups=(), copying=CopyPlan(replace(GROUP, name="copiers"), partitions=2, twins=0), sharing=None
)
RATES = AcknowledgementRates(0.5, 0.4, 0.05)
QUEUE = SharePlan("queue", 3, 0, 3, RATES, life_seconds=10.0, crash_rate=0.5, snapshot_every=10)
SHARES = WorkloadPlans(groups=(), copying=None, sharing=QUEUE)


def durable(seed: int, *faults: SimFault, records: int = 60, chaos_seconds: float = 15.0) -> Scenario:
    """Little to read, much to decide."""
    base = coordinated(seed)
    writers = tuple(
        replace(plan, writer=SimWriter(plan.writer.number, True, -1), records=records, pause_seconds=0.2)
        for plan in base.writers[:1]
    )
    return replace(
        base,
        durability=Durability.FSYNC_BEFORE_ACK,
        guarantee=Guarantee.SAFE,
        topic_configs={"ottla.fsync.before.ack": "true"},
        partitions=3,
        writers=writers,
        following_readers=0,
        jumping_readers=0,
        erasers=0,
        faults=dict.fromkeys(faults, 1.0),
        chaos_seconds=chaos_seconds,
        pause_between_faults_seconds=3.0,
    )


def found(plans: WorkloadPlans, *faults: SimFault, seeds: range = range(6), **work: Any) -> str:
    """The violations of the first seed that has any."""
    for seed in seeds:
        outcome = CoordinatedSimulation(durable(seed, *faults, **work), plans=plans).run()
        if not outcome.ok:
            return "\n".join(outcome.violations)
    return ""


@pytest.mark.parametrize("plans", [GROUPS, MODERN_GROUPS, COPIERS, SHARES])
def test_without_a_mutation_nothing_is_found(plans: WorkloadPlans) -> None:
    assert not found(plans, SimFault.POWER_LOSS, SimFault.CUT, seeds=range(2))


# -- groups


def test_a_leader_that_gives_everything_to_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    def everything(members: dict[str, Any], counts: dict[str, int]) -> dict[str, list[TopicPartition]]:
        return {member: [TopicPartition("t", index) for index in range(counts["t"])] for member in members}

    monkeypatch.setitem(ASSIGNORS, "range", everything)
    assert "both own it in generation" in found(GROUPS, SimFault.KILL)


def shows_two_owners(violations: str) -> bool:
    return any(words in violations for words in ("both own it", "both committed", "although"))


def test_a_target_that_does_not_wait_for_who_owns_it_now(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = reconcile._next

    def hasty(member: Any, goal: Any, reported: Any, epoch: int) -> Any:
        return honest(member, goal._replace(is_free=lambda topic_id, partition: True), {}, epoch)

    monkeypatch.setattr(reconcile, "_next", hasty)
    assert shows_two_owners(found(MODERN_GROUPS, SimFault.CUT))


def test_commits_of_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CommitOffsets, "_check_committer", lambda self, view: None)
    steady = WorkloadPlans(groups=(replace(GROUP, life_seconds=1000.0),), copying=None, sharing=None)
    violations = found(steady, SimFault.CLIENT_PAUSE, seeds=range(16, 22), records=300, chaos_seconds=25.0)
    assert shows_two_owners(violations) or "went back" in violations


def test_commits_that_are_acknowledged_before_they_are_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Partition._set_durable

    def careless(self: Partition, config: Any) -> None:
        honest(self, config)
        self.durable &= not self.topic.startswith("__")

    monkeypatch.setattr(Partition, "_set_durable", careless)
    violations = found(GROUPS, SimFault.POWER_LOSS)
    assert "went back" in violations or "is forgotten" in violations


# -- transactions


def test_offsets_of_aborted_transactions_that_count(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = OffsetStore.end_transaction
    monkeypatch.setattr(
        OffsetStore, "end_transaction", lambda self, producer_id, *, commit: honest(self, producer_id, commit=True)
    )
    violations = found(COPIERS, SimFault.KILL)
    assert "were not copied" in violations or "nobody committed" in violations


def test_offsets_of_committed_transactions_that_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = OffsetStore.end_transaction
    monkeypatch.setattr(
        OffsetStore,
        "end_transaction",
        lambda self, producer_id, *, commit: honest(self, producer_id, commit=commit and producer_id % 2 == 0),
    )
    assert "copied twice" in found(COPIERS, SimFault.KILL)


def test_aborted_records_that_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Log.read_committed

    def forgetful(self: Log, *place: Any, **bounds: Any) -> Any:
        return honest(self, *place, **bounds)[0], []

    monkeypatch.setattr(Log, "read_committed", forgetful)
    violations = found(COPIERS, SimFault.KILL)
    assert "was never committed and is seen" in violations or "was copied twice" in violations


# -- shares


def test_acknowledgements_that_are_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoredChanges, "store", lambda self, live, change, done: done(None))
    assert "gets it although it is done" in found(SHARES, SimFault.KILL)


def test_locks_that_do_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SharePartition.acquire

    def greedy(self: SharePartition, spans: Any, offset: int, want: Any, now_ms: int) -> Any:
        self.settle(self._release(list(self.ranges), now_ms).token) if self.next_lock_ms() is not None else None
        return honest(self, spans, offset, want, now_ms)

    monkeypatch.setattr(SharePartition, "acquire", greedy)
    violations = found(SHARES, SimFault.RESTART)
    assert "holds it" in violations


def changed(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any, AckType], AckType]) -> None:
    honest = SharePartition._become

    def become(self: SharePartition, item: Any, kind: AckType, *rest: Any, **options: Any) -> None:
        honest(self, item, change(item, kind), *rest, **options)

    monkeypatch.setattr(SharePartition, "_become", become)


def test_releases_that_are_rejections(monkeypatch: pytest.MonkeyPatch) -> None:
    changed(monkeypatch, lambda item, kind: AckType.REJECT if kind is AckType.RELEASE else kind)
    # Where no answers are lost: what nobody saw may have been delivered to its limit.
    steady = replace(QUEUE, delivery_limit=10, life_seconds=1000.0)
    assert "neither done nor to be had" in found(replace(SHARES, sharing=steady), SimFault.SLOW_DISK)


def test_deliveries_that_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(item: Any, kind: AckType) -> AckType:
        item.count -= kind is AckType.RELEASE
        return kind

    changed(monkeypatch, forget)
    assert "answered releases" in found(SHARES, SimFault.RESTART)


def test_deliveries_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SharePartition._become

    def become(self: SharePartition, *rest: Any, **options: Any) -> None:
        rules = self.rules
        self.rules = rules._replace(delivery_limit=1000)
        honest(self, *rest, **options)
        self.rules = rules

    monkeypatch.setattr(SharePartition, "_become", become)
    assert "but 3 is the limit" in found(SHARES, SimFault.RESTART)
