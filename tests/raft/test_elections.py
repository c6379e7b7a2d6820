"""Elections: who is elected, when, and who must not be."""

from __future__ import annotations

import pytest
from tests.raft.world import CLUSTER, World, disk_of, endpoint

from ottla.model.errors import ErrorCode
from ottla.raft import events
from ottla.raft.effects import Follow, Lead, Reply, Send
from ottla.raft.journal import ElectionState, ReplicaKey
from ottla.raft.roles import Role
from ottla.wire.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from ottla.wire.messages.quorum.vote import VoteRequest, VoteResponse

FAST_MS = 100  # what an election may take when processes are seen to go


def elected(size: int = 3, seed: int = 1) -> World:
    world = World(seed, list(range(1, size + 1)))
    world.run(5_000)
    assert world.leader is not None
    return world


def others(world: World) -> list[int]:
    return [node_id for node_id, node in world.nodes.items() if not node.is_leader]


def vote(
    world: World,
    node_id: int,
    *,
    candidate: int,
    epoch: int,
    last: tuple[int, int],
    pre_vote: bool = False,
    cluster: str = CLUSTER,
    voter_id: int = -1,
) -> VoteResponse:
    ask = VoteRequest.TopicData.PartitionData(
        partition_index=0,
        replica_epoch=epoch,
        replica_id=candidate,
        replica_directory_id=disk_of(candidate),
        last_offset=last[0],
        last_offset_epoch=last[1],
        pre_vote=pre_vote,
    )
    topics = [VoteRequest.TopicData(topic_name="__cluster_metadata", partitions=[ask])]
    found = world.nodes[node_id].step(
        events.RequestReceived("t", VoteRequest(cluster_id=cluster, voter_id=voter_id, topics=topics)), world.now_ms
    )
    (response,) = [effect.response for effect in found if isinstance(effect, Reply) and effect.token == "t"]
    assert isinstance(response, VoteResponse)
    return response


def granted(response: VoteResponse) -> bool:
    return response.topics[0].partitions[0].vote_granted


def error(response: VoteResponse) -> int:
    return response.topics[0].partitions[0].error_code


def test_a_sole_voter_leads_at_once() -> None:
    world = World(1, [1])
    assert world.nodes[1].is_leader and world.nodes[1].epoch == 1
    world.run(20)
    assert any(isinstance(effect, Lead) for effect in world.heard[1])
    assert world.nodes[1].deadline_ms is None or world.nodes[1].deadline_ms > world.now_ms + 1_000_000


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_fresh_quorum_has_a_leader_without_waiting_for_a_timeout(size: int) -> None:
    world = World(3, list(range(1, size + 1)))
    world.run(2 * FAST_MS)
    assert world.leader is not None and len(world.leaders) == 1


def test_a_minority_elects_nobody() -> None:
    world = World(1, [1, 2, 3])
    for node_id in (2, 3):
        world.crash(node_id)
    world.run(30_000)
    assert not world.leaders and world.nodes[1].epoch <= 1


@pytest.mark.parametrize("seed", range(10))
def test_a_killed_leader_is_replaced_within_milliseconds(seed: int) -> None:
    world = elected(seed=seed)
    old = world.leader
    assert old is not None
    world.crash(old.me.id)
    world.run(FAST_MS)
    assert world.leader is not None and world.leader.epoch > old.epoch


def test_votes_of_processes_that_are_gone_are_not_waited_for() -> None:
    world = World(1, [1, 2, 3])
    node = world.nodes[1]
    world.faults.cut = {(2, 1), (3, 1)}  # nobody answers
    world.run(3_000)
    while node.role is not Role.PROSPECTIVE:
        world.run(1)
    node.step(events.Unreachable(-1), world.now_ms)  # of a bootstrap server, who is nobody
    node.step(events.Unreachable(2), world.now_ms)
    assert node.role is Role.PROSPECTIVE, "one of two may still answer"
    node.step(events.Unreachable(3), world.now_ms)
    assert node.role is Role.UNATTACHED


