"""Changing the voters while the quorum runs (KIP-853)."""

from __future__ import annotations

from typing import Any

from tests.raft.memory import MemoryJournal
from tests.raft.world import CLUSTER, World, disk_of, endpoint, voter

from ottla.model.errors import ErrorCode
from ottla.raft import events
from ottla.raft.lost_disk import may_stand
from ottla.raft.node import RaftNode
from ottla.raft.voters import QuorumEndpoint, VoterSet, encode_kraft_version
from ottla.wire.messages.quorum.add_raft_voter import AddRaftVoterRequest
from ottla.wire.messages.quorum.remove_raft_voter import RemoveRaftVoterRequest
from ottla.wire.messages.quorum.update_raft_voter import UpdateRaftVoterRequest


def elected(size: int = 3, *, dynamic: bool = True) -> tuple[World, RaftNode]:
    world = World(1, list(range(1, size + 1)), dynamic=dynamic)
    world.run(5_000)
    assert world.leader is not None
    return world, world.leader


def add(world: World, leader: RaftNode, node_id: int, *, ack_when_committed: bool = True) -> Any:
    listener = AddRaftVoterRequest.Listener(name="CONTROLLER", host=f"node{node_id}", port=9000 + node_id)
    request = AddRaftVoterRequest(
        cluster_id=CLUSTER,
        timeout_ms=2_000,
        voter_id=node_id,
        voter_directory_id=disk_of(max(node_id, 0)),
        listeners=[listener],
        ack_when_committed=ack_when_committed,
    )
    world.ask(leader.me.id, "add", request)
    world.run(3_000)
    return world.replies.pop("add")


def remove(world: World, leader: RaftNode, node_id: int, directory: bytes | None = None) -> Any:
    request = RemoveRaftVoterRequest(
        cluster_id=CLUSTER, voter_id=node_id, voter_directory_id=directory or disk_of(node_id)
    )
    world.ask(leader.me.id, "remove", request)
    world.run(3_000)
    return world.replies.pop("remove")


def test_the_formatters_voters_become_part_of_the_log() -> None:
    world, leader = elected()
    assert leader.history.kraft_version == 1 and leader.history.latest_offset > 0
    empty = MemoryJournal()
    empty.append_fetched(world.journals[leader.me.id].read(0, 1 << 20))
    assert VoterSet.decode(empty.quorum_records()[-1].value) == leader.voters


def test_a_voter_is_added_and_counts() -> None:
    world, leader = elected()
    world.add(4)
    world.run(2_000)
    assert add(world, leader, 4).error_code == ErrorCode.NONE
    assert all(4 in node.voters for node in world.nodes.values())
    for node_id in [each for each in world.nodes if each not in (4, leader.me.id)][:1]:
        world.crash(node_id, tell=False)
    world.append(b"three of four")
    world.run(1_000)
    assert leader.high_watermark == leader.journal.end_offset


def test_who_cannot_be_added() -> None:
    world, leader = elected()
    assert add(world, leader, 2).error_code == ErrorCode.DUPLICATE_VOTER
    assert add(world, leader, 7).error_code == ErrorCode.REQUEST_TIMED_OUT, "nobody listens there"
    assert add(world, leader, -7).error_code == ErrorCode.INVALID_REQUEST
    assert add(world, leader, 0).error_code == ErrorCode.INVALID_REQUEST, "it has no directory"
    follower = next(node for node in world.nodes.values() if not node.is_leader)
    assert add(world, follower, 7).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    fixed, fixed_leader = elected(dynamic=False)
    assert add(fixed, fixed_leader, 7).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_one_change_at_a_time() -> None:
    world, leader = elected()
    for node_id in world.nodes:
        if node_id != leader.me.id:
            world.faults.cut.add((node_id, leader.me.id))  # nothing can be committed
    follower = next(node_id for node_id in world.nodes if node_id != leader.me.id)
    request = RemoveRaftVoterRequest(cluster_id=CLUSTER, voter_id=follower, voter_directory_id=disk_of(follower))
    world.ask(leader.me.id, "first", request)
    world.ask(leader.me.id, "second", request)
    assert world.replies["second"].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert "first" not in world.replies
    world.run(10_000)
    assert world.replies["first"].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER, "it resigned meanwhile"


def test_a_voter_is_removed() -> None:
    world, leader = elected()
    follower = next(node_id for node_id in world.nodes if node_id != leader.me.id)
    assert remove(world, leader, follower, bytes(15) + b"9").error_code == ErrorCode.VOTER_NOT_FOUND
    assert remove(world, leader, follower).error_code == ErrorCode.NONE
    assert list(leader.voters) == sorted({1, 2, 3} - {follower})
    assert not world.nodes[follower].is_voter


def test_a_leader_that_removes_itself_leads_until_that_is_committed() -> None:
    world, leader = elected()
    assert remove(world, leader, leader.me.id).error_code == ErrorCode.NONE
    world.run(2_000)
    new = world.leader
    assert new is not None and new is not leader and leader.me.id not in new.voters
    assert leader.leader_id == new.me.id, "it goes on as an observer"


def test_a_leader_whose_removal_nobody_else_has_is_elected_once_more() -> None:
    """By its own log it is no voter any more, but without that log nobody can be elected."""
    world, leader = elected(2)
    (other,) = world.nodes.keys() - {leader.me.id}
    world.crash(other, tell=False)
    request = RemoveRaftVoterRequest(
        cluster_id=CLUSTER, voter_id=leader.me.id, voter_directory_id=disk_of(leader.me.id)
    )
    world.ask(leader.me.id, "remove", request)
    world.run(20_000)
    assert not world.nodes[leader.me.id].is_leader and world.replies["remove"].error_code
    world.start(other)
    world.run(20_000)
    new = world.leader
    assert new is not None and new.me.id == other and list(new.voters) == [other]
    removed = world.nodes[leader.me.id]
    assert removed.leader_id == other and not may_stand(removed), "now that its removal is committed"


