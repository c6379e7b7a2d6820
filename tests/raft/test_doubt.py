"""A fixed voter whose disk was empty when it started, and that nobody vouches for: when it may vote, and what else."""

from __future__ import annotations

import pytest
from tests.raft.stored import StoredJournal
from tests.raft.test_elections import FAST_MS, error, granted, vote
from tests.raft.test_replication import fetch
from tests.raft.world import World

from ottla.model.errors import ErrorCode
from ottla.raft import events
from ottla.raft import lost_disk as doubt
from ottla.raft.effects import DoubtChanged, Send
from ottla.raft.node import RaftNode
from ottla.raft.roles import Leader, Role
from ottla.wire.messages.records.fetch import FetchRequest


def fresh(size: int = 3, seed: int = 1) -> World:
    return World(seed, list(range(1, size + 1)), in_doubt=True)


def running(seed: int = 1) -> tuple[World, RaftNode, list[int]]:
    """A cluster that has committed something; its leader, and the others."""
    world = fresh(seed=seed)
    world.run(1_000)
    leader = world.leader
    assert leader is not None and not world.in_doubt
    world.append(b"first")
    world.run(500)
    return world, leader, [node_id for node_id in world.nodes if node_id != leader.me.id]


def lose(world: World, node_id: int, *, in_doubt: bool = True) -> RaftNode:
    if node_id in world.nodes:
        world.crash(node_id)
    world.lose_disk(node_id, in_doubt=in_doubt)
    world.start(node_id)
    return world.nodes[node_id]


# --- a new cluster


@pytest.mark.parametrize("size", [3, 4, 5])
@pytest.mark.parametrize("seed", range(5))
def test_fresh_voters_elect_one_as_soon_as_all_are_there(size: int, seed: int) -> None:
    world = fresh(size, seed)
    world.run(FAST_MS)
    assert world.leader is not None and not world.in_doubt


def test_a_majority_of_fresh_voters_is_not_enough() -> None:
    """The one that is missing may have what the others lost."""
    world = fresh()
    world.crash(3)
    world.queue.clear()  # it never said anything
    world.run(15_000)
    assert not world.leaders and world.in_doubt == {1, 2, 3}
    complaints = [effect for effect in world.heard[1] if isinstance(effect, DoubtChanged)]
    assert complaints and all(each == DoubtChanged(is_over=False, unheard=(3,)) for each in complaints)
    world.start(3)
    world.run(2 * FAST_MS)
    assert world.leader is not None and not world.in_doubt


@pytest.mark.parametrize("size", [1, 2])
def test_where_a_majority_is_everybody_there_is_no_doubt(size: int) -> None:
    world = fresh(size)
    assert all(node.doubt is None for node in world.nodes.values())
    world.run(500)
    assert world.leader is not None


def test_of_two_the_one_that_lost_its_disk_elects_the_other() -> None:
    world = fresh(2)
    world.run(500)
    world.append(b"x")
    world.run(500)
    for node_id in (2, 1):
        lose(world, node_id)
        world.settle()


@pytest.mark.parametrize("seed", range(4))
def test_doubt_that_is_over_does_not_come_back_with_a_loss_of_power(seed: int) -> None:
    """A majority in doubt, with something in their logs, could never elect anybody."""
    world = World(seed, [1, 2, 3], make_journal=StoredJournal, in_doubt=True)
    while world.leader is None or not world.leader.journal.end_offset:
        world.run(1)
    for node_id in list(world.nodes):
        world.crash(node_id, tell=False)
    world.queue.clear()
    world.settle()


def test_those_that_somebody_vouches_for_need_no_others() -> None:
    world = World(1, [1, 2, 3])
    world.crash(3)
    world.run(5_000)
    assert world.leader is not None


def empties(world: World, *voters: int, epoch: int = 0) -> None:
    """Node 1 hears that these have empty logs."""
    for voter in voters:
        vote(world, 1, candidate=voter, epoch=epoch, last=(0, 0), pre_vote=True)


def lonely() -> World:
    world = World(1, [1, 2, 3], in_doubt=True)
    world.crash(2)
    world.crash(3)
    world.queue.clear()
    return world


def test_a_vote_needs_the_word_of_all_others() -> None:
    world = lonely()
    assert not granted(vote(world, 1, candidate=2, epoch=1, last=(0, 0)))
    empties(world, 3, epoch=1)
    assert not granted(vote(world, 1, candidate=2, epoch=1, last=(0, 0))), "it may have voted for 3 in this epoch"
    assert granted(vote(world, 1, candidate=2, epoch=2, last=(0, 0)))
    assert not world.journals[1].in_doubt and world.journals[1].election.voted is not None


