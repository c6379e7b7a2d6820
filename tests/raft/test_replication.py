"""Replication of the journal: what counts as committed, logs that part, snapshots, observers, disks that fail."""

from __future__ import annotations

import pytest
from tests.raft.world import CLUSTER, World

from ottla.model.errors import ErrorCode
from ottla.model.ids import METADATA_TOPIC_ID
from ottla.raft import events
from ottla.raft.node import JOURNAL_PAUSE_MS, RaftNode
from ottla.raft.replica_progress import describe
from ottla.raft.roles import Leader, Role
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse


def elected(seed: int = 1, size: int = 3, dynamic: bool = False) -> tuple[World, RaftNode]:
    world = World(seed, list(range(1, size + 1)), dynamic=dynamic)
    world.run(5_000)
    assert world.leader is not None
    return world, world.leader


def followers(world: World) -> list[int]:
    return [node_id for node_id, node in world.nodes.items() if not node.is_leader]


def fetch(
    world: World,
    leader: RaftNode,
    offset: int,
    last_epoch: int,
    *,
    epoch: int | None = None,
    replica: int = -1,
    directory: bytes = bytes(16),
) -> FetchResponse:
    partition = FetchRequest.Topic.Partition(
        partition=0,
        current_leader_epoch=leader.epoch if epoch is None else epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        partition_max_bytes=1_000_000,
        replica_directory_id=directory,
    )
    request = FetchRequest(
        cluster_id=CLUSTER,
        replica_id=replica,
        max_wait_ms=0,
        min_bytes=0,
        topics=[FetchRequest.Topic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )
    world.ask(leader.me.id, "fetch", request)
    response = world.replies.pop("fetch")
    assert isinstance(response, FetchResponse)
    return response


def test_what_is_appended_is_committed_everywhere() -> None:
    world, leader = elected()
    for number in range(20):
        world.append(b"%d" % number)
    world.run(1_000)
    assert {node.high_watermark for node in world.nodes.values()} == {leader.journal.end_offset}


def test_followers_hear_of_the_high_watermark_at_once() -> None:
    world, leader = elected()
    world.run(100)
    world.append(b"x")
    world.run(60)  # a fetch that waited for its time would take half a second
    assert {node.high_watermark for node in world.nodes.values()} == {leader.journal.end_offset}


def test_without_a_majority_nothing_is_committed() -> None:
    world, leader = elected()
    for node_id in followers(world):
        world.crash(node_id, tell=False)
    before = leader.high_watermark
    world.append(b"x")
    world.run(1_000)
    assert leader.high_watermark == before < leader.journal.end_offset


def test_what_a_leader_has_not_flushed_does_not_count_for_itself() -> None:
    world, leader = elected()
    world.crash(followers(world)[0], tell=False)
    journal = world.journals[leader.me.id]
    journal.append(b"x", leader.epoch)
    flushed = journal.flushed_offset
    leader.step(events.JournalGrew(), world.now_ms)  # its Flush is never carried out
    other = world.nodes[followers(world)[0]]
    found = fetch(world, leader, journal.end_offset, leader.epoch, replica=other.me.id)
    assert not found.responses[0].partitions[0].error_code
    assert leader.high_watermark <= flushed


def test_an_old_epoch_is_committed_only_with_the_new_one() -> None:
    world, leader = elected()
    old = world.journals[leader.me.id]
    for node_id in followers(world):
        world.faults.cut.add((leader.me.id, node_id))
    old.append(b"lost", leader.epoch)
    world.run(10_000)
    new = world.leader
    assert new is not None and new is not leader
    assert isinstance(new.state, Leader) and new.high_watermark > new.state.epoch_start
    world.settle()
    assert b"lost" not in b"".join(batch.data for batch in old.batches)


def test_logs_that_part_are_cut_back_to_where_they_agree() -> None:
    world, leader = elected()
    for node_id in followers(world):
        world.faults.cut |= {(leader.me.id, node_id), (node_id, leader.me.id)}
    for number in range(5):
        world.journals[leader.me.id].append(b"old %d" % number, leader.epoch)
    world.run(8_000)
    world.append(b"new")
    world.run(1_000)
    world.settle()


def test_fetches_are_checked() -> None:
    world, leader = elected()
    end, epoch = leader.end

    def data(*args: int, **named: int) -> FetchResponse.FetchableTopicResponse.PartitionData:
        return fetch(world, leader, *args, **named).responses[0].partitions[0]

    assert data(end, leader.epoch - 1, epoch=leader.epoch - 1).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert data(end, epoch, epoch=leader.epoch + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert data(-1, epoch).error_code == ErrorCode.INVALID_REQUEST
    assert data(end, epoch + 1).error_code == ErrorCode.INVALID_REQUEST, "nobody has records of an epoch to come"
    beyond = data(end + 5, epoch)
    assert (beyond.diverging_epoch.epoch, beyond.diverging_epoch.end_offset) == (epoch, end)
    follower = world.nodes[followers(world)[0]]
    elsewhere = fetch(world, follower, end, epoch)
    told = elsewhere.responses[0].partitions[0]
    assert told.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert told.current_leader.leader_id == leader.me.id == elsewhere.node_endpoints[0].node_id


def test_a_node_far_behind_loads_a_snapshot() -> None:
    world, leader = elected()
    late = followers(world)[0]
    world.crash(late, tell=False)
    for number in range(30):
        world.append(b"%d" % number)
        world.run(30)
    world.journals[leader.me.id].take_snapshot(leader.high_watermark, [])
    world.append(b"behind it")
    world.run(200)
    world.start(late)
    world.run(3_000)
    assert world.journals[late].start_offset == world.journals[leader.me.id].start_offset > 0
    assert world.nodes[late].high_watermark == leader.high_watermark
    assert any(type(effect).__name__ == "LoadSnapshot" for effect in world.heard[late])


def test_observers_follow_and_do_not_count() -> None:
    world, leader = elected()
    world.add(9)
    world.run(2_000)
    assert world.nodes[9].role is Role.FOLLOWER and not world.nodes[9].is_voter
    assert world.nodes[9].high_watermark == leader.high_watermark
    found = describe(leader, world.now_ms)
    assert found is not None
    voters, observers = found
    assert [view.key.id for view in voters] == [1, 2, 3] and [view.key.id for view in observers] == [9]
    assert all(view.end_offset == leader.journal.end_offset for view in voters)
    for node_id in followers(world):
        if node_id != 9:
            world.crash(node_id, tell=False)
    before = leader.high_watermark
    world.append(b"x")
    world.run(500)
    assert leader.high_watermark == before, "an observer is no voter"


def test_of_too_many_observers_the_quietest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.raft.replica_progress.RAFT_REPLICAS_MAX", 10)
    world, leader = elected()
    end, epoch = leader.end
    for replica in range(100, 130):
        fetch(world, leader, end, epoch, replica=replica)
        world.run(10)
    assert isinstance(leader.state, Leader)
    assert len(leader.state.replicas) == 10
    assert {1, 2, 3, 129} - {leader.me.id} <= {key.id for key in leader.state.replicas}


def test_an_observer_finds_the_next_leader() -> None:
    world, leader = elected()
    world.add(9)
    world.run(1_000)
    world.crash(leader.me.id)
    world.run(300)
    assert world.leader is not None
    assert world.nodes[9].leader_id == world.leader.me.id


def test_a_leader_whose_disk_fails_resigns() -> None:
    world, leader = elected()
    world.step(leader.me.id, events.JournalFailed())
    assert not leader.is_leader
    world.run(1_000)
    assert world.leader is not None and world.leader.epoch > 1


def test_a_sole_voter_whose_disk_fails_leads_again_when_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has nobody to give way to, but must not take itself for elected either: its epoch has no record yet."""
    world, leader = elected(size=1)
    journal, epoch = world.journals[1], leader.epoch
    monkeypatch.setattr(journal, "append_controls", refuse)
    world.step(1, events.JournalFailed())
    assert not leader.is_leader
    for _ in range(3):
        with pytest.raises(OSError, match="read-only"):
            world.run(JOURNAL_PAUSE_MS)
        world.step(1, events.JournalFailed())  # as whoever runs it promises
        assert not leader.is_leader
    monkeypatch.undo()
    world.run(2 * JOURNAL_PAUSE_MS)
    assert leader.is_leader
    assert leader.epoch > epoch
    assert leader.high_watermark == journal.end_offset


def refuse(*_: object) -> None:
    raise OSError("read-only")


def test_nothing_happens_in_a_quiet_quorum_but_fetches() -> None:
    world, _ = elected()
    steps = 0
    original = RaftNode.step

    def counted(self: RaftNode, event: events.Event, now_ms: int) -> list[object]:
        nonlocal steps
        steps += 1
        return original(self, event, now_ms)  # type: ignore[return-value]

    RaftNode.step = counted  # type: ignore[method-assign,assignment]
    try:
        world.run(10_000)
    finally:
        RaftNode.step = original  # type: ignore[method-assign]
    # Two followers fetch twice a second: sent, answered, and some timers.
    assert steps < 200