def test_a_leader_that_falls_silent_is_replaced_after_the_fetch_timeout() -> None:
    world = elected()
    old = world.leader
    assert old is not None
    world.crash(old.me.id, tell=False)
    world.faults.cut = {(node_id, old.me.id) for node_id in world.nodes}  # packets to it vanish, too
    world.run(world.config.fetch_timeout_ms - world.config.fetch_wait_ms - 100)
    assert world.leader is None
    world.run(4_000)
    assert world.leader is not None


def test_a_leader_that_stops_hands_over_at_once() -> None:
    world = elected()
    old = world.leader
    assert old is not None
    world.step(old.me.id, events.StopAsked())
    assert old.role is Role.RESIGNED
    world.run(FAST_MS)
    assert world.leader is not None and world.leader is not old


def test_a_cut_off_follower_disturbs_nobody() -> None:
    world = elected()
    leader = world.leader
    assert leader is not None
    lonely = others(world)[0]
    for node_id in world.nodes:
        world.faults.cut |= {(node_id, lonely), (lonely, node_id)}
    world.run(60_000)
    world.faults.cut.clear()
    world.run(5_000)
    assert world.leader is leader and len(world.leaders) == 1


def test_a_leader_without_a_majority_resigns() -> None:
    world = elected()
    leader = world.leader
    assert leader is not None
    for node_id in others(world):
        world.faults.cut |= {(node_id, leader.me.id), (leader.me.id, node_id)}
    world.run(world.config.check_quorum_ms + world.config.fetch_timeout_ms)
    assert not leader.is_leader


def test_one_vote_per_epoch_that_a_crash_does_not_undo() -> None:
    world = World(1, [1, 2, 3])
    world.nodes[1].step(events.Start(), world.now_ms)
    assert granted(vote(world, 1, candidate=2, epoch=7, last=(9, 6)))
    assert granted(vote(world, 1, candidate=2, epoch=7, last=(9, 6))), "the same one again"
    assert not granted(vote(world, 1, candidate=3, epoch=7, last=(90, 6)))
    assert world.journals[1].election == ElectionState(7, -1, ReplicaKey(2, disk_of(2)))
    world.crash(1)
    world.start(1)
    assert not granted(vote(world, 1, candidate=3, epoch=7, last=(90, 6)))
    assert granted(vote(world, 1, candidate=3, epoch=8, last=(90, 6)))


def test_no_vote_for_a_log_that_lacks_something() -> None:
    world = elected()
    follower = world.nodes[others(world)[0]]
    end, epoch = follower.end
    assert not granted(vote(world, follower.me.id, candidate=9, epoch=epoch + 5, last=(end - 1, epoch)))
    assert not granted(vote(world, follower.me.id, candidate=9, epoch=epoch + 6, last=(end + 9, epoch - 1)))
    assert granted(vote(world, follower.me.id, candidate=9, epoch=epoch + 7, last=(end, epoch)))


def test_a_pre_vote_changes_nothing_and_is_refused_while_the_leader_lives() -> None:
    world = elected()
    follower = world.nodes[others(world)[0]]
    before = world.journals[follower.me.id].election
    end, epoch = follower.end
    assert not granted(vote(world, follower.me.id, candidate=9, epoch=follower.epoch, last=(end, epoch), pre_vote=True))
    world.step(follower.me.id, events.Unreachable(follower.leader_id))
    assert granted(vote(world, follower.me.id, candidate=9, epoch=follower.epoch, last=(end, epoch), pre_vote=True))
    assert world.journals[follower.me.id].election == before


