"""Coordinators spread over three nodes: who is asked, who answers, and what one node has to do with another's help."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import fastavro
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.client.sharing import share_group, sharer, take
from tests.server.three import GROUP, PROPERTIES, TRANSACTION, around, ask, coordinator, create, until
from tests.support.processes.clusters import OttlaCluster, running
from tests.support.requests.raw import RawConnection
from tests.support.waiting import WAIT_S

from ottla import Cluster
from ottla.client.admin import Admin
from ottla.model.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.schemas.framing import frame
from ottla.schemas.registry.commands import Register
from ottla.schemas.registry.entities import SchemaDraft
from ottla.schemas.registry.machine import RegistryMachine
from ottla.wire.frame import request_frame
from ottla.wire.messages.groups.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.txns.add_partitions_to_txn import AddPartitionsToTxnRequest, Topic
from ottla.wire.messages.txns.end_txn import EndTxnRequest
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
RUN = "0b5bf1c4-6cc5-4e1c-9f4e-0a2ad1a1c2d3"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OttlaCluster]:
    with running(OttlaCluster(tmp_path_factory.mktemp("three"), properties=PROPERTIES)) as started:
        assert isinstance(started, OttlaCluster)
        yield started


def test_all_nodes_name_the_same_coordinators(cluster: OttlaCluster) -> None:
    """Also when all are asked at once and the topic has yet to be made."""
    keys = [f"group-{n}" for n in range(12)]
    with ThreadPoolExecutor(6) as pool:
        asked = [(key, id) for key in keys for id in cluster.ids]
        found = list(pool.map(lambda each: coordinator(cluster, GROUP, each[0], each[1]), asked))
    by_key = {key: {id for (other, _), id in zip(asked, found, strict=True) if other == key} for key in keys}
    assert all(len(ids) == 1 for ids in by_key.values())
    assert {id for ids in by_key.values() for id in ids} == {1, 2, 3}
    key, (home,) = next(iter(by_key.items()))
    for id in cluster.ids:
        until(lambda id=id: (_describe_code(cluster, id, key) == ErrorCode.NOT_COORDINATOR) == (id != home))


def _describe_code(cluster: OttlaCluster, id: int, group: str) -> int:
    (described,) = ask(cluster, id, DescribeGroupsRequest(groups=[group]), 5).groups
    return int(described.error_code)


def test_producer_ids_of_all_nodes_are_different(cluster: OttlaCluster) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    answers = [ask(cluster, id, request, 4) for id in cluster.ids for _ in range(3)]
    assert [each.error_code for each in answers] == [0] * 9
    assert len({each.producer_id for each in answers}) == 9


class Writer:
    """A transactional producer by hand, of the kind that adds partitions itself."""

    def __init__(self, cluster: OttlaCluster, name: str, topic: str) -> None:
        self.cluster, self.name, self.topic = cluster, name, topic
        self.home = coordinator(cluster, TRANSACTION, name)
        begun = until(self._begun)
        self.id, self.epoch = begun.producer_id, begun.producer_epoch

    def _begun(self) -> Any:
        """None while the coordinator has yet to hear that it is one."""
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=9_000)
        answer = ask(self.cluster, self.home, request, 4)
        assert answer.error_code in (0, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return None if answer.error_code else answer

    def add(self, partition: int) -> int:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[Topic(name=self.topic, partitions=[partition])],
        )
        answer = ask(self.cluster, self.home, request, 3)
        return int(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    def end(self, committed: bool) -> int:
        request = EndTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=committed
        )
        return int(ask(self.cluster, self.home, request, 3).error_code)

    def write(self, partition: int, sequence: int, version: int, at: int | None = None) -> int:
        """To the leader, or to whom the producer takes for it."""
        batch = build_batch(
            [(None, b"x")],
            timestamp=1,
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = ProduceRequest.TopicProduceData.PartitionProduceData(index=partition, records=memoryview(batch))
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=9_000,
            topic_data=[ProduceRequest.TopicProduceData(name=self.topic, partition_data=[data])],
        )
        leader = self.cluster.leader_of(self.topic, partition) if at is None else at
        return int(ask(self.cluster, leader, request, version).responses[0].partition_responses[0].error_code)


def test_leaders_ask_the_coordinator_wherever_it_is(cluster: OttlaCluster) -> None:
    """KIP-890: what is not part of a transaction is not written; newer clients' produce makes it part of it."""
    create(cluster, "asked", *around(1, 2, 3))
    writer = Writer(cluster, "asking", "asked")
    assert [writer.write(index, 0, 11) for index in range(3)] == [ErrorCode.TRANSACTION_ABORTABLE] * 3
    assert [writer.write(index, 0, 10) for index in range(3)] == [ErrorCode.INVALID_TXN_STATE] * 3
    astray = [writer.write(0, 0, version, at=2) for version in (10, 11, 12)]
    assert astray == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 3, "nothing that would end the transaction"
    assert [writer.add(index) for index in range(3)] == [0, 0, 0]
    assert [writer.write(index, 0, 10) for index in range(3)] == [0, 0, 0]
    assert writer.end(committed=True) == 0
    assert stable(cluster, "asked") == [(2, 2)] * 3
    assert [writer.write(index, 1, 12) for index in range(3)] == [0, 0, 0]
    assert writer.end(committed=False) == 0
    assert stable(cluster, "asked") == [(4, 4)] * 3


