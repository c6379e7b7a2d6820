"""Committed offsets and the groups that have nothing else: the same answers as a real Kafka, in every version."""

from collections.abc import Iterator
from itertools import count, islice

import pytest
from tests.compat.conftest import Names, versions_of
from tests.support.requests.same import Both, Plain, Side
from tests.support.waiting import until

from ottla.model.java import java_abs, java_hash
from ottla.wire.messages.groups.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.groups.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.list_groups import ListGroupsRequest
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest
from ottla.wire.messages.groups.offset_delete import OffsetDeleteRequest
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest

Commit = OffsetCommitRequest.Topic
UNKNOWN_ID = bytes(range(16))
NEWEST_COMMIT = 9
BY_ID = 10


def commit(
    side: Side, group: str, topic: str, version: int, *offsets: tuple[int, int, str | None], **fields: object
) -> Plain:
    """Commits (partition, offset, metadata) of one topic."""
    partitions = [
        Commit.Partition(
            partition_index=index, committed_offset=offset, committed_leader_epoch=3, committed_metadata=metadata
        )
        for index, offset, metadata in offsets
    ]
    topics = [Commit(name=topic, topic_id=side.ids.get(topic, UNKNOWN_ID), partitions=partitions)]
    request = OffsetCommitRequest(**{"group_id": group, "member_id": "", "topics": topics, **fields})
    return side.call(request, version)


def fetch(side: Side, group: str, topic: str | None, version: int, *indexes: int, **fields: object) -> Plain:
    """The group's offsets of some partitions; of all topics if `topic` is None."""
    by_id = side.ids.get(topic or "", UNKNOWN_ID)
    asked = OffsetFetchRequest.Group
    if version >= 8:
        topics = None if topic is None else [asked.Topics(name=topic, topic_id=by_id, partition_indexes=list(indexes))]
        request = OffsetFetchRequest(groups=[asked(group_id=group, topics=topics)], **fields)
    else:
        old = None if topic is None else [OffsetFetchRequest.Topic(name=topic, partition_indexes=list(indexes))]
        request = OffsetFetchRequest(group_id=group, topics=old, **fields)
    return side.call(request, version)