def test_wrong_questions() -> None:
    world = elected()
    assert world.leader is not None
    world.crash(world.leader.me.id)
    world.run(1_000)
    node_id = others(world)[0]
    epoch = world.nodes[node_id].epoch
    foreign = vote(world, node_id, candidate=2, epoch=epoch, last=(0, 0), cluster="other")
    assert foreign.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert error(vote(world, node_id, candidate=2, epoch=epoch - 1, last=(0, 0))) == ErrorCode.FENCED_LEADER_EPOCH
    assert error(vote(world, node_id, candidate=2, epoch=epoch, last=(0, epoch))) == ErrorCode.INVALID_REQUEST
    wrong = vote(world, node_id, candidate=2, epoch=epoch, last=(0, 0), voter_id=77)
    assert error(wrong) == ErrorCode.INVALID_VOTER_KEY
    told = vote(world, node_id, candidate=2, epoch=epoch - 1, last=(0, 0))
    assert told.node_endpoints[0].node_id == told.topics[0].partitions[0].leader_id


def test_one_absurd_epoch_does_not_use_them_up() -> None:
    world = elected()
    asked = others(world)[0]
    before = world.nodes[asked].epoch
    end = world.nodes[asked].end
    for epoch in (2**31 - 1, 2**30 + 1):
        assert error(vote(world, asked, candidate=9, epoch=epoch, last=end)) == ErrorCode.INVALID_REQUEST
    assert world.nodes[asked].epoch == before
    assert not error(vote(world, asked, candidate=9, epoch=2**30, last=end))
    assert error(vote(world, asked, candidate=9, epoch=2**31 - 1, last=end)) == ErrorCode.INVALID_REQUEST
    assert world.settle().epoch > 2**30


def test_a_restarted_leader_does_not_lead_its_epoch_again() -> None:
    world = elected()
    leader = world.leader
    assert leader is not None
    epoch = leader.epoch
    for node_id in list(world.nodes):
        world.crash(node_id, tell=False)
    world.start(leader.me.id)
    assert world.nodes[leader.me.id].role is Role.RESIGNED
    assert not granted(vote(world, leader.me.id, candidate=2, epoch=epoch, last=(99, epoch - 1)))
    world.settle()


def test_an_announcement_of_a_newer_epoch_is_followed_and_an_older_one_is_not() -> None:
    world = elected()
    follower = world.nodes[others(world)[0]]

    def begin(epoch: int, leader_id: int) -> list[object]:
        made = BeginQuorumEpochRequest.TopicData
        partition = made.PartitionData(partition_index=0, leader_id=leader_id, leader_epoch=epoch)
        topics = [made(topic_name="__cluster_metadata", partitions=[partition])]
        request = BeginQuorumEpochRequest(cluster_id=CLUSTER, topics=topics)
        return list(follower.step(events.RequestReceived("t", request), world.now_ms))

    other = next(each for each in world.nodes if each not in (follower.me.id, follower.leader_id))
    begin(follower.epoch - 1, other)
    assert follower.leader_id != other
    found = begin(follower.epoch + 3, other)
    assert follower.leader_id == other and follower.role is Role.FOLLOWER
    assert any(isinstance(effect, Follow) and effect.leader_id == other for effect in found)
    assert any(isinstance(effect, Send) and effect.node_id == other for effect in found), "it begins to fetch"


def test_who_remembers_no_more_than_the_id_of_its_leader_finds_it() -> None:
    """An observer knows from bootstrap servers where others are; an election that it remembers does not say where."""
    world = World(1, [1], dynamic=True)
    world.run(5_000)
    leader = world.leader
    assert leader is not None
    world.add(4)
    world.run(1_000)
    world.crash(4)
    world.lose_disk(4, in_doubt=False)
    world.journals[4].write_election(ElectionState(leader.epoch, leader.me.id, None), [], 0)
    world.start(4)
    assert not world.nodes[4].voters
    world.run(1_000)
    found = world.nodes[4].leader_endpoint()
    assert found is not None and found[1:] == endpoint(leader.me.id)[1:]
    assert world.nodes[4].voters == leader.voters
