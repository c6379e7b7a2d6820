"""The books of replicated logs, told histories made by hand: good ones pass, bad ones are blamed for what they are."""

import random

from ottla.raft.journal import ReplicaKey
from ottla.raft.voters import Voter, VoterSet
from ottla.sim.cluster import SimMachine
from ottla.sim.replicated.committed_batches import CommittedBatch
from ottla.sim.replicated.log_invariants import Ballots, Electorate, Life, LogBook
from ottla.sim.replicated.power import Power
from ottla.sim.world.disk import Crash
from ottla.sim.world.loop import SimLoop
from ottla.sim.world.net import SimNet

ONE, TWO, THREE = Life(1, 1), Life(2, 1), Life(3, 1)
A, B, C = CommittedBatch(0, 3, 1, 11), CommittedBatch(3, 4, 1, 12), CommittedBatch(4, 9, 2, 13)


def book(*, lossy: bool = False) -> tuple[LogBook, list[str]]:
    wrong: list[str] = []
    return LogBook("log", wrong.append, lossy=lossy), wrong


def test_a_good_history() -> None:
    log, wrong = book()
    log.leads(ONE, 1, 0)
    log.moved(ONE, 1, 0)
    log.moved(ONE, 1, 4)
    log.committed(ONE, [A, B], led_in=1)
    log.committed(TWO, [A, B], led_in=None)
    log.leads(TWO, 2, 4)
    log.has(TWO, [A, B])
    log.moved(TWO, 2, 3)  # a new leader may know less at first
    log.moved(TWO, 2, 9)
    log.committed(TWO, [C], led_in=2)
    log.cut(THREE, 3, 4)
    assert not wrong
    assert (log.epochs, log.committed_log.end_offset) == (2, 9)


def test_two_leaders_of_one_epoch() -> None:
    log, wrong = book()
    log.leads(ONE, 1, 0)
    log.leads(TWO, 1, 0)
    assert "leads in epoch 1, in which node 1 led" in wrong[0]


def test_a_later_life_may_not_go_on_in_the_epoch_of_an_earlier_one() -> None:
    log, wrong = book()
    log.leads(ONE, 1, 0)
    log.leads(Life(1, 2), 1, 0)
    assert "node 1 (life 2) leads in epoch 1" in wrong[0]
    wrong.clear()
    log.leads(Life(1, 2), 1, 0, clean=True)
    assert not wrong


def test_a_leader_that_lacks_what_was_committed() -> None:
    log, wrong = book()
    log.leads(ONE, 1, 0)
    log.committed(ONE, [A, B], led_in=1)
    log.leads(TWO, 2, 3)
    assert "its log ends at 3, and 4 was committed" in wrong[0]


def test_who_learns_late_that_it_leads_owes_only_what_was_committed_by_then() -> None:
    log, wrong = book()
    log.leads(ONE, 1, 0)
    log.committed(ONE, [A, B], led_in=1)
    log.leads(THREE, 3, 4)
    log.committed(THREE, [C], led_in=3)
    log.leads(TWO, 2, 4)
    assert (log.owed(2), log.owed(3), wrong) == (4, 9, [])
    log.leads(TWO, 2, 3)
    assert "leads from epoch 2 on, but its log ends at 3, and 4 was committed" in wrong.pop()
    log.leads(ONE, 4, 4)
    assert "leads from epoch 4 on, but its log ends at 4, and 9 was committed" in wrong.pop()


def test_a_leader_with_another_history() -> None:
    log, wrong = book()
    log.committed(ONE, [A, B], led_in=1)
    log.leads(TWO, 2, 4)
    log.has(TWO, [A, B._replace(mark=99)])
    assert "node 2 begins to lead" in wrong[0]
    assert "is not what was committed there" in wrong[0]


def test_a_high_watermark_that_goes_back() -> None:
    log, wrong = book()
    log.moved(ONE, 1, 5)
    log.moved(ONE, 1, 4)
    assert "went back from 5 to 4 in epoch 1" in wrong[0]


def test_a_follower_with_other_records() -> None:
    log, wrong = book()
    log.committed(ONE, [A, B], led_in=1)
    log.committed(TWO, [A, B._replace(epoch=2)], led_in=None)
    assert "node 2: " in wrong[0]


def test_what_was_deleted_may_differ() -> None:
    log, wrong = book()
    log.committed(ONE, [A, B], led_in=1)
    log.committed_log.start_offset = 3
    log.committed(TWO, [A._replace(mark=99), B], led_in=None)
    assert not wrong


def test_a_batch_across_committed_ones() -> None:
    log, wrong = book()
    log.committed(ONE, [A, B], led_in=1)
    log.committed(TWO, [CommittedBatch(1, 4, 1, 5)], led_in=None)
    assert "does not begin where a committed batch begins" in wrong[0]