def wait_for_coordinator(side: Side, *keys: str) -> None:
    """Kafka makes the offsets' topic on first use, and loads it a moment later."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=list(keys))
    until(lambda: side.call(request, 6), lambda found: not any(each["error_code"] for each in found["coordinators"]))
    until(lambda: [fetch(side, key, None, 9)["groups"][0]["error_code"] for key in keys], lambda codes: not any(codes))


@pytest.mark.parametrize("version", versions_of(OffsetCommitRequest))
def test_commit(both: Both, new_name: Names, version: int) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 3)
        wait_for_coordinator(side, group)
        yield commit(side, group, topic, version, (0, 5, "here"), (1, 0, ""), (2, -1, None), (3, 1, ""), (-1, 1, ""))
        yield commit(side, group, topic, version, (0, 2, "back"))
        yield commit(side, group, topic, version, (1, 7, "m" * 4096), (0, 9, "m" * 4097))
        yield commit(side, group, "missing", version, (0, 1, ""))
        yield commit(side, group, topic, version, (0, 1, ""), generation_id_or_member_epoch=3)
        yield commit(side, group, topic, version, (0, 1, ""), member_id="somebody")
        yield commit(side, group, topic, version, (0, 1, ""), member_id="somebody", generation_id_or_member_epoch=0)
        yield commit(side, group + "-new", topic, version, (0, 1, ""), generation_id_or_member_epoch=3)
        yield commit(side, "", topic, version, (0, 1, ""))
        if version >= 7:
            yield commit(side, group, topic, version, (0, 1, ""), group_instance_id="static")
        if version <= 4:
            yield commit(side, group, topic, version, (0, 1, "kept"), retention_time_ms=100_000)
        yield fetch(side, group, topic, 9, 0, 1, 2, 3)

    both.same(script)


@pytest.mark.parametrize("version", versions_of(OffsetFetchRequest))
def test_fetch(both: Both, new_name: Names, version: int) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 2)
        wait_for_coordinator(side, group, group + "-none")
        yield commit(side, group, topic, NEWEST_COMMIT, (0, 5, "here"), (1, 6, "there"))
        yield fetch(side, group, topic, version, 0, 1, 2, 7, -1)
        yield fetch(side, group, "missing", version, 0)
        yield fetch(side, group + "-none", topic, version, 0)
        yield fetch(side, group, topic, version)
        if version >= 2:
            yield fetch(side, group, None, version)
            yield fetch(side, group + "-none", None, version)
        if version >= 7:
            yield fetch(side, group, topic, version, 0, 1, require_stable=True)

    both.same(script)


def test_topics_that_nobody_knows_come_last(both: Both, new_name: Names) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        id = side.create(topic, 2)
        wait_for_coordinator(side, group, group + "-none")
        commit(side, group, topic, NEWEST_COMMIT, (0, 5, ""))
        asked = OffsetFetchRequest.Group
        topics = [
            asked.Topics(topic_id=UNKNOWN_ID, partition_indexes=[1, 0]),
            asked.Topics(topic_id=id, partition_indexes=[0, 5]),
            asked.Topics(partition_indexes=[3]),
        ]
        for name in (group, group + "-none", ""):
            yield side.call(OffsetFetchRequest(groups=[asked(group_id=name, topics=topics)]), BY_ID)

    both.same(script)


def test_fetch_of_many_groups(both: Both, new_name: Names) -> None:
    topic, group = new_name("topic"), new_name("group")
    names = [f"{group}-{number}" for number in range(4)]

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 1)
        wait_for_coordinator(side, *names)
        for number, name in enumerate(names[:3]):
            yield commit(side, name, topic, NEWEST_COMMIT, (0, number, ""))
        asked = OffsetFetchRequest.Group
        groups = [asked(group_id=name, topics=None) for name in reversed(names)]
        groups.append(asked(group_id=names[0], topics=[asked.Topics(name=topic, partition_indexes=[0])]))
        answer = side.call(OffsetFetchRequest(groups=groups), 9)
        yield sorted(answer["groups"], key=str)
        yield side.call(OffsetFetchRequest(groups=[]), 9)

    both.same(script)


def test_a_deleted_topic_takes_its_offsets_along(both: Both, new_name: Names) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 1)
        wait_for_coordinator(side, group)
        yield commit(side, group, topic, NEWEST_COMMIT, (0, 5, ""))
        state = DeleteTopicsRequest.DeleteTopicState
        yield side.call(DeleteTopicsRequest(topics=[state(name=topic, topic_id=bytes(16))], timeout_ms=5000), 6)
        yield until(lambda: fetch(side, group, None, 9), lambda left: not left["groups"][0]["topics"])

    both.same(script)


def test_delete_offsets(both: Both, new_name: Names) -> None:
    topic, group = new_name("topic"), new_name("group")

    def delete(side: Side, name: str, of: str, *indexes: int) -> Plain:
        asked = OffsetDeleteRequest.Topic
        partitions = [asked.Partition(partition_index=index) for index in indexes]
        return side.call(OffsetDeleteRequest(group_id=name, topics=[asked(name=of, partitions=partitions)]), 0)

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 3)
        wait_for_coordinator(side, group, group + "-none")
        yield commit(side, group, topic, NEWEST_COMMIT, (0, 5, ""), (1, 6, ""))
        yield delete(side, group, topic, 0, 2, 9)
        yield delete(side, group, "missing", 0)
        yield delete(side, group + "-none", topic, 0)
        yield delete(side, "", topic, 0)
        yield fetch(side, group, None, 9)

    both.same(script)


@pytest.mark.parametrize("version", versions_of(ListGroupsRequest))
def test_list(both: Both, new_name: Names, version: int) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 1)
        names = [f"{group}-{number}" for number in range(3)]
        wait_for_coordinator(side, *names)
        for name in names:
            commit(side, name, topic, NEWEST_COMMIT, (0, 5, ""))
        yield _ours(side.call(ListGroupsRequest(), version), group)
        if version >= 4:
            for states in (["Empty"], ["empty"], ["Stable"], ["Nonsense"], ["Stable", "EMPTY"]):
                yield _ours(side.call(ListGroupsRequest(states_filter=states), version), group)
        if version >= 5:
            for types in (["classic"], ["Classic", "share"], ["consumer"], ["nonsense"], ["UNKNOWN"]):
                yield _ours(side.call(ListGroupsRequest(types_filter=types), version), group)

    both.same(script)


def test_the_order_of_lists(both: Both, new_name: Names) -> None:
    """Of groups that one partition has: that of Kafka's table. Kafka's order of partitions is not kept."""
    topic, group = new_name("topic"), new_name("group")
    candidates = (f"{group}-{number}" for number in count())
    names = list(islice((name for name in candidates if java_abs(java_hash(name)) % 50 == 7), 9))

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 1)
        wait_for_coordinator(side, *names)
        for name in names:
            commit(side, name, topic, NEWEST_COMMIT, (0, 5, ""))
        listed = [each["group_id"] for each in side.call(ListGroupsRequest(), 5)["groups"]]
        yield [name for name in listed if name in names]

    both.same(script)


def _ours(answer: Plain, prefix: str) -> Plain:
    groups = [group for group in answer["groups"] if group["group_id"].startswith(prefix)]
    return {**answer, "groups": sorted(groups, key=str)}


@pytest.mark.parametrize("version", versions_of(DescribeGroupsRequest))
def test_describe(both: Both, new_name: Names, version: int) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 1)
        wait_for_coordinator(side, group, group + "-none")
        commit(side, group, topic, NEWEST_COMMIT, (0, 5, ""))
        for name in (group, group + "-none", ""):
            yield side.call(DescribeGroupsRequest(groups=[name]), version)
        if version >= 3:
            yield side.call(DescribeGroupsRequest(groups=[group], include_authorized_operations=True), version)

    both.same(script)


@pytest.mark.parametrize("version", versions_of(DeleteGroupsRequest))
def test_delete(both: Both, new_name: Names, version: int) -> None:
    topic, group = new_name("topic"), new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        side.create(topic, 1)
        wait_for_coordinator(side, group, group + "-none")
        commit(side, group, topic, NEWEST_COMMIT, (0, 5, ""))
        for name in (group + "-none", "", group, group):
            yield side.call(DeleteGroupsRequest(groups_names=[name]), version)
        yield fetch(side, group, None, 9)

    both.same(script)


@pytest.mark.parametrize("version", versions_of(FindCoordinatorRequest))
def test_find_coordinator(both: Both, new_name: Names, version: int) -> None:
    group = new_name("group")

    def script(side: Side) -> Iterator[Plain]:
        wait_for_coordinator(side, group)
        for kind in (0, 7, -1):
            if version >= 4:
                yield side.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=[group, "", group]), version)
                yield side.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=[]), version)
            elif kind == 0 or version >= 1:
                yield side.call(FindCoordinatorRequest(key=group, key_type=kind), version)

    both.same(script)
