"""Groups and transactions, with rights on some: the same answers as a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.compat.conftest import Names, versions_of
from tests.support.requests.limited import TEXT, UNKNOWN_ID, Sides, grant, own, wait_for_coordinator
from tests.support.requests.same import Plain, Side
from tests.support.waiting import until

from ottla.security.acls import AclOperation, AclResourceType
from ottla.wire.messages.groups.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.groups.join_group import JoinGroupRequest
from ottla.wire.messages.groups.list_groups import ListGroupsRequest
from ottla.wire.messages.groups.offset_commit import OffsetCommitRequest
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.txns.add_partitions_to_txn import AddPartitionsToTxnRequest
from ottla.wire.messages.txns.add_partitions_to_txn import Topic as TopicToAdd
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest


@pytest.mark.parametrize("version", versions_of(OffsetCommitRequest))
def test_offset_commit(sides: Sides, new_name: Names, version: int) -> None:
    mine, hidden, group = new_name("mine"), new_name("hidden"), new_name("group")
    topic = OffsetCommitRequest.Topic

    def commit(client: Side, *names: str) -> Plain:
        topics = [
            topic(
                name=name,
                topic_id=client.ids.get(name, UNKNOWN_ID),
                partitions=[
                    topic.Partition(partition_index=at, committed_offset=1, committed_metadata="") for at in (0, 5)
                ],
            )
            for name in names
        ]
        return client.call(OffsetCommitRequest(group_id=group, member_id="", topics=topics), version)

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, hidden)
        wait_for_coordinator(admin, 0, group)
        grant(admin, AclOperation.READ, AclResourceType.TOPIC, mine)
        yield commit(client, mine)
        grant(admin, AclOperation.READ, AclResourceType.GROUP, group)
        yield commit(client, mine)
        yield commit(client, hidden)
        yield commit(client, mine, hidden, "missing")

    sides.same(script)


@pytest.mark.parametrize("version", versions_of(OffsetFetchRequest))
def test_offset_fetch(sides: Sides, new_name: Names, version: int) -> None:
    mine, hidden, group, other = (new_name(each) for each in ("mine", "hidden", "group", "other"))

    def fetch(client: Side, names: list[str] | None, *groups: str) -> Plain:
        asked = OffsetFetchRequest.Group
        if version >= 8:
            topics = None
            if names is not None:
                topics = [
                    asked.Topics(name=name, topic_id=client.ids.get(name, UNKNOWN_ID), partition_indexes=[0, 1])
                    for name in names
                ]
            return client.call(OffsetFetchRequest(groups=[asked(group_id=id, topics=topics) for id in groups]), version)
        old = None
        if names is not None:
            old = [OffsetFetchRequest.Topic(name=name, partition_indexes=[0, 1]) for name in names]
        return client.call(OffsetFetchRequest(group_id=groups[0], topics=old), version)

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, hidden)
        wait_for_coordinator(admin, 0, group)
        for name in (mine, hidden):
            partition = OffsetCommitRequest.Topic.Partition(
                partition_index=0, committed_offset=3, committed_metadata="m"
            )
            topic = OffsetCommitRequest.Topic(name=name, partitions=[partition])
            admin.call(OffsetCommitRequest(group_id=group, member_id="", topics=[topic]), 9)
        yield fetch(client, [mine, hidden], group)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.GROUP, group)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.TOPIC, mine)
        yield fetch(client, [mine, hidden, "missing"], group)
        yield fetch(client, [hidden], group)
        if version >= 2:
            yield fetch(client, None, group)
        if version >= 8:
            yield fetch(client, [mine], group, other, group + "-new")

    sides.same(script)


@pytest.mark.parametrize("version", versions_of(FindCoordinatorRequest))
def test_find_coordinator(sides: Sides, new_name: Names, version: int) -> None:
    group, other, id = new_name("group"), new_name("other"), new_name("txn")

    def find(client: Side, kind: int, *keys: str) -> Plain:
        if version >= 4:
            return client.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys)), version)
        return client.call(FindCoordinatorRequest(key_type=kind, key=keys[0]), version)

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        wait_for_coordinator(admin, 0, group)
        wait_for_coordinator(admin, 1, id)
        yield find(client, 0, other)
        grant(admin, AclOperation.READ, AclResourceType.GROUP, group)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, id)
        yield find(client, 0, group, other, group)
        if version >= 1:
            yield find(client, 1, id, other)
        if version >= 6:
            yield find(client, 2, "g:AAAAAAAAAAAAAAAAAAAAAQ:0")

    sides.same(script)


@pytest.mark.parametrize("version", versions_of(JoinGroupRequest))
def test_join_group(sides: Sides, new_name: Names, version: int) -> None:
    group = new_name("group")

    def join(client: Side) -> Plain:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"")],
        )
        return client.call(request, version, blank=("member_id", "leader"))

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        wait_for_coordinator(admin, 0, group)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.GROUP, group)
        yield join(client)
        grant(admin, AclOperation.READ, AclResourceType.GROUP, group)
        yield join(client)

    sides.same(script)


@pytest.mark.parametrize("version", versions_of(DescribeGroupsRequest))
def test_describe_and_list_groups(sides: Sides, new_name: Names, version: int) -> None:
    topic, group, hidden = new_name("topic"), new_name("group"), new_name("hidden")

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, topic)
        for each in (group, hidden):
            wait_for_coordinator(admin, 0, each)
            partition = OffsetCommitRequest.Topic.Partition(
                partition_index=0, committed_offset=3, committed_metadata="m"
            )
            named = OffsetCommitRequest.Topic(name=topic, partitions=[partition])
            admin.call(OffsetCommitRequest(group_id=each, member_id="", topics=[named]), 9)
        grant(admin, AclOperation.READ, AclResourceType.GROUP, group)
        request = DescribeGroupsRequest(groups=[hidden, group], include_authorized_operations=version >= 3)
        yield client.call(request, version, blank=TEXT)
        listed = client.call(ListGroupsRequest(), min(version, 5))
        yield [each for each in listed["groups"] if each["group_id"] in (group, hidden)]

    sides.same(script)


@pytest.mark.parametrize("version", versions_of(InitProducerIdRequest))
def test_init_producer_id(sides: Sides, new_name: Names, version: int) -> None:
    id = new_name("txn")

    def init(client: Side, id: str | None) -> Plain:
        return client.call(InitProducerIdRequest(transactional_id=id, transaction_timeout_ms=60_000), version)

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        wait_for_coordinator(admin, 1, id)
        until(lambda: init(admin, id)["error_code"], lambda code: code == 0)  # it may have to load its log first
        grant(admin, AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, id)
        yield init(client, id)
        grant(admin, AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, id)
        yield init(client, id)
        yield init(client, f"{id}-other")

    sides.same(script)


@pytest.mark.parametrize("version", versions_of(AddPartitionsToTxnRequest))
def test_add_partitions_to_txn(sides: Sides, new_name: Names, version: int) -> None:
    mine, hidden, id = new_name("mine"), new_name("hidden"), new_name("txn")
    transaction = AddPartitionsToTxnRequest.Transaction

    def add(client: Side, *names: str) -> Plain:
        topics = [TopicToAdd(name=name, partitions=[0, 4]) for name in names]
        if version >= 4:
            one = transaction(transactional_id=id, producer_id=1, producer_epoch=0, topics=topics)
            return client.call(AddPartitionsToTxnRequest(transactions=[one]), version)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=id,
            v3_and_below_producer_id=1,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=topics,
        )
        return client.call(request, version)

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, hidden)
        wait_for_coordinator(admin, 1, id)
        yield add(client, mine)
        grant(admin, AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, id)
        yield add(client, mine)
        grant(admin, AclOperation.WRITE, AclResourceType.TOPIC, mine)
        yield add(client, mine, hidden, "missing")
        yield add(client, mine, "__consumer_offsets")
        yield add(client, mine)

    sides.same(script)
