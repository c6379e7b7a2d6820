"""Records, with rights on some topics: the same answers as a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.compat.conftest import Names, versions_of
from tests.support.requests.limited import TEXT, UNKNOWN_ID, Sides, grant, own
from tests.support.requests.same import Plain, Side

from ottla.records.build import build_batch
from ottla.security.acls import AclOperation, AclResourceType
from ottla.wire.messages.records.delete_records import DeleteRecordsRequest
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest
from ottla.wire.messages.records.produce import ProduceRequest


def batch(value: bytes = b"v") -> bytes:
    return bytes(build_batch([(b"k", value)], timestamp=1))


@pytest.mark.parametrize("version", versions_of(ProduceRequest))
def test_produce(sides: Sides, new_name: Names, version: int) -> None:
    mine, seen, hidden = (new_name(each) for each in ("mine", "seen", "hidden"))

    def produce(client: Side, *topics: str, acks: int = 1) -> Plain:
        data = ProduceRequest.TopicProduceData
        asked = [
            data(
                name=name,
                topic_id=client.ids.get(name, UNKNOWN_ID),
                partition_data=[data.PartitionProduceData(index=0, records=batch())],
            )
            for name in topics
        ]
        request = ProduceRequest(transactional_id=None, acks=acks, timeout_ms=5_000, topic_data=asked)
        return client.call(request, version, blank=TEXT)

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, seen, hidden)
        grant(admin, AclOperation.WRITE, AclResourceType.TOPIC, mine)
        grant(admin, AclOperation.READ, AclResourceType.TOPIC, seen)
        yield produce(client, mine)
        yield produce(client, seen)
        yield produce(client, hidden)
        yield produce(client, mine, seen, hidden, "missing")

    sides.same(script)


@pytest.mark.parametrize("version", versions_of(FetchRequest))
def test_fetch(sides: Sides, new_name: Names, version: int) -> None:
    mine, hidden = new_name("mine"), new_name("hidden")

    def fetch(client: Side, *topics: str, replica: int = -1) -> Plain:
        asked = [
            FetchRequest.Topic(
                topic=name,
                topic_id=client.ids.get(name, UNKNOWN_ID),
                partitions=[FetchRequest.Topic.Partition(partition=0, fetch_offset=0, partition_max_bytes=1_000)],
            )
            for name in topics
        ]
        request = FetchRequest(
            replica_id=replica,
            replica_state=FetchRequest.ReplicaState(replica_id=replica),
            max_wait_ms=0,
            min_bytes=0,
            topics=asked,
        )
        return client.call(request, version)

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, hidden)
        grant(admin, AclOperation.READ, AclResourceType.TOPIC, mine)
        yield fetch(client, mine)
        yield fetch(client, hidden)
        yield fetch(client, mine, hidden, "missing")
        yield fetch(client, mine, hidden, replica=7)

    sides.same(script)


@pytest.mark.parametrize("version", range(7, 19))
def test_fetch_sessions_ask_again(sides: Sides, new_name: Names, version: int) -> None:
    """Rights that are given while a session is open count for its next fetch."""
    mine, later = new_name("mine"), new_name("later")

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, later)
        grant(admin, AclOperation.READ, AclResourceType.TOPIC, mine)
        asked = [
            FetchRequest.Topic(
                topic=name,
                topic_id=client.ids[name],
                partitions=[FetchRequest.Topic.Partition(partition=0, fetch_offset=0, partition_max_bytes=1_000)],
            )
            for name in (mine, later)
        ]
        full = FetchRequest(max_wait_ms=0, min_bytes=0, session_epoch=0, topics=asked)
        opened: Any = client.answer(full, version)
        yield client.plain(opened, version)
        for epoch in (1, 2):
            request = FetchRequest(
                max_wait_ms=0, min_bytes=0, session_id=opened.session_id, session_epoch=epoch, topics=[]
            )
            yield client.call(request, version)
            grant(admin, AclOperation.READ, AclResourceType.TOPIC, later)

    sides.same(script)


@pytest.mark.parametrize("version", versions_of(ListOffsetsRequest))
def test_list_offsets(sides: Sides, new_name: Names, version: int) -> None:
    mine, hidden = new_name("mine"), new_name("hidden")

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, hidden)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.TOPIC, mine)
        topics = [
            ListOffsetsRequest.Topic(
                name=name,
                partitions=[ListOffsetsRequest.Topic.Partition(partition_index=at, timestamp=-1) for at in (0, 3)],
            )
            for name in (mine, hidden, "missing")
        ]
        yield client.call(ListOffsetsRequest(replica_id=-1, topics=topics), version)

    sides.same(script)


def test_delete_records(sides: Sides, new_name: Names) -> None:
    mine, seen, hidden = (new_name(each) for each in ("mine", "seen", "hidden"))

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, seen, hidden)
        grant(admin, AclOperation.DELETE, AclResourceType.TOPIC, mine)
        grant(admin, AclOperation.READ, AclResourceType.TOPIC, seen)
        topics = [
            DeleteRecordsRequest.Topic(
                name=name, partitions=[DeleteRecordsRequest.Topic.Partition(partition_index=0, offset=0)]
            )
            for name in (mine, seen, hidden, "missing")
        ]
        yield client.call(DeleteRecordsRequest(topics=topics, timeout_ms=5_000), 2)

    sides.same(script)
