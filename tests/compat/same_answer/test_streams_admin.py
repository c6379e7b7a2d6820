"""Streams groups from outside: offsets, lists, descriptions, groups of other kinds; the same as with a real Kafka."""

from collections.abc import Iterator

import pytest
from tests.compat.conftest import Names
from tests.support.requests.same import Both, Plain, Side
from tests.support.requests.streamers import Troupe, subtopology, topology

from ottla.wire.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.groups.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.groups.join_group import JoinGroupRequest
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.groups.streams_group_describe import StreamsGroupDescribeRequest
from ottla.wire.messages.shares.share_group_heartbeat import ShareGroupHeartbeatRequest


def test_offsets_of_members(both: Both, new_name: Names) -> None:
    group, topic, other = new_name("offsets"), new_name("topic"), new_name("other")

    def commit(side: Side, name: str, member: str, epoch: int, version: int = 9, partition: int = 0) -> Plain:
        topics = OffsetCommitRequest.Topic
        part = topics.Partition(partition_index=partition, committed_offset=7, committed_metadata="")
        wanted = topics(name=name, partitions=[part])
        request = OffsetCommitRequest(
            group_id=group, member_id=member, generation_id_or_member_epoch=epoch, topics=[wanted]
        )
        return side.call(request, version)

    def fetch(side: Side, member: str | None, epoch: int) -> Plain:
        groups = OffsetFetchRequest.Group
        asked = groups(group_id=group, member_id=member, member_epoch=epoch, topics=None)
        return side.call(OffsetFetchRequest(groups=[asked]), 9)

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 4)
        side.create(other, 1)
        troupe = Troupe(side, group)
        play = topology(subtopology("0", topic))
        anna, bert = troupe.player("a", play), troupe.player("b", play)
        anna.join()
        yield commit(side, topic, "a", anna.epoch)
        yield commit(side, topic, "a", anna.epoch, version=8)
        yield commit(side, topic, "a", anna.epoch + 1)
        yield commit(side, topic, "a", anna.epoch - 1)
        yield commit(side, topic, "nobody", anna.epoch)
        yield commit(side, topic, "", -1)
        bert.join()
        anna.beat()
        anna.confirm()
        yield commit(side, topic, "a", anna.epoch - 1)  # of before, but it had the task then
        yield commit(side, other, "a", anna.epoch - 1)
        yield commit(side, topic, "a", anna.epoch - 1, partition=3)
        yield fetch(side, None, -1)
        yield fetch(side, "a", anna.epoch)
        yield fetch(side, "a", anna.epoch - 1)
        yield fetch(side, "nobody", 1)
        yield side.call(DeleteGroupsRequest(groups_names=[group]), 2)
        anna.leave()
        bert.leave()
        yield commit(side, topic, "", -1)
        yield side.call(DeleteGroupsRequest(groups_names=[group]), 2)
        yield fetch(side, None, -1)

    both.same(script)


def test_describe_and_list(both: Both, new_name: Names) -> None:
    group, topic = new_name("shown"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 1)
        troupe = Troupe(side, group)
        yield side.call(StreamsGroupDescribeRequest(group_ids=["", "no-such"], include_authorized_operations=True), 0)
        anna = troupe.player("a", topology(subtopology("0", topic)))
        anna.join()
        yield side.call(StreamsGroupDescribeRequest(group_ids=[group], include_authorized_operations=True), 0)
        for states in ([], ["Stable"], ["stable"], ["NotReady"], ["Empty"], ["Nonsense"]):
            for types in ([], ["streams"], ["Streams"], ["consumer"]):
                yield states, types, troupe.listed(states_filter=states, types_filter=types)

    both.same(script)


@pytest.mark.parametrize("kind", ["classic", "consumer", "share"])
def test_groups_of_other_kinds(both: Both, new_name: Names, kind: str) -> None:
    """A member of one kind knocks at a group of another kind."""
    group, topic = new_name("other-kind"), new_name("topic")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 1)
        # Now, because Kafka takes its time once it has to make the topic of share groups.
        troupe = Troupe(side, group, **{"consumer.assignment.interval.ms": "0", "share.assignment.interval.ms": "0"})
        other = Troupe(side, f"{group}-other")
        anna = troupe.player("a", topology(subtopology("0", topic)))
        yield knock(side, group, kind, topic)
        yield anna.join()
        yield anna.beat(member_epoch=1)
        yield anna.leave()
        yield troupe.described()
        bert = other.player("b", topology(subtopology("0", topic)))
        yield bert.join()
        yield knock(side, other.group, kind, topic)
        yield bert.leave()
        yield knock(side, other.group, kind, topic)

    both.same(script)


def knock(side: Side, group: str, kind: str, topic: str) -> Plain:
    if kind == "classic":
        protocol = JoinGroupRequest.Protocol(name="range", metadata=b"")
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=[protocol],
        )
        return side.call(request, 9, blank=("member_id", "leader"))
    if kind == "consumer":
        said = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": [topic], "topic_partitions": []}
        return side.call(ConsumerGroupHeartbeatRequest(group_id=group, member_id="x", member_epoch=0, **said), 1)
    beat = ShareGroupHeartbeatRequest(group_id=group, member_id="x", member_epoch=0, subscribed_topic_names=[topic])
    return side.call(beat, 1)
