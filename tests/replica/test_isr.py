"""The leader's book: who is in sync, how far the high watermark may go, what the controller is asked."""

from __future__ import annotations

import pytest
from tests.log.logs import NOW_MS, batch
from tests.replica.cluster import LAG_MS, Cluster, Crash, code_of

from ottla.log.config import LogConfig
from ottla.model.errors import ErrorCode
from ottla.replica.isr import Pulse
from ottla.replica.partition import ACKS_ALL, Partition
from ottla.replica.terms import Proposal

MIN_TWO = LogConfig(min_insync_replicas=2)


def leader(cluster: Cluster) -> Partition:
    partition = cluster.nodes[cluster.terms.leader].partition
    assert partition is not None and partition.is_leader
    return partition


def shrink(cluster: Cluster, *gone: int) -> None:
    """The others fall behind, and the controller agrees to go on without them."""
    for node_id in gone:
        cluster.fence(node_id)
    for node_id in cluster.nodes:
        cluster.tell(node_id)


def test_the_high_watermark_is_the_lowest_end_in_sync() -> None:
    cluster = Cluster()
    partition = leader(cluster)
    cluster.produce(1)
    assert partition.high_watermark == 0
    cluster.replicate(2)
    assert (partition.high_watermark, partition.log.next_offset) == (0, 1)
    cluster.replicate(3)
    assert partition.high_watermark == 1
    assert partition.enough_after(1) == ErrorCode.NONE and partition.enough_after(2) is None


def test_a_high_watermark_that_moves_is_told() -> None:
    cluster = Cluster()
    view = cluster.nodes[1].view
    moves = view.moves
    cluster.produce(1)
    assert view.growths[-1] is True and view.moves == moves
    cluster.replicate(2, 3)
    assert view.moves > moves and view.growths[-1] is False  # followers learn of it with what comes next


def test_a_lagging_follower_leaves() -> None:
    cluster = Cluster()
    partition = leader(cluster)
    cluster.replicate(2, 3)
    cluster.produce(1)
    cluster.now_ms += LAG_MS
    cluster.replicate(2)
    assert partition.isr_proposal(cluster.now_ms) is None
    cluster.now_ms += 1
    proposal = partition.isr_proposal(cluster.now_ms)
    assert proposal == Proposal(0, 0, ((1, 0), (2, 0)))
    assert partition.isr_proposal(cluster.now_ms) is None, "one at a time"
    assert partition.high_watermark == 0, "not before the controller has agreed"
    partition.proposal_accepted(cluster.terms._replace(isr=(1, 2), partition_epoch=1), cluster.now_ms)
    assert partition.high_watermark == 1 and partition.partition_epoch == 1


def test_a_follower_that_has_everything_does_not_lag() -> None:
    cluster = Cluster()
    cluster.produce(1)
    cluster.replicate(2, 3)
    cluster.now_ms += 100 * LAG_MS
    assert leader(cluster).isr_proposal(cluster.now_ms) is None


def test_a_follower_under_steady_load_does_not_lag() -> None:
    """Its fetches are never at the very end, but each reaches what was the end at the one before."""
    cluster = Cluster()
    for _ in range(5):
        cluster.produce(1)
        for node_id in (2, 3):
            cluster.ask(node_id)
        cluster.produce(1)
        while cluster.answers:
            cluster.answer()
        cluster.now_ms += LAG_MS // 2
        assert leader(cluster).isr_proposal(cluster.now_ms) is None


def test_an_idle_session_is_heard_of() -> None:
    """Partitions of an idle session are not visited: the pulse of the session says that the follower was there."""
    cluster = Cluster(2)
    partition = leader(cluster)
    pulse = Pulse(cluster.now_ms)
    partition.fetch_as_follower(2, 0, 0, 1, cluster.now_ms, current_leader_epoch=0, pulse=pulse)
    pulse.heard_ms = cluster.now_ms + 10 * LAG_MS
    partition.append(batch(), now_ms=pulse.heard_ms + 5)
    assert partition.isr_proposal(pulse.heard_ms + LAG_MS) is None
    assert partition.isr_proposal(pulse.heard_ms + LAG_MS + 1) is not None


def test_a_follower_joins_when_it_has_what_is_committed() -> None:
    cluster = Cluster()
    shrink(cluster, 3)
    partition = leader(cluster)
    for _ in range(3):
        cluster.produce(1)
    cluster.replicate(2)
    assert partition.high_watermark == 3
    cluster.unfence(3)
    cluster.tell(1)
    cluster.ask(3, max_bytes=1)
    assert partition.isr_proposal(cluster.now_ms) is None, "it has nothing yet"
    considered = cluster.nodes[1].view.considered
    cluster.replicate(3, rounds=3)
    assert cluster.nodes[1].view.considered > considered
    proposal = partition.isr_proposal(cluster.now_ms)
    assert proposal is not None and proposal.members == (1, 2, 3)
    # It counts from now on, as if it were a member already, even if it lags again.
    cluster.now_ms += LAG_MS + 1
    cluster.produce(1)
    cluster.replicate(2)
    assert partition.high_watermark == 3
    cluster.replicate(3)
    assert partition.high_watermark == 4


