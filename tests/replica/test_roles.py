"""Leading and following: what changes hands with the lead, where histories part, what a follower may show."""

from __future__ import annotations

import pytest
from tests.log.logs import NOW_MS, batch, open_log
from tests.replica.cluster import Cluster, code_of, contents
from tests.support.neighbours import ALONE

from ottla.log.config import LogConfig
from ottla.log.log import Origin
from ottla.model.errors import ErrorCode
from ottla.records.control import EndTxnMarker, end_txn_batch
from ottla.replica.partition import READ_COMMITTED, Partition
from ottla.replica.reading import TO_THE_END
from ottla.replica.selector import preferred
from ottla.replica.terms import NO_LEADER, Terms, sole

LATEST = -1


def replicas(cluster: Cluster) -> tuple[Partition, ...]:
    found = tuple(node.partition for node in cluster.nodes.values())
    assert all(found)
    return found  # type: ignore[return-value]


def change_leader(cluster: Cluster, to: int, *told: int) -> None:
    cluster.elect(to)
    for node_id in told or tuple(cluster.nodes):
        cluster.tell(node_id)


def test_only_the_leader_writes_and_answers() -> None:
    _, follower, _ = replicas(Cluster())
    assert not follower.is_leader and follower.leader_id == 1
    calls = [
        lambda: follower.append(batch(), now_ms=NOW_MS),
        lambda: follower.fetch(0, 100),
        lambda: follower.list_offset(LATEST),
        lambda: follower.epoch_end_offset(0),
        lambda: follower.delete_records(0),
        lambda: follower.fetch_as_follower(3, 0, 0, 100, NOW_MS),
    ]
    assert [code_of(call) for call in calls] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * len(calls)
    assert follower.enough_after(0) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_partition_without_terms() -> None:
    partition = Partition("topic", 0, open_log(), neighbours=ALONE, node_id=1)
    assert (partition.is_leader, partition.leader_id, partition.leader_epoch) == (False, NO_LEADER, -1)
    assert partition.follow(Terms(NO_LEADER, 0, 0, (1, 2), (1, 2))) and partition.leader_id == NO_LEADER
    assert partition.lead(sole(1, 1), NOW_MS) and partition.alone


def test_stale_terms_change_nothing() -> None:
    cluster = Cluster()
    leader, follower, _ = replicas(cluster)
    old = cluster.terms
    change_leader(cluster, 2)
    assert (leader.is_leader, follower.is_leader) == (False, True)
    assert not leader.lead(old, NOW_MS) and not follower.follow(old)
    assert (leader.is_leader, follower.is_leader, follower.leader_epoch) == (False, True, 1)


def test_losing_the_lead_is_told() -> None:
    cluster = Cluster()
    cluster.produce(1)
    view = cluster.nodes[1].view
    moves, growths = view.moves, len(view.growths)
    change_leader(cluster, 2)
    assert view.moves == moves + 1 and view.growths[growths:] == [True]
    cluster.settle()
    assert not cluster.waiting and not cluster.acknowledged


def test_what_was_not_replicated_is_cut_off() -> None:
    cluster = Cluster()
    first, second, _ = replicas(cluster)
    cluster.produce(1)
    cluster.replicate()
    cluster.produce(1)
    change_leader(cluster, 2)
    cluster.produce(2)
    cluster.produce(2)
    assert contents(first)[1:] == [b"000002"]
    cuts = first.cuts
    cluster.ask(1)
    assert cluster.answers[0].diverging == (0, 1)
    cluster.answer()
    assert contents(first) == [b"000001"] and first.cuts == cuts + 1
    cluster.replicate()
    assert contents(first) == contents(second) == [b"000001", b"000003", b"000004"]
    assert first.log.epochs.entries == second.log.epochs.entries == [(0, 0), (1, 1)]


def test_histories_that_part_twice() -> None:
    """The leader's epoch is unknown to the follower: it goes back step by step."""
    cluster = Cluster()
    first, second, third = replicas(cluster)
    cluster.produce(1)
    cluster.replicate()
    cluster.produce(1)  # epoch 0, on 1 alone
    cluster.decide(2, (2, 3))
    cluster.tell(2)
    cluster.produce(2)  # epoch 1, on 2 alone
    cluster.decide(1, (1, 3))
    cluster.tell(1)
    cluster.produce(1)  # epoch 2, on 1 alone: it holds epochs 0 and 2
    cluster.decide(2, (2, 3))
    for node_id in (1, 2, 3):
        cluster.tell(node_id)
    cluster.replicate(1, 3, rounds=5)
    assert contents(first) == contents(second) == contents(third) == [b"000001", b"000003"]