def test_the_last_voter_stays() -> None:
    world, leader = elected(1)
    assert remove(world, leader, 1).error_code == ErrorCode.VOTER_NOT_FOUND


def test_a_voter_tells_where_it_is_now() -> None:
    world, leader = elected()
    follower = next(node for node in world.nodes.values() if not node.is_leader)
    moved = QuorumEndpoint("CONTROLLER", "elsewhere", endpoint(follower.me.id).port)
    follower.endpoints = (moved,)
    world.run(world.config.update_voter_interval_ms * 2)
    assert leader.voters[follower.me.id].endpoints == (moved,)


def test_updates_are_checked() -> None:
    world, leader = elected()

    def update(voter_id: int, *, epoch: int | None = None, low: int = 0, high: int = 1) -> int:
        made = UpdateRaftVoterRequest
        request = made(
            cluster_id=CLUSTER,
            current_leader_epoch=leader.epoch if epoch is None else epoch,
            voter_id=voter_id,
            voter_directory_id=disk_of(voter_id),
            listeners=[made.Listener(name="CONTROLLER", host="h", port=1)],
            kraft_version_feature=made.KRaftVersionFeature(min_supported_version=low, max_supported_version=high),
        )
        world.ask(leader.me.id, "update", request)
        code: int = world.replies.pop("update").error_code
        return code

    assert update(9) == ErrorCode.VOTER_NOT_FOUND
    assert update(2, epoch=leader.epoch - 1) == ErrorCode.FENCED_LEADER_EPOCH
    assert update(2, high=0) == ErrorCode.INVALID_REQUEST


def test_a_truncated_log_takes_its_voters_along() -> None:
    world, leader = elected()
    for node_id in world.nodes:
        if node_id != leader.me.id:
            world.faults.cut |= {(node_id, leader.me.id), (leader.me.id, node_id)}
    follower = next(node_id for node_id in world.nodes if node_id != leader.me.id)
    request = RemoveRaftVoterRequest(cluster_id=CLUSTER, voter_id=follower, voter_directory_id=disk_of(follower))
    world.ask(leader.me.id, "never", request)
    assert follower not in leader.voters
    world.run(10_000)
    world.settle()
    assert list(leader.voters) == [1, 2, 3]


def test_a_voter_is_a_node_with_its_disk() -> None:
    voters = VoterSet([voter(1), voter(2)])
    assert voters.has(voter(1).key)
    assert not voters.has(voter(1, directory=b"\x07" * 16).key)
    assert voters.has(voter(1, directory=bytes(16)).key), "unknown is not another"
    assert VoterSet.decode(voters.encode()) == voters
    assert encode_kraft_version(1) != encode_kraft_version(0)


def upgrade(world: World, leader: RaftNode, level: int = 1) -> Any:
    world.step(leader.me.id, events.UpgradeAsked("upgrade", level))
    world.run(1_000)
    return world.replies.pop("upgrade")


def test_fixed_voters_become_voters_of_the_log() -> None:
    world, leader = elected(dynamic=False)
    assert upgrade(world, leader, 0).error_code == ErrorCode.NONE, "it is that already"
    assert upgrade(world, leader).error_code == ErrorCode.NONE
    for node in world.nodes.values():
        assert node.history.kraft_version == 1
        assert node.voters == VoterSet(voter(each) for each in (1, 2, 3))
    down = upgrade(world, leader, 0)
    assert down.error_code == ErrorCode.INVALID_UPDATE_VERSION and "is a downgrade" in down.error_message
    world.add(4)
    world.run(2_000)
    assert add(world, leader, 4).error_code == ErrorCode.NONE
    world.crash(leader.me.id)
    new = world.settle()
    assert list(new.voters) == [1, 2, 3, 4] and new.history.kraft_version == 1
    world.start(leader.me.id)
    world.settle()
    assert list(world.nodes[leader.me.id].voters) == [1, 2, 3, 4], "its configuration does not count any more"


def test_the_version_rises_only_when_every_voter_has_told_its_directory() -> None:
    world = World(1, [1, 2, 3], dynamic=False)
    world.crash(3)
    world.run(5_000)
    leader = world.leader
    assert leader is not None
    answer = upgrade(world, leader)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert "because not all of the voters support it" in answer.error_message
    assert leader.history.kraft_version == 0
    world.start(3)
    world.run(5_000)
    assert upgrade(world, leader).error_code == ErrorCode.NONE
    follower = next(node for node in world.nodes.values() if not node.is_leader)
    assert upgrade(world, follower).error_code == ErrorCode.NOT_CONTROLLER


def test_an_upgrade_that_is_not_committed_is_forgotten() -> None:
    world, leader = elected(dynamic=False)
    for node_id in world.nodes:
        if node_id != leader.me.id:
            world.faults.cut |= {(node_id, leader.me.id), (leader.me.id, node_id)}
    world.step(leader.me.id, events.UpgradeAsked("upgrade", 1))
    assert leader.history.kraft_version == 1 and "upgrade" not in world.replies
    world.run(10_000)
    assert world.replies["upgrade"].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    new = world.settle()
    assert new.history.kraft_version == 0 and leader.history.kraft_version == 0
    assert leader.voters == new.voters
    assert upgrade(world, new).error_code == ErrorCode.NONE