@pytest.mark.parametrize("obstacle", ["fenced", "another life", "unknown"])
def test_who_may_not_join(obstacle: str) -> None:
    cluster = Cluster()
    shrink(cluster, 3)
    partition = leader(cluster)
    epochs = {1: 0, 2: 0, 3: 0}
    if obstacle == "fenced":
        del epochs[3]
    elif obstacle == "another life":
        epochs[3] = -5  # what this leader believes is older than what the follower says
    cluster.nodes[1].view.decision = cluster.decision._replace(epochs=epochs)
    if obstacle != "unknown":
        cluster.ask(3)
    assert partition.isr_proposal(cluster.now_ms) is None


def test_nobody_joins_below_the_beginning_of_the_epoch() -> None:
    """A new leader's high watermark may lag behind what is committed; its own end does not."""
    cluster = Cluster()
    cluster.produce(1)
    cluster.replicate(2, rounds=1)
    cluster.fence(3)
    cluster.elect(2)
    cluster.tell(2)
    partition = leader(cluster)
    assert (partition.high_watermark, partition.epoch_start) == (0, 1)
    cluster.unfence(3)
    for node_id in (2, 3):
        cluster.tell(node_id)
    cluster.ask(3)
    assert partition.isr_proposal(cluster.now_ms) is None
    cluster.answer()
    cluster.ask(3)
    proposal = partition.isr_proposal(cluster.now_ms)
    assert proposal is not None and 3 in proposal.members


def test_caught_up_but_not_yet_a_member_holds_the_high_watermark() -> None:
    """Else it would never join: each append would put the high watermark beyond it."""
    cluster = Cluster()
    cluster.produce(1)
    cluster.replicate()
    shrink(cluster, 3)
    cluster.unfence(3)
    for node_id in cluster.nodes:
        cluster.tell(node_id)
    cluster.replicate()
    cluster.produce(1)
    cluster.replicate(2)
    partition = leader(cluster)
    assert partition.high_watermark == 1
    cluster.now_ms += LAG_MS + 1
    cluster.ask(2)
    cluster.produce(1)
    cluster.replicate(2)
    assert partition.high_watermark == 3, "it had its time"


def test_too_few_in_sync() -> None:
    cluster = Cluster(config=MIN_TWO)
    partition = leader(cluster)
    cluster.produce(1)
    shrink(cluster, 2, 3)
    assert cluster.produce(1) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.append(batch(), now_ms=NOW_MS, acks=1).first_offset == 1
    assert partition.high_watermark == 0, "KIP-966: not with fewer than the minimum"
    assert partition.enough_after(1) is None
    partition.configure(MIN_TWO._replace(min_insync_replicas=1))
    assert partition.high_watermark == 2
    assert partition.enough_after(1) == ErrorCode.NONE
    partition.configure(MIN_TWO)
    assert partition.enough_after(1) == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_no_more_can_be_in_sync_than_there_are() -> None:
    cluster = Cluster(2, config=LogConfig(min_insync_replicas=5))
    assert cluster.produce(1) == ErrorCode.NONE
    cluster.replicate(2)
    assert leader(cluster).enough_after(1) == ErrorCode.NONE


@pytest.mark.parametrize(
    ("error", "again", "pending"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, False, False),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, False, False),
        (ErrorCode.INVALID_UPDATE_VERSION, False, True),
        (ErrorCode.FENCED_LEADER_EPOCH, False, True),
        (ErrorCode.NOT_CONTROLLER, True, True),
        (ErrorCode.REQUEST_TIMED_OUT, True, True),
    ],
)
def test_refusals(error: ErrorCode, again: bool, pending: bool) -> None:
    cluster = Cluster()
    shrink(cluster, 3)
    cluster.unfence(3)
    for node_id in cluster.nodes:
        cluster.tell(node_id)
    cluster.replicate(3)
    partition = leader(cluster)
    assert partition.isr_proposal(cluster.now_ms) is not None and partition.in_sync is not None
    assert partition.proposal_refused(error, cluster.now_ms) is again
    assert (partition.in_sync.pending is not None) is pending
    assert (3 in partition.in_sync.maximal) is pending, "it may be a member by now"
    cluster.decide(1, (1, 2))
    cluster.tell(1)
    assert partition.in_sync.pending is None and 3 not in partition.in_sync.maximal


def _third_put_out() -> Cluster:
    """One record that 2 has and 3 has not, when the controller takes 3 out of the ISR: its disk failed."""
    cluster = Cluster()
    cluster.replicate(2, 3)
    cluster.produce(1)
    cluster.replicate(2)
    cluster.replicate(2)
    cluster.decide(1, (1, 2))
    cluster.tell(1)
    return cluster