def test_a_word_does_not_hold_for_ever() -> None:
    world = lonely()
    empties(world, 3)
    world.run(world.config.roll_call_ms + 1)
    assert not granted(vote(world, 1, candidate=2, epoch=9, last=(0, 0)))


def test_a_log_that_has_something_is_not_elected_by_an_empty_one_in_doubt() -> None:
    world = lonely()
    empties(world, 2, 3)
    assert not granted(vote(world, 1, candidate=2, epoch=5, last=(7, 4), pre_vote=True))
    world.run(world.config.roll_call_ms + 1)
    assert not granted(vote(world, 1, candidate=2, epoch=6, last=(7, 4)))
    assert error(vote(world, 1, candidate=2, epoch=6, last=(7, 4))) == 0, "that is no mistake of the candidate"


# --- a lost disk


@pytest.mark.parametrize("vouched", [False, True])
def test_what_only_the_failing_leader_still_has_is_not_lost(vouched: bool) -> None:
    world, leader, (lost, lagging) = running()
    world.faults.cut = {(lagging, each) for each in world.nodes} | {(each, lagging) for each in world.nodes}
    world.append(b"committed without the lagging one")
    world.run(500)
    assert leader.high_watermark == leader.journal.end_offset
    world.crash(leader.me.id)
    world.faults.cut.clear()
    if vouched:
        lose(world, lost, in_doubt=False)
        with pytest.raises(AssertionError, match="committed"):
            world.run(10_000)
        return
    node = lose(world, lost)
    world.run(15_000)
    assert world.leader is None, "nobody has it all"
    assert any(isinstance(effect, DoubtChanged) and not effect.is_over for effect in world.heard[lost])
    world.start(leader.me.id)
    world.run(6_000)
    assert world.leader is not None, "the two that lost nothing are enough"
    world.settle()
    assert node.doubt is None and not world.in_doubt