def stable(cluster: OttlaCluster, topic: str) -> list[tuple[int, int]]:
    """(last stable offset, high watermark), once no transaction is open."""

    def both() -> list[tuple[int, int]]:
        found = []
        for index in range(3):
            partition = FetchRequest.Topic.Partition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
            request = FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                isolation_level=1,
                topics=[FetchRequest.Topic(topic=topic, partitions=[partition])],
            )
            data = ask(cluster, cluster.leader_of(topic, index), request, 12).responses[0].partitions[0]
            assert data.error_code == 0
            found.append((data.last_stable_offset, data.high_watermark))
        return found

    until(lambda: all(stable == end for stable, end in both()))
    return both()


def test_dead_letters_go_to_partitions_that_others_lead(cluster: OttlaCluster) -> None:
    create(cluster, "work", *around(1, 2, 3))
    create(cluster, "work.dead", *around(2, 3, 1))
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for index in range(3):
        producer.produce("work", b"%d" % index, partition=index)
    assert producer.flush(20) == 0

    async def work() -> None:
        async with asyncio.timeout(WAIT_S), Cluster(cluster.bootstrap) as client:
            group = await share_group(client, **{"ottla.share.dlq.topic": "work.dead"})
            async with sharer(client, group, "work", acknowledgement_mode="explicit") as consumer:
                for delivery in await take(consumer, 3):
                    delivery.reject()
                assert await consumer.commit() == {}
            places = await Admin(client).shares.places(group)
            assert [place.lag for place in places] == [0, 0, 0]

    asyncio.run(work())
    assert sorted(each.value() for each in read(cluster, "work.dead", 3)) == [b"0", b"1", b"2"]


def read(cluster: OttlaCluster, topic: str, count: int) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader", "auto.offset.reset": "earliest"})
    partitions = len(consumer.list_topics(topic, 20).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    found: list[Any] = []

    def enough() -> bool:
        found.extend(each for each in consumer.consume(count, 0.3) if not each.error())
        return len(found) >= count

    until(enough)
    consumer.close()
    return found


def test_contracts_know_schemas_that_another_node_leads(cluster: OttlaCluster) -> None:
    create(cluster, "_schemas", *around(1), **{"cleanup.policy": "compact"})
    rules = {"ottla.schema.validation": "full", "ottla.schema.validation.action": "dlq"}
    create(cluster, "orders", *around(2, 3), **rules)
    create(cluster, "orders.dlq", *around(3, 1))
    registry = RegistryMachine()
    producer = Producer({"bootstrap.servers": cluster.bootstrap})

    def register(subject: str) -> int:
        result = registry.decide(Register(subject, SchemaDraft(json.dumps(ORDER), None)), 0)
        for record in result.records:
            registry.apply(record)
            producer.produce("_schemas", record.value, key=record.key)
        assert producer.flush(20) == 0
        return int(result.reply.id)

    def write(schema_id: int) -> None:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, ORDER, {"id": 1})
        failed: list[Any] = []
        for index in range(2):
            value = frame(schema_id, out.getvalue())
            producer.produce(
                "orders", value, partition=index, on_delivery=lambda error, _: error and failed.append(error)
            )
        assert producer.flush(20) == 0
        assert not failed

    known = register("orders-value")
    write(known)  # at once: no node has read of it yet
    assert len(read(cluster, "orders", 2)) == 2
    write(known + 7)
    letters = read(cluster, "orders.dlq", 2)
    assert all(b"no schema" in dict(each.headers())["ottla.dlq.error"] for each in letters)


def test_offsets_of_spark_are_kept_by_the_group_s_coordinator(cluster: OttlaCluster) -> None:
    create(cluster, "sparked", *around(1, 2, 3))
    group = "spark-kafka-source-00000001"
    home = coordinator(cluster, GROUP, group)
    for index in range(3):
        partition = FetchRequest.Topic.Partition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
        topic = FetchRequest.Topic(topic="sparked", partitions=[partition])
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic])
        with RawConnection(cluster.address(cluster.leader_of("sparked", index))) as connection:
            connection.send(request_frame(request, 12, 1, f"consumer-spark-kafka-source-{RUN}-1-executor-1"))
            connection.receive()
    consumer = Consumer({"bootstrap.servers": cluster.address(home), "group.id": group})
    places = [TopicPartition("sparked", index) for index in range(3)]
    until(lambda: [each.offset for each in consumer.committed(places, 20)] == [0, 0, 0])
    consumer.close()