def test_who_leaves_outside_the_isr_is_not_waited_for() -> None:
    cluster = _third_put_out()
    partition = leader(cluster)
    assert partition.high_watermark == 0, "it was caught up a moment ago and may come back"
    cluster.fence(3)
    cluster.nodes[1].view.decision = cluster.decision
    moves = cluster.nodes[1].view.moves
    partition.broker_left(3, cluster.now_ms)
    assert (partition.high_watermark, cluster.nodes[1].view.moves) == (1, moves + 1)


def test_who_may_not_join_is_not_waited_for() -> None:
    cluster = _third_put_out()
    partition = leader(cluster)
    assert partition.isr_proposal(cluster.now_ms) is not None, "it would have 3 back"
    cluster.fence(3)
    cluster.nodes[1].view.decision = cluster.decision
    partition.broker_left(3, cluster.now_ms)
    assert partition.high_watermark == 0, "3 may be a member by now"
    assert not partition.proposal_refused(ErrorCode.INELIGIBLE_REPLICA, cluster.now_ms)
    assert partition.high_watermark == 1


def test_the_same_terms_again_leave_a_proposal_under_way() -> None:
    cluster = Cluster()
    shrink(cluster, 3)
    cluster.unfence(3)
    for node_id in cluster.nodes:
        cluster.tell(node_id)
    cluster.replicate(3)
    partition = leader(cluster)
    assert partition.isr_proposal(cluster.now_ms) is not None and partition.in_sync is not None
    assert partition.lead(cluster.terms, cluster.now_ms) is False
    assert partition.in_sync.pending is not None and 3 in partition.in_sync.maximal


def test_an_answer_to_an_older_proposal() -> None:
    cluster = Cluster()
    partition = leader(cluster)
    cluster.decide(1, (1, 3))
    cluster.tell(1)
    partition.proposal_accepted(cluster.terms._replace(isr=(1, 2), partition_epoch=0), cluster.now_ms)
    assert partition.in_sync is not None and partition.in_sync.isr == (1, 3)


def test_fetches_of_those_who_are_no_followers() -> None:
    cluster = Cluster()
    partition = leader(cluster)

    def fetch(replica_id: int, *, broker_epoch: int = -1, epoch: int = -1) -> ErrorCode:
        return code_of(
            lambda: partition.fetch_as_follower(replica_id, broker_epoch, 0, 100, NOW_MS, current_leader_epoch=epoch)
        )

    assert fetch(9) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fetch(9, epoch=0) == ErrorCode.UNKNOWN_LEADER_EPOCH, "it may have been added just now"
    assert fetch(2, epoch=1) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert fetch(2, epoch=0) == ErrorCode.NONE
    cluster.crash(2, Crash.PROCESS)
    cluster.restart(2)
    cluster.unfence(2)
    cluster.tell(1)
    assert fetch(2, broker_epoch=0) == ErrorCode.NOT_LEADER_OR_FOLLOWER, "of its life before"
    assert fetch(2, broker_epoch=1) == ErrorCode.NONE
    cluster.elect(3)
    cluster.tell(1)
    assert fetch(2) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert fetch(2, epoch=0) == ErrorCode.FENCED_LEADER_EPOCH


def test_a_replica_that_is_added() -> None:
    cluster = Cluster(2)
    partition = leader(cluster)
    cluster.produce(1)
    cluster.replicate(2)
    partition.lead(cluster.terms._replace(replicas=(1, 2, 7), adding=(7,), partition_epoch=1), cluster.now_ms)
    cluster.nodes[1].view.decision = cluster.decision._replace(epochs={1: 0, 2: 0, 7: 4})
    assert partition.in_sync is not None and partition.in_sync.followers[2].log_end == 1, "what is known stays known"
    partition.fetch_as_follower(7, 4, 1, 100, cluster.now_ms, current_leader_epoch=0)
    proposal = partition.isr_proposal(cluster.now_ms)
    assert proposal is not None and proposal.isr == ((1, 0), (2, 0), (7, 4))
    partition.lead(cluster.terms._replace(replicas=(1,), isr=(1,), partition_epoch=2), cluster.now_ms)
    assert partition.alone and partition.append(batch(), now_ms=NOW_MS, acks=ACKS_ALL).first_offset == 1
    assert partition.high_watermark == 2


def test_the_low_watermark() -> None:
    cluster = Cluster()
    partition = leader(cluster)
    for _ in range(3):
        cluster.produce(1)
    cluster.replicate()
    assert partition.delete_records(2) == 2 and partition.low_watermark == 0
    cluster.replicate(2, 3)
    assert partition.low_watermark == 2
    follower = cluster.nodes[2].partition
    assert follower is not None and follower.log.log_start_offset == 2
    assert code_of(lambda: follower.delete_records(3)) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition.delete_records(3)
    shrink(cluster, 2)
    cluster.replicate(3)
    assert partition.low_watermark == 3, "who is not alive is not waited for"