def test_a_follower_that_knows_more_than_any_leader() -> None:
    log, wrong = book()
    log.committed(ONE, [A], led_in=1)
    log.committed(TWO, [A, B], led_in=None)
    assert "which no leader said" in wrong[0]


def test_a_log_cut_below_what_it_knew_to_be_committed() -> None:
    log, wrong = book()
    log.cut(ONE, 5, 4)
    assert "cut its log to 4" in wrong[0]


def test_those_who_lack_what_counts() -> None:
    log, wrong = book()
    log.lacks(ONE, 7, ["node 2 has only 5"])
    assert wrong == ["log: node 1 says that everything below 7 is committed, but node 2 has only 5"]


def test_where_records_may_be_lost_only_leaders_and_watermarks_are_looked_at() -> None:
    log, wrong = book(lossy=True)
    log.committed(ONE, [A, B], led_in=1)
    log.committed(TWO, [B, C], led_in=None)
    log.leads(TWO, 2, 0)
    log.cut(ONE, 5, 4)
    assert not wrong
    log.leads(ONE, 2, 0)
    assert wrong


def test_votes() -> None:
    wrong: list[str] = []
    ballots = Ballots(wrong.append)
    ballots.voted(ReplicaKey(1), 4, ReplicaKey(2))
    ballots.voted(ReplicaKey(1), 4, ReplicaKey(2))
    ballots.voted(ReplicaKey(1), 5, ReplicaKey(3))
    ballots.follows(1, 5, 3)
    assert not wrong
    ballots.voted(ReplicaKey(1), 4, ReplicaKey(3))
    ballots.follows(2, 5, 2)
    assert ["voted for 2 and for 3" in wrong[0], "others followed 3" in wrong[1]] == [True, True]


def test_one_machine_at_a_time_may_lose_power() -> None:
    net = SimNet(SimLoop(random.Random(0)), random.Random(0))
    one, two, other = (
        SimMachine(name, net, {"log.dirs": "d"}, random.Random(0), lambda _: None) for name in ("one", "two", "other")
    )
    in_sync = [one, two]
    power = Power([one, two], lambda machine: machine in in_sync, limited=True)
    assert power.may_crash(one, Crash.PROCESS)
    assert power.may_crash(one, Crash.POWER)
    assert power.is_weak(one)
    assert power.may_crash(one, Crash.POWER), "what it lacks cannot become less"
    assert not power.may_crash(two, Crash.POWER), "it has not even happened yet"
    one._ends += 1
    in_sync.remove(one)
    assert not power.may_crash(two, Crash.POWER)
    assert not power.may_crash(two, Crash.PROCESS)
    assert power.may_crash(other, Crash.POWER), "it holds nothing"
    assert power.may_crash(one, Crash.POWER)
    power.disarm(one)
    assert power.is_weak(one), "it was so before, and the next loss of power did not come"
    in_sync.append(one)
    assert power.may_crash(two, Crash.POWER)
    power.disarm(two)
    power.arm(two)
    assert not power.may_crash(one, Crash.POWER), "the other is about to crash"
    assert power.may_crash(one, Crash.PROCESS)
    assert Power([one, two], lambda _: False, limited=False).may_crash(one, Crash.POWER)
    net.loop.bury()


def test_voters_change_one_at_a_time() -> None:
    wrong: list[str] = []
    electorate = Electorate(wrong.append)
    one, two, three = Voter(1, b"1" * 16), Voter(2, b"2" * 16), Voter(3, b"3" * 16)
    electorate.changed(ONE, VoterSet([one, two]), VoterSet([one, two, three]), is_settled=True)
    electorate.changed(ONE, VoterSet([one, two]), VoterSet([two]), is_settled=True)
    electorate.changed(ONE, VoterSet([Voter(1), Voter(2)]), VoterSet([one, two]), is_settled=True)  # an upgrade
    assert not wrong
    electorate.changed(ONE, VoterSet([one]), VoterSet([one, two, three]), is_settled=True)
    assert "several voters at once: 2, 3" in wrong.pop()
    electorate.changed(ONE, VoterSet([one, two]), VoterSet([one, Voter(2, b"4" * 16)]), is_settled=True)
    assert "several voters at once: 2, 2" in wrong.pop()
    electorate.changed(ONE, VoterSet([one]), VoterSet([one, two]), is_settled=False)
    assert "not committed" in wrong.pop()
    electorate.changed(ONE, VoterSet([Voter(1), Voter(2)]), VoterSet([one, Voter(2)]), is_settled=True)
    assert "lets node 2 vote, whatever its directory is" in wrong.pop()