@pytest.mark.parametrize("mistake", [False, True])
def test_one_that_never_started_and_one_that_forgot_begin_no_new_cluster(
    mistake: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two empty logs of three are a majority, and know nothing."""
    if mistake:
        monkeypatch.setattr(doubt, "may_take_part", lambda node, *_: node.doubt is None or node.end == (0, 0))
    world = World(1, [1, 2, 3])
    world.crash(3, tell=False)
    world.queue.clear()
    world.lose_disk(3)
    world.run(5_000)
    assert world.leader is not None
    kept = world.leader.me.id
    world.append(b"x")
    world.run(500)
    world.crash(kept)
    world.start(3)
    lose(world, 3 - kept)
    if mistake:
        with pytest.raises(AssertionError, match=r"committed|two leaders"):
            world.run(10_000)
        return
    world.run(10_000)
    assert world.leader is None
    world.start(kept)
    world.run(15_000)
    assert world.leader is None, "one alone is no majority, and the others may both have lost something"


@pytest.mark.parametrize("mistake", [False, True])
def test_a_forgotten_vote_does_not_help_the_leader_that_it_deposed(
    mistake: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if mistake:
        monkeypatch.setattr(doubt, "is_quarantined", lambda _: False)
    world, old, followers = running()
    world.faults.cut = {(old.me.id, each) for each in followers} | {(each, old.me.id) for each in followers}
    for each in followers:
        world.step(each, events.Unreachable(old.me.id))
    world.run(FAST_MS)
    new = world.leader
    assert new is not None and new is not old and old.is_leader, "it has not noticed yet"
    (lost,) = set(followers) - {new.me.id}
    assert world.nodes[lost].leader_id == new.me.id
    world.journals[new.me.id].append(b"of the new one", new.epoch)
    world.step(new.me.id, events.JournalGrew())
    world.run(FAST_MS)
    world.faults.cut = {(new.me.id, each) for each in world.nodes} | {(each, new.me.id) for each in world.nodes}
    node = lose(world, lost)
    world.run(FAST_MS)
    assert node.leader_id == old.me.id and old.is_leader
    world.journals[old.me.id].append(b"of the old one", old.epoch)
    world.step(old.me.id, events.JournalGrew())
    if mistake:
        with pytest.raises(AssertionError, match="committed"):
            world.run(1_000)
        return
    world.run(world.config.check_quorum_ms)
    assert not old.is_leader
    world.settle()


def test_the_one_that_forgot_is_no_successor_before_it_knows_it_all() -> None:
    world, leader, (lost, other) = running()
    node = lose(world, lost)
    world.run(1_000)
    assert node.role is Role.FOLLOWER and node.high_watermark == leader.high_watermark, "it reads at once"
    assert node.doubt is not None
    end, epoch = node.end
    asked = vote(world, lost, candidate=other, epoch=node.epoch + 1, last=(end + 9, epoch))
    assert not granted(asked) and not error(asked)
    world.run(2 * world.config.quarantine_ms)
    assert node.doubt is None and not world.journals[lost].in_doubt
    assert any(effect == DoubtChanged(is_over=True) for effect in world.heard[lost])
    end, epoch = node.end
    assert granted(vote(world, lost, candidate=other, epoch=node.epoch + 5, last=(end + 9, epoch)))


def test_for_a_while_it_reads_as_somebody_who_does_not_count() -> None:
    world, leader, (lost, other) = running()
    world.crash(other, tell=False)
    node = lose(world, lost)
    before = leader.high_watermark
    world.append(b"not committed by one that forgot")
    world.run(1_000)
    assert node.journal.end_offset == leader.journal.end_offset
    assert leader.high_watermark == before, "it may have elected somebody else"
    world.run(world.config.check_quorum_ms)
    assert not leader.is_leader, "nor does it keep a leader"
    world.start(other)
    world.settle()


def test_its_word_counts_before_the_doubt_is_over() -> None:
    """It has what it has; only what it had before is unknown."""
    world, leader, (lost, other) = running()
    node = lose(world, lost)
    world.run(world.config.quarantine_ms - 1_500)
    assert node.doubt is not None
    sent: list[int] = []
    original = node.step

    def step(event: events.Event, now_ms: int) -> list[object]:
        found = original(event, now_ms)
        asked = [each.request for each in found if isinstance(each, Send)]
        sent.extend(each.replica_id for each in asked if isinstance(each, FetchRequest))
        return list(found)

    node.step = step  # type: ignore[method-assign,assignment]
    world.run(3_000)
    assert set(sent) == {-1, lost} and sent == sorted(sent)
    world.crash(other)
    world.append(b"committed by the two")
    world.run(500)
    assert leader.is_leader and leader.high_watermark == leader.journal.end_offset


def test_doubt_ends_only_with_what_a_leader_has_committed_in_its_own_epoch() -> None:
    world, leader, (lost, other) = running()
    node = lose(world, lost)
    world.run(500)
    world.crash(other, tell=False)
    world.crash(leader.me.id, tell=False)
    world.run(2 * world.config.quarantine_ms)
    assert node.doubt is not None and node.role is not Role.PROSPECTIVE
    world.start(leader.me.id)
    world.start(other)
    world.settle()
    assert node.doubt is None


def test_which_answers_of_a_leader_end_it() -> None:
    world, _, (lost, _) = running()
    node = lose(world, lost)
    world.run(500)
    end = node.journal.end_offset
    doubt.fetched(node, lost, end, -1)
    assert node.doubt is not None, "a leader whose epoch has not begun does not know what is committed"
    doubt.fetched(node, -1, end, end)
    assert node.doubt is not None, "in quarantine"
    doubt.fetched(node, lost, end - 1, end)
    assert node.doubt is not None, "something is missing"
    doubt.fetched(node, lost, end, end + 5)
    assert node.doubt is None, "what was committed since was committed without what it forgot"


def test_doubt_outlives_a_crash_and_a_second_loss() -> None:
    world, _, (lost, _) = running()
    lose(world, lost)
    world.run(300)
    world.crash(lost)
    world.start(lost)
    node = world.nodes[lost]
    assert node.doubt is not None and node.journal.end_offset > 0
    assert not granted(vote(world, lost, candidate=9, epoch=node.epoch + 1, last=(99, node.epoch)))
    assert lose(world, lost).doubt is not None
    world.settle()
    assert not world.in_doubt


def test_a_dead_disks_late_fetch_does_not_count() -> None:
    world, leader, (lost, other) = running()
    world.crash(other, tell=False)
    ghost = world.disks[lost]
    lose(world, lost)
    assert isinstance(leader.state, Leader)
    end = leader.end
    world.append(b"x")
    before = leader.high_watermark

    def asks(directory: bytes, offset: int) -> None:
        fetch(world, leader, offset, leader.epoch, replica=lost, directory=directory)

    world.journals[leader.me.id].flush()
    asks(world.disks[lost], end.offset)
    asks(ghost, leader.journal.end_offset)
    assert leader.high_watermark == before
    asks(world.disks[lost], leader.journal.end_offset)
    assert leader.high_watermark == leader.journal.end_offset


def test_a_leader_that_slept_believes_nothing_before_it_knows_the_time() -> None:
    world, leader, (one, _) = running()
    world.append(b"x")
    world.now_ms += world.config.check_quorum_ms + world.config.fetch_timeout_ms
    before = leader.high_watermark
    found = fetch(world, leader, leader.journal.end_offset, leader.epoch, replica=one)
    assert found.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leader.role is Role.RESIGNED and leader.high_watermark == before
