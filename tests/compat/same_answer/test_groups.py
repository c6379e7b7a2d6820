"""Classic groups: the same answers as a real Kafka, in every version, to members who behave and to those who do not."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.compat.conftest import Names, versions_of
from tests.support.requests.classic import UUID, Crowd
from tests.support.requests.same import Both, Plain, Side

from ottla.machine.keyed import Entry, entries_of, types_of
from ottla.model.java import java_abs, java_hash
from ottla.model.names import CONSUMER_OFFSETS_TOPIC
from ottla.records.batch import headers
from ottla.wire.journal import consumer_offsets
from ottla.wire.journal.consumer_offsets import GroupMetadataKey
from ottla.wire.messages.groups.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.groups.heartbeat import HeartbeatRequest
from ottla.wire.messages.groups.join_group import JoinGroupRequest
from ottla.wire.messages.groups.leave_group import LeaveGroupRequest
from ottla.wire.messages.groups.sync_group import SyncGroupRequest
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse

EVERY_JOIN = pytest.mark.parametrize("version", versions_of(JoinGroupRequest))
TIMES = ("current_state_timestamp",)
STATIC_JOIN = pytest.mark.parametrize("version", [5, 6, 7, 8, 9])


def described(crowd: Crowd) -> Plain:
    request = DescribeGroupsRequest(groups=[crowd.group], include_authorized_operations=False)
    return crowd.named(crowd.side.call(request, 6, blank=("error_message",)))


@EVERY_JOIN
def test_members_come_and_go(both: Both, new_name: Names, version: int) -> None:
    group = new_name("come-and-go")

    def script(side: Side) -> Iterator[Plain]:
        with Crowd(side, group, version) as crowd:
            anna, bert = crowd.actor("anna"), crowd.actor("bert")
            yield anna.join()
            yield described(crowd)
            yield anna.call(anna.syncs({anna.member_id: b"everything"}))
            yield anna.heartbeat()
            yield described(crowd)
            # A second member: the first hears of it and rejoins, the generation forms, both get their parts.
            yield bert.start_join()
            yield anna.heartbeat()
            yield described(crowd)
            yield anna.join()
            yield bert.answer()
            yield anna.heartbeat()
            bert.send(bert.syncs())
            yield anna.call(anna.syncs({anna.member_id: b"one half", bert.member_id: b"the other", "nobody": b"none"}))
            yield bert.answer()
            yield bert.call(bert.syncs())  # again: the same
            yield bert.join()  # nothing new: the same generation
            yield described(crowd)
            # The leader leaves: the other is alone.
            yield anna.leave(reason="had enough")
            yield anna.heartbeat()
            yield bert.heartbeat()
            yield bert.call(bert.syncs())
            yield bert.join()
            yield bert.call(bert.syncs())
            yield described(crowd)
            yield bert.leave()
            yield bert.heartbeat()
            yield bert.call(bert.syncs())
            yield bert.leave()
            yield described(crowd)

    both.same(script)


BAD_JOINS: dict[str, dict[str, Any]] = {
    "no group id": {"group_id": ""},
    "session too short": {"session_timeout_ms": 5_999},
    "session too long": {"session_timeout_ms": 1_800_001},
    "session negative": {"session_timeout_ms": -1},
    "unknown member": {"member_id": "nobody"},
    "no protocol type": {"protocol_type": ""},
    "no protocols": {"protocols": {}},
    "other protocol type": {"protocol_type": "connect"},
    "no common protocol": {"protocols": {"roundrobin": b""}},
}


@EVERY_JOIN
def test_bad_joins(both: Both, new_name: Names, version: int) -> None:
    group = new_name("bad-joins")

    def script(side: Side) -> Iterator[Plain]:
        with Crowd(side, group, version) as crowd:
            anna, eve = crowd.actor("anna"), crowd.actor("eve")
            for fields in (BAD_JOINS["unknown member"], BAD_JOINS["no group id"], BAD_JOINS["session too short"]):
                yield eve.call(eve.joins(**fields))
            yield described(crowd)  # none of these made a group
            yield eve.call(eve.joins(protocol_type=""))
            yield described(crowd)  # this one did
            yield eve.call(eve.joins(protocols={}))
            yield anna.join()
            yield anna.call(anna.syncs())
            for name, fields in BAD_JOINS.items():
                yield name, eve.call(eve.joins(**fields))
            yield anna.call(anna.joins(protocol_type="connect"))
            yield anna.call(anna.joins(protocols={"roundrobin": b""}))
            yield anna.call(anna.joins(protocols={}))
            yield anna.heartbeat()
            yield described(crowd)

    both.same(script)


@EVERY_JOIN
def test_absurd_timeouts(both: Both, new_name: Names, version: int) -> None:
    """The rebalance timeout may be anything."""
    group = new_name("absurd")

    def script(side: Side) -> Iterator[Plain]:
        for timeout_ms in (-(2**31), -1, 0, 2**31 - 1):
            with Crowd(side, f"{group}-{timeout_ms}", version) as crowd:
                anna = crowd.actor("anna", rebalance_timeout_ms=timeout_ms)
                yield anna.join()
                if timeout_ms > 0:  # with none, it is a race between the member and the clock
                    yield anna.call(anna.syncs({anna.member_id: b"all"}))
                    yield anna.leave()

    both.same(script)


@pytest.mark.parametrize("version", versions_of(SyncGroupRequest))
def test_bad_syncs(both: Both, new_name: Names, version: int) -> None:
    group = new_name("bad-syncs")

    def script(side: Side) -> Iterator[Plain]:
        with Crowd(side, group, 9) as crowd:
            anna, bert = crowd.actor("anna"), crowd.actor("bert")

            def sync(**fields: Any) -> Plain:
                return anna.call(anna.syncs(**fields), version)

            yield sync(member_id="nobody")  # no such group
            yield sync(group_id="")
            yield anna.join()
            yield sync(group_id="")
            yield sync(member_id="")
            yield sync(member_id="nobody")
            yield sync(member_id="nobody", generation_id=7)
            yield sync(generation_id=0)
            yield sync(generation_id=2)
            yield sync(generation_id=-1)
            if version >= 3:
                yield sync(group_instance_id="nobody")
            if version >= 5:
                yield sync(protocol_type="connect")
                yield sync(protocol_name="roundrobin")
                yield sync(protocol_type=None)
                yield sync(protocol_name=None)
            yield sync(assignments={"nobody": b"?"})  # the leader forgot itself
            yield described(crowd)
            yield sync(generation_id=2)
            yield bert.start_join()
            yield sync()  # a rebalance is under way
            yield sync(generation_id=7)
            yield anna.leave()
            yield sync()
            yield bert.answer()

    both.same(script)


@pytest.mark.parametrize("version", versions_of(HeartbeatRequest))
def test_bad_heartbeats(both: Both, new_name: Names, version: int) -> None:
    group = new_name("bad-heartbeats")

    def script(side: Side) -> Iterator[Plain]:
        with Crowd(side, group, version) as crowd:
            anna = crowd.actor("anna")
            yield anna.heartbeat(group_id="")
            yield anna.heartbeat(member_id="nobody")
            yield anna.join()
            yield anna.heartbeat()
            yield anna.heartbeat(generation_id=0)
            yield anna.heartbeat(generation_id=-1)
            yield anna.heartbeat(generation_id=2)
            yield anna.heartbeat(member_id="")
            yield anna.heartbeat(member_id="nobody", generation_id=9)
            yield anna.heartbeat(group_id="no-such-group")
            if version >= 3:
                yield anna.heartbeat(group_instance_id="nobody")
            yield anna.leave()
            yield anna.heartbeat()
            yield anna.heartbeat(generation_id=2, member_id="")

    both.same(script)


@pytest.mark.parametrize("version", versions_of(LeaveGroupRequest))
def test_bad_leaves(both: Both, new_name: Names, version: int) -> None:
    group = new_name("bad-leaves")

    def script(side: Side) -> Iterator[Plain]:
        with Crowd(side, group, version) as crowd:
            anna, bert = crowd.actor("anna"), crowd.actor("bert")
            yield anna.leave(("nobody", None))
            yield anna.call(LeaveGroupRequest(group_id="", member_id="x", members=[]))
            yield anna.join()
            yield anna.call(anna.syncs())
            yield anna.leave(("nobody", None), ("", None))
            if version >= 3:
                yield anna.leave(("", "nobody"), (anna.member_id, "nobody"), ("nobody", "nobody"))
                yield anna.call(LeaveGroupRequest(group_id=group, members=[]))
            yield anna.heartbeat()
            yield anna.leave((anna.member_id, None), (anna.member_id, None))
            yield described(crowd)
            if version >= 4:
                yield bert.call(bert.joins())  # gets an id
                yield described(crowd)
                yield bert.leave()
                yield bert.leave()
                yield bert.call(bert.joins())

    both.same(script)


def test_several_leave_at_once(both: Both, new_name: Names) -> None:
    group = new_name("leave-together")

    def script(side: Side) -> Iterator[Plain]:
        with Crowd(side, group, 9) as crowd:
            actors = [crowd.actor(f"m{at}", group_instance_id=f"i{at}") for at in range(3)]
            yield actors[0].join()
            for actor in actors[1:]:
                yield actor.start_join()
            yield actors[0].join()
            yield [actor.answer() for actor in actors[1:]]
            # By instance id, by member id, by both; one twice, one unknown, one fenced.
            first, second, third = actors
            yield third.leave(
                ("", "i0"), (second.member_id, None), (second.member_id, "i1"), ("", "i9"), (first.member_id, "i2")
            )
            yield third.heartbeat()
            yield described(crowd)
            yield third.join()
            yield described(crowd)

    both.same(script)


@STATIC_JOIN
def test_static_members_restart(both: Both, new_name: Names, version: int) -> None:
    group = new_name("static")

    def script(side: Side) -> Iterator[Plain]:
        with Crowd(side, group, version) as crowd:
            anna = crowd.actor("anna", group_instance_id="a")
            bert = crowd.actor("bert", group_instance_id="b")
            yield anna.join()
            yield bert.start_join()
            yield anna.join()
            yield bert.answer()
            bert.send(bert.syncs())
            yield anna.call(anna.syncs({anna.member_id: b"A", bert.member_id: b"B"}))
            yield bert.answer()
            # A follower comes back: no rebalance, the same assignment; its former self is fenced everywhere.
            again = crowd.actor("bert again", group_instance_id="b")
            yield again.join()
            yield again.call(again.syncs())
            yield anna.heartbeat()
            yield bert.heartbeat()
            yield bert.call(bert.syncs())
            yield bert.join()
            yield bert.leave()
            yield described(crowd)
            # The leader comes back.
            leader = crowd.actor("anna again", group_instance_id="a")
            yield leader.join()
            yield leader.call(leader.syncs())
            yield again.heartbeat()
            yield anna.heartbeat()
            yield described(crowd)
            # Twice: once with other metadata for the same protocol.
            third = crowd.actor("bert for the third time", group_instance_id="b")
            yield third.join(protocols={"range": b"other"})
            yield third.call(third.syncs())
            yield described(crowd)
            yield leader.leave(("", "a"))
            yield third.heartbeat()
            yield third.join()
            yield described(crowd)

    both.same(script)


def test_static_twins_during_a_rebalance(both: Both, new_name: Names) -> None:
    group = new_name("twins")

    def script(side: Side) -> Iterator[Plain]:
        with Crowd(side, group, 9) as crowd:
            anna = crowd.actor("anna", group_instance_id="a")
            bert = crowd.actor("bert", group_instance_id="b")
            twin = crowd.actor("twin", group_instance_id="b")
            yield anna.join()
            # While the group is rebalancing: who waited is fenced, the twin waits instead.
            yield bert.start_join()
            yield twin.start_join()
            yield bert.answer()
            yield anna.join()
            yield twin.answer()
            # While members wait for their assignments.
            twin.send(twin.syncs())
            yield anna.heartbeat()
            third = crowd.actor("third", group_instance_id="b")
            yield third.start_join()
            yield twin.answer()
            yield anna.heartbeat()
            yield anna.join()
            yield third.answer()
            # A change of the protocol is a reason to rebalance.
            yield anna.call(anna.syncs())
            other = crowd.actor("other", group_instance_id="b")
            yield other.call(other.joins(protocols={"sticky": b""}))
            yield other.start_join(protocols={"sticky": b"", "range": b""})
            yield anna.heartbeat()
            yield described(crowd)

    both.same(script)


@pytest.mark.parametrize("client_id", [None, "", "c" * 1000, "ünï-\u2603"])
def test_client_ids(both: Both, new_name: Names, client_id: str | None) -> None:
    """They are part of member ids, and of the group's record."""
    group = new_name("client-ids")

    def script(side: Side) -> Iterator[Plain]:
        with Crowd(side, group, 9) as crowd:
            anna = crowd.actor("anna")
            anna.client_id = client_id
            asked = anna.joins()
            yield anna.call(asked)
            yield UUID.sub("#", anna.member_id)
            yield anna.join()
            yield anna.call(anna.syncs())
            yield described(crowd)

    both.same(script)