def test_a_leader_that_another_one_came_between() -> None:
    """A node that hears of several elections at once (a snapshot of the metadata) may find itself leading still: what
    followers had told it, they may have cut off since."""
    cluster = Cluster()
    cluster.produce(1)
    cluster.replicate()
    cluster.produce(1)
    cluster.replicate(3)  # 1 and 3 have it, 2 does not
    cluster.elect(2)
    cluster.tell(2)
    cluster.tell(3)
    cluster.produce(2)
    cluster.replicate(3)
    assert contents(cluster.nodes[3].partition) == [b"000001", b"000003"]
    cluster.fence(2)
    assert cluster.terms.leader == 1
    cluster.tell(1)
    cluster.check()
    assert [sent.value for sent in cluster.acknowledged] == [b"000001"]
    cluster.fence(1)  # before the third has fetched from it
    cluster.tell(3)
    cluster.check()


def test_a_leader_that_lost_its_log() -> None:
    """An unclean election: followers have more than their leader, and give it up."""
    cluster = Cluster()
    first, second, _ = replicas(cluster)
    cluster.produce(1)
    cluster.replicate()
    second.begin_at(0)
    change_leader(cluster, 2)
    cluster.replicate(1)
    assert (first.log.next_offset, first.high_watermark) == (0, 0)


def test_a_follower_below_the_log_of_its_leader() -> None:
    cluster = Cluster(2)
    leader, follower = replicas(cluster)
    for _ in range(3):
        cluster.produce(1)
    cluster.replicate(2, rounds=1)
    leader.high_watermark = 3
    for _ in range(2):
        cluster.produce(1)
    leader.high_watermark = 5
    leader.log.truncate_fully_and_start_at(5)
    assert cluster.ask(2) == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (follower.log.log_start_offset, follower.log.next_offset, follower.high_watermark) == (5, 5, 5)


def test_an_epoch_without_records_is_forgotten() -> None:
    partition = Partition("topic", 0, open_log(), neighbours=ALONE, node_id=1)
    partition.lead(sole(1, 0), NOW_MS)
    partition.append(batch(), now_ms=NOW_MS)
    partition.log.begin_epoch(3, 1)  # the append it was for failed
    partition.follow(Terms(2, 4, 1, (1, 2), (1, 2)))
    assert partition.truncate_for(0, 1) == 1
    assert partition.log.epochs.latest == 0


def test_watermarks_follow_the_leader_and_never_go_back() -> None:
    cluster = Cluster()
    _, follower, _ = replicas(cluster)
    cluster.produce(1)
    cluster.replicate(rounds=3)
    assert follower.high_watermark == 1
    follower.append_fetched(b"", 0, 0, NOW_MS)
    assert follower.high_watermark == 1
    follower.append_fetched(b"", 99, 0, NOW_MS)
    assert follower.high_watermark == 1, "not beyond its own end"
    follower.truncate_to(0)
    assert follower.high_watermark == 0


