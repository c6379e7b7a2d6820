"""Members of modern groups and transactional producers, with some rights: the same answers as a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.compat.conftest import Names
from tests.support.requests.beats import Flock
from tests.support.requests.limited import TEXT, Sides, grant, own
from tests.support.requests.same import Plain, Side
from tests.support.requests.shares import ShareTalk
from tests.support.requests.transactional import Transactional
from tests.support.waiting import until

from ottla.security.acls import AclOperation, AclResourceType
from ottla.wire.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.groups.offset_delete import OffsetDeleteRequest
from ottla.wire.messages.records.describe_producers import DescribeProducersRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.shares.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from ottla.wire.messages.shares.share_acknowledge import ShareAcknowledgeRequest
from ottla.wire.messages.shares.share_fetch import ShareFetchRequest
from ottla.wire.messages.shares.share_group_describe import ShareGroupDescribeRequest
from ottla.wire.messages.shares.share_group_heartbeat import ShareGroupHeartbeatRequest
from ottla.wire.messages.txns.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.txns.list_transactions import ListTransactionsRequest
from ottla.wire.messages.txns.txn_offset_commit import TxnOffsetCommitRequest

MEMBER = "AAAAAAAAAAAAAAAAAAAAAg"


def test_a_consumer_names_topics(sides: Sides, new_name: Names) -> None:
    mine, hidden, group = new_name("mine"), new_name("hidden"), new_name("group")

    def beat(client: Side, *topics: str) -> Plain:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=list(topics),
            topic_partitions=[],
        )
        return client.call(request, 1, blank=TEXT)

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, hidden)
        Flock(admin, group)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.TOPIC, mine)
        yield beat(client, mine)
        grant(admin, AclOperation.READ, AclResourceType.GROUP, group)
        yield beat(client, mine, hidden)
        yield beat(client, mine)

    sides.same(script)


def test_a_regular_expression_matches_what_its_member_may_describe(sides: Sides, new_name: Names) -> None:
    prefix = new_name("expression")
    mine, hidden, group = f"{prefix}-mine", f"{prefix}-hidden", new_name("group")

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, hidden)
        Flock(admin, group)
        grant(admin, AclOperation.READ, AclResourceType.GROUP, group)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.TOPIC, mine)
        flock = Flock.__new__(Flock)
        flock.side, flock.group = client, group
        member = flock.bird("m", subscribed_topic_regex=f"{prefix}.*")
        member.join()
        found = until(lambda: (member.beat(), member.owned)[1], bool)
        yield [(topic_id == client.ids[mine], partitions) for topic_id, partitions in found]

    sides.same(script)


def join(admin: Side, group: str, topics: list[str]) -> None:
    """Join as the only member, and wait for all topics."""
    member = Flock(admin, group).bird("m", topics)
    member.join()
    until(lambda: (member.confirm(), member.owned)[1], lambda owned: len(owned) == len(topics))


def test_groups_with_hidden_topics_are_hidden(sides: Sides, new_name: Names) -> None:
    mine, hidden = new_name("mine"), new_name("hidden")
    seen, secret, other = new_name("seen"), new_name("secret"), new_name("other")

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, hidden)
        for group, topics in ((seen, [mine]), (secret, [mine, hidden])):
            join(admin, group, topics)
            grant(admin, AclOperation.DESCRIBE, AclResourceType.GROUP, group)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.TOPIC, mine)
        request = ConsumerGroupDescribeRequest(group_ids=[seen, secret, other], include_authorized_operations=True)
        yield client.call(request, 1, blank=(*TEXT, "client_host", "client_id"))
        for group in (seen, secret):
            Flock(admin, group).bird("m").leave()

    sides.same(script)


def test_share_groups(sides: Sides, new_name: Names) -> None:
    mine, hidden, group, other = (new_name(each) for each in ("mine", "hidden", "group", "other"))

    def beat(client: Side, *topics: str) -> Plain:
        request = ShareGroupHeartbeatRequest(
            group_id=group, member_id=MEMBER, member_epoch=0, subscribed_topic_names=list(topics)
        )
        return client.call(request, 1, blank=TEXT)

    def offsets(client: Side, *groups: str, topics: list[str] | None) -> Plain:
        asked = DescribeShareGroupOffsetsRequest.Group
        named = None
        if topics is not None:
            named = [asked.Topic(topic_name=name, partitions=[0]) for name in topics]
        request = DescribeShareGroupOffsetsRequest(groups=[asked(group_id=each, topics=named) for each in groups])
        return client.call(request, 1, blank=TEXT)

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, hidden)
        talk = ShareTalk(admin, group)
        joined = talk.beat("admin-member", 0, mine, hidden)
        talk.stay("admin-member", joined, lambda found: len(found["assignment"]["topic_partitions"]) == 2)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.TOPIC, mine)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.GROUP, group)
        described = ShareGroupDescribeRequest(group_ids=[group, other], include_authorized_operations=True)
        yield client.call(described, 1, blank=TEXT)
        yield offsets(client, group, other, topics=[mine, hidden])
        everything = offsets(client, group, topics=None)
        yield [topic["topic_name"] for topic in everything["groups"][0]["topics"]]
        grant(admin, AclOperation.READ, AclResourceType.GROUP, group)
        yield beat(client, hidden)
        talk.beat("admin-member", -1)

    sides.same(script)


@pytest.mark.parametrize("version", [1, 2])
def test_share_fetch(sides: Sides, new_name: Names, version: int) -> None:
    mine, hidden, group = new_name("mine"), new_name("hidden"), new_name("group")
    asked, batch = ShareFetchRequest.FetchTopic, ShareFetchRequest.FetchTopic.FetchPartition.AcknowledgementBatch
    acked = ShareAcknowledgeRequest.AcknowledgeTopic

    def fetch(client: Side, epoch: int, *topics: str, acknowledges: bool = False) -> Plain:
        batches = [batch(first_offset=0, last_offset=0, acknowledge_types=[1])] if acknowledges else []
        request = ShareFetchRequest(
            group_id=group,
            member_id=MEMBER,
            share_session_epoch=epoch,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1 << 20,
            max_records=10,
            batch_size=10,
            topics=[
                asked(
                    topic_id=client.ids[name],
                    partitions=[asked.FetchPartition(partition_index=0, acknowledgement_batches=batches)],
                )
                for name in topics
            ],
            forgotten_topics_data=[],
        )
        return client.call(request, version, blank=TEXT)

    def acknowledge(client: Side, epoch: int, *topics: str) -> Plain:
        one = acked.AcknowledgePartition.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])
        request = ShareAcknowledgeRequest(
            group_id=group,
            member_id=MEMBER,
            share_session_epoch=epoch,
            topics=[
                acked(
                    topic_id=client.ids[name],
                    partitions=[acked.AcknowledgePartition(partition_index=0, acknowledgement_batches=[one])],
                )
                for name in topics
            ],
        )
        return client.call(request, version, blank=TEXT)

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, hidden)
        ShareTalk(admin, group).join("admin-member", mine, hidden)
        yield fetch(client, 0, mine, hidden)
        grant(admin, AclOperation.READ, AclResourceType.GROUP, group)
        yield fetch(client, 0, hidden)
        yield fetch(client, 1)
        yield fetch(client, 2, hidden, acknowledges=True)
        yield acknowledge(client, 3, hidden)
        ShareTalk(admin, group).beat("admin-member", -1)

    sides.same(script)


def test_transactions(sides: Sides, new_name: Names) -> None:
    mine, hidden, group = new_name("mine"), new_name("hidden"), new_name("group")
    id, other = new_name("txn"), new_name("other")

    def commit(client: Side, txn: Transactional) -> Plain:
        topic = TxnOffsetCommitRequest.Topic
        topics = [
            topic(
                name=name,
                partitions=[topic.Partition(partition_index=0, committed_offset=1, committed_metadata="")],
            )
            for name in (mine, hidden, "missing")
        ]
        request = TxnOffsetCommitRequest(
            transactional_id=id,
            group_id=group,
            producer_id=txn.producer_id,
            producer_epoch=txn.epoch,
            topics=topics,
        )
        return client.call(request, 3)

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, hidden)
        txn = Transactional(admin, id).find().begin()
        Transactional(admin, other).find()
        txn.add(mine, 0)
        txn.add(hidden, 0)
        limited = Transactional(client, id)
        limited.producer_id, limited.epoch = txn.producer_id, txn.epoch
        yield limited.produce(mine, version=11)
        yield limited.end(version=3)
        yield limited.add_offsets(group, version=3)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, id)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.TOPIC, mine)
        describe = DescribeTransactionsRequest(transactional_ids=[other, id])
        yield client.call(describe, 0, blank=("transaction_start_time_ms",))
        listed = client.call(ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 0)
        yield [name for each in listed["transaction_states"] if (name := each["transactional_id"]) in (id, other)]
        yield commit(client, txn)
        grant(admin, AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, id)
        yield commit(client, txn)
        yield limited.add_offsets(group, version=3)
        grant(admin, AclOperation.READ, AclResourceType.GROUP, group)
        grant(admin, AclOperation.READ, AclResourceType.TOPIC, mine)
        yield limited.add_offsets(group, version=3)
        yield commit(client, txn)
        yield limited.produce(mine, version=11)
        yield limited.end(version=3)

    sides.same(script)


def test_idempotent_producers_need_a_right_on_something(sides: Sides, new_name: Names) -> None:
    stranger, writer = "127.0.0.3", "127.0.0.4"
    topic = new_name("topic")
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

    def init(side: Side, source: str) -> Plain:
        client = Side(side.name, side.bootstrap, source=source)
        try:
            return client.call(request, 4)
        finally:
            client.close()

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        until(lambda: admin.call(request, 4)["error_code"], lambda code: code == 0)
        yield init(client, stranger)
        grant(admin, AclOperation.WRITE, AclResourceType.TOPIC, topic, writer)
        yield init(client, writer)
        grant(admin, AclOperation.IDEMPOTENT_WRITE, AclResourceType.CLUSTER, "kafka-cluster", stranger)
        yield init(client, stranger)

    sides.same(script)


def test_producers_and_offsets(sides: Sides, new_name: Names) -> None:
    mine, seen, hidden, group = (new_name(each) for each in ("mine", "seen", "hidden", "group"))

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, seen, hidden)
        Flock(admin, group)
        grant(admin, AclOperation.READ, AclResourceType.TOPIC, mine)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.TOPIC, seen)
        asked = DescribeProducersRequest.TopicRequest
        topics = [asked(name=name, partition_indexes=[0, 3]) for name in (hidden, mine, seen, "no/name", "missing")]
        yield client.call(DescribeProducersRequest(topics=topics), 0, blank=TEXT)
        grant(admin, AclOperation.DELETE, AclResourceType.GROUP, group)
        deleted = OffsetDeleteRequest.Topic
        named = [deleted(name=name, partitions=[deleted.Partition(partition_index=0)]) for name in (mine, hidden)]
        yield client.call(OffsetDeleteRequest(group_id=group, topics=named), 0)

    sides.same(script)


def test_produce_without_acks_closes_the_connection(sides: Sides, new_name: Names) -> None:
    hidden = new_name("hidden")
    data: Any = ProduceRequest.TopicProduceData

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, hidden)
        part = data.PartitionProduceData(index=0, records=Transactional(client, "").batch((hidden, 0)))
        topic = data(name=hidden, partition_data=[part])
        yield client.call(ProduceRequest(transactional_id=None, acks=0, timeout_ms=1_000, topic_data=[topic]), 9)

    sides.same(script)