@pytest.mark.parametrize("instance_id", ["", ".", "..", "a b", "a/b", "i" * 249, "i" * 250])
def test_instance_ids(both: Both, new_name: Names, instance_id: str) -> None:
    group = new_name("instance-ids")

    def script(side: Side) -> Iterator[Plain]:
        with Crowd(side, group, 9) as crowd:
            anna = crowd.actor("anna")
            yield anna.call(anna.joins(group_instance_id=instance_id))
            yield anna.heartbeat(group_instance_id=instance_id)
            yield anna.leave(("", instance_id))
            # An id that was given to a dynamic member is not for a static one.
            eve = crowd.actor("eve")
            yield eve.call(eve.joins())
            yield eve.call(eve.joins(group_instance_id=instance_id))
            yield described(crowd)

    both.same(script)


def journal(side: Side, group: str) -> list[Plain]:
    """What the broker wrote about the group."""
    topic, partition = FetchRequest.Topic, FetchRequest.Topic.Partition
    index = java_abs(java_hash(group)) % 50  # as many partitions as the topic has if nobody says otherwise
    asked = partition(partition=index, fetch_offset=0, partition_max_bytes=1 << 24)
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic(topic=CONSUMER_OFFSETS_TOPIC, partitions=[asked])])
    answer = side.answer(request, 12)
    assert isinstance(answer, FetchResponse)
    data = memoryview(bytes(answer.responses[0].partitions[0].records or b""))
    found = [
        entry
        for position, header in headers(data)
        for entry in entries_of(data[position : position + header.size_bytes], header, types_of(consumer_offsets))
    ]
    return [
        {"version": entry.version, "value": entry.value and side.plain(entry.value, entry.version, TIMES)}
        for entry in found
        if isinstance(entry, Entry) and isinstance(entry.key, GroupMetadataKey) and entry.key.group == group
    ]