def test_the_last_stable_offset_of_a_follower() -> None:
    cluster = Cluster(2)
    leader, follower = replicas(cluster)
    leader.append(batch(producer=7, sequence=0, transactional=True), now_ms=NOW_MS)
    cluster.produce(1)
    cluster.replicate(rounds=3)
    assert (follower.high_watermark, follower.last_stable_offset) == (2, 0)
    marker = end_txn_batch(EndTxnMarker(False, 0), producer_id=7, producer_epoch=0, timestamp=NOW_MS)
    leader.append(marker, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    assert leader.last_stable_offset == 0
    cluster.replicate(2, rounds=1)
    assert (follower.log.next_offset, follower.last_stable_offset) == (3, 0), "the marker is not committed yet"
    cluster.replicate(2, rounds=1)
    assert leader.last_stable_offset == follower.last_stable_offset == 3
    answer = follower.fetch(0, 1 << 20, isolation=READ_COMMITTED, only_leader=False)
    assert answer.aborted == [(7, 0)]


def test_producers_after_a_cut() -> None:
    """What a producer's batch, cut off, had changed is changed back: the same batch is new to the next leader."""
    cluster = Cluster(2)
    leader, follower = replicas(cluster)
    leader.append(batch(producer=7, sequence=0), now_ms=NOW_MS)
    cluster.replicate(2, rounds=1)
    leader.append(batch(producer=7, sequence=1), now_ms=NOW_MS)
    change_leader(cluster, 2)
    assert follower.append(batch(producer=7, sequence=1), now_ms=NOW_MS).first_offset == 1
    cluster.produce(2)
    cluster.replicate(1, rounds=3)
    assert contents(leader) == contents(follower)
    change_leader(cluster, 1)
    assert leader.append(batch(producer=7, sequence=1), now_ms=NOW_MS).duplicate
    assert leader.append(batch(producer=7, sequence=2), now_ms=NOW_MS).first_offset == 3


def test_offsets_of_a_new_leader() -> None:
    cluster = Cluster()
    _, second, _ = replicas(cluster)
    cluster.produce(1)
    cluster.replicate(2, rounds=1)
    change_leader(cluster, 2)
    assert (second.high_watermark, second.epoch_start) == (0, 1)
    for timestamp in (LATEST, NOW_MS):
        assert code_of(lambda when=timestamp: second.list_offset(when)) == ErrorCode.OFFSET_NOT_AVAILABLE
    assert code_of(lambda: second.list_offset(-2)) == ErrorCode.NONE
    assert second.list_offset(LATEST, isolation=TO_THE_END) == (1, -1, 1)
    cluster.replicate(1, 3)
    assert second.list_offset(LATEST) == (1, -1, 1)


def test_consumers_read_from_followers() -> None:
    cluster = Cluster()
    _, follower, _ = replicas(cluster)
    cluster.produce(1)
    cluster.produce(1)
    cluster.replicate(2, rounds=1)
    assert follower.fetch(0, 1 << 20, only_leader=False).records is None, "nothing is committed, as far as it knows"
    cluster.replicate(rounds=3)
    answer = follower.fetch(0, 1 << 20, only_leader=False, current_leader_epoch=0)
    assert answer.records is not None and answer.high_watermark == 2
    assert code_of(lambda: follower.fetch(3, 100, only_leader=False)) == ErrorCode.OFFSET_OUT_OF_RANGE
    stale = code_of(lambda: follower.fetch(0, 100, only_leader=False, current_leader_epoch=5))
    assert stale == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_the_nearest_replica() -> None:
    cluster = Cluster()
    leader, second, _ = replicas(cluster)
    racks = {1: "a", 2: "b", 3: "b"}.get
    assert preferred(leader, 0, "b", racks, NOW_MS) is None, "they have not been heard of"
    cluster.produce(1)
    cluster.replicate()
    assert preferred(leader, 0, "b", racks, NOW_MS) == 3
    assert preferred(leader, 0, "a", racks, NOW_MS) is None
    assert preferred(leader, 0, "", racks, NOW_MS) is None
    assert preferred(leader, 0, "c", racks, NOW_MS) is None
    assert preferred(leader, 2, "b", racks, NOW_MS) is None, "nobody has that"
    cluster.produce(1)
    cluster.replicate(2)
    assert preferred(leader, 0, "b", racks, NOW_MS) == 2, "which is furthest"
    cluster.decide(1, (1, 3))
    cluster.tell(1)
    assert preferred(leader, 0, "b", racks, NOW_MS) == 3, "not in sync any more"
    assert preferred(second, 0, "b", racks, NOW_MS) is None, "only leaders send away"


def test_a_durable_follower_tells_what_is_on_disk() -> None:
    cluster = Cluster(2, config=LogConfig(fsync_before_ack=True))
    leader, follower = replicas(cluster)
    cluster.produce(1)
    cluster.replicate(2, rounds=1)
    assert follower.log.next_offset == 1 and follower.fetch_offset is None and follower.needs_sync
    cluster.nodes[2].sync()
    assert follower.fetch_offset == 1
    cluster.replicate(2, rounds=1)
    assert leader.high_watermark == 0, "the leader's own copy is not on disk"
    cluster.nodes[1].sync()
    assert leader.high_watermark == 1


def test_a_new_durable_leader_puts_what_it_has_on_disk() -> None:
    """Nobody may write to it for long, and what its predecessor acknowledged must count again."""
    cluster = Cluster(2, config=LogConfig(fsync_before_ack=True))
    _, second = replicas(cluster)
    cluster.produce(1)
    cluster.replicate(2, rounds=1)
    change_leader(cluster, 2)
    assert cluster.nodes[2].view.syncs == 1 and second.own_end == 0
    cluster.nodes[2].sync()
    assert second.own_end == 1


def test_a_failed_sync_takes_nothing_back_from_followers() -> None:
    cluster = Cluster(2, config=LogConfig(fsync_before_ack=True))
    leader, _ = replicas(cluster)
    cluster.produce(1)
    leader.log.files_to_sync()
    cuts = leader.cuts
    leader.sync_failed()
    assert leader.cuts == cuts + 1 and leader.log.next_offset == 1


@pytest.mark.parametrize("again", [False, True])
def test_elected_again(again: bool) -> None:
    """The leader's book goes on where it was; only a new leader begins with nothing."""
    cluster = Cluster()
    leader, _, _ = replicas(cluster)
    cluster.produce(1)
    cluster.replicate()
    if not again:
        change_leader(cluster, 2)
    leader.lead(
        cluster.terms._replace(leader=1, leader_epoch=cluster.terms.leader_epoch + 1, partition_epoch=9), cluster.now_ms
    )
    assert leader.in_sync is not None
    ends = [follower.log_end for follower in leader.in_sync.followers.values()]
    assert ends == ([1, 1] if again else [-1, -1])