def test_what_is_written_down(both: Both, new_name: Names) -> None:
    """The record of a group, each time that one is written; static members included."""
    group = new_name("journal")

    def script(side: Side) -> Iterator[Plain]:
        with Crowd(side, group, 9) as crowd:
            anna = crowd.actor("anna", protocols={"range": b"r", "sticky": b"s"}, rebalance_timeout_ms=20_000)
            bert = crowd.actor("bert", protocols={"range": b"r2", "sticky": b"s2"}, group_instance_id="b")
            yield anna.join()
            yield anna.call(anna.syncs({anna.member_id: b"A"}))
            yield bert.start_join()
            yield anna.join()
            yield bert.answer()
            yield anna.call(anna.syncs({anna.member_id: b"A", bert.member_id: b"B"}))
            again = crowd.actor("bert", protocols={"range": b"r3"}, group_instance_id="b")
            yield again.join()
            yield anna.leave()
            yield again.join()
            yield again.leave()
            yield described(crowd)
            yield crowd.named(journal(side, group))

    *_, entries = both.same(script)
    assert len(entries) == 5


def test_the_most_wanted_protocol_is_chosen(both: Both, new_name: Names) -> None:
    group = new_name("votes")

    def script(side: Side) -> Iterator[Plain]:
        with Crowd(side, group, 9) as crowd:
            first = crowd.actor("first", protocol_type="connect", protocols={"x": b"1x", "y": b"1y", "z": b"1z"})
            yield first.join()
            others = [
                crowd.actor("second", protocol_type="connect", protocols={"z": b"2z", "y": b"2y"}),
                crowd.actor("third", protocol_type="connect", protocols={"y": b"3y", "x": b"3x", "z": b"3z"}),
                crowd.actor("fourth", protocol_type="connect", protocols={"z": b"4z", "y": b"4y"}),
            ]
            for other in others:
                yield other.start_join()
            yield first.join()
            yield [other.answer() for other in others]
            yield first.call(first.syncs(protocol_name="z"))
            yield described(crowd)

    both.same(script)


def test_who_is_late_is_left_behind(both: Both, new_name: Names) -> None:
    """The rebalance timeout ends the wait for members that do not rejoin, and for those that do not sync."""
    group = new_name("late")

    def script(side: Side) -> Iterator[Plain]:
        with Crowd(side, group, 9) as crowd:
            anna = crowd.actor("anna", rebalance_timeout_ms=1_000)
            bert = crowd.actor("bert", rebalance_timeout_ms=1_000)
            yield anna.join()
            yield bert.start_join()
            yield bert.answer()  # anna never rejoins
            yield anna.heartbeat()
            # Nor does the leader ever sync now, while the other one waits.
            carl = crowd.actor("carl", rebalance_timeout_ms=1_000)
            yield carl.start_join()
            yield bert.join()
            yield carl.answer()
            yield carl.call(carl.syncs())
            yield bert.heartbeat()
            yield carl.join()
            yield described(crowd)

    both.same(script)
