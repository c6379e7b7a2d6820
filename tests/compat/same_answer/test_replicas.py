"""Leaders and followers of three nodes of ours and three of Kafka's: the same answers to clients, wherever they ask."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from tests.support.processes.clusters import KafkaCluster, OttlaCluster, ProcessCluster
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.records.build import build_batch
from ottla.wire.message import Request
from ottla.wire.messages.records.delete_records import DeleteRecordsRequest
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest
from ottla.wire.messages.records.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

LEADER, FOLLOWER, OTHER = 1, 2, 3
TOPIC, STRICT = "replicated", "strict"
SETTINGS = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}

Ask = Callable[[int, Request, int], Any]


class Racks(ProcessCluster):
    def settings_of(self, id: int, directory: Path) -> dict[str, str]:
        return super().settings_of(id, directory) | {"broker.rack": f"rack-{id}"}


class OurRacks(Racks, OttlaCluster): ...


class TheirRacks(Racks, KafkaCluster): ...


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ProcessCluster, ...]]:
    directory = tmp_path_factory.mktemp("racks")
    both = OurRacks(directory / "ottla", properties=SETTINGS), TheirRacks(directory / "kafka", properties=SETTINGS)
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda cluster: cluster.start(), both))
            list(pool.map(_prepare, both))
        yield both
    finally:
        for cluster in both:
            cluster.stop()


def _ask(cluster: ProcessCluster, node: int, request: Request, version: int) -> Any:
    with RawConnection(cluster.address(node)) as connection:
        return connection.call(request, version)


def _prepare(cluster: ProcessCluster) -> None:
    """Two topics on all three, led by the first, and three records that every follower knows to be committed."""
    of_topic = CreateTopicsRequest.CreatableTopic
    replicas = [of_topic.CreatableReplicaAssignment(partition_index=0, broker_ids=[LEADER, FOLLOWER, OTHER])]
    strict = [of_topic.CreatableTopicConfig(name="min.insync.replicas", value="3")]
    topics = [
        of_topic(name=name, num_partitions=-1, replication_factor=-1, assignments=replicas, configs=configs)
        for name, configs in ((TOPIC, []), (STRICT, strict))
    ]
    answer = _ask(cluster, LEADER, CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
    assert [topic.error_code for topic in answer.topics] == [0, 0]
    until(lambda: _produced(cluster, LEADER, acks=-1, count=3)[0][0] == 0)
    for node in (FOLLOWER, OTHER):
        until(lambda at=node: _fetched(cluster, at, version=12)[0][1] == 3)


def _produced(
    cluster: ProcessCluster, node: int, *, acks: int = 1, version: int = 12, topic: str = TOPIC, count: int = 1
) -> Any:
    of_topic = ProduceRequest.TopicProduceData
    batch = memoryview(build_batch([(None, b"value")] * count, timestamp=int(time.time() * 1000)))
    data = of_topic(name=topic, partition_data=[of_topic.PartitionProduceData(index=0, records=batch)])
    answer = _ask(cluster, node, ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[data]), version)
    (part,) = answer.responses[0].partition_responses
    hint = part.current_leader.leader_id, part.current_leader.leader_epoch
    ends = [(end.node_id, end.port == cluster.ports[end.node_id], end.rack) for end in answer.node_endpoints]
    return (part.error_code, part.base_offset, part.log_start_offset, part.error_message), hint, ends


def _fetched(
    cluster: ProcessCluster,
    node: int,
    *,
    version: int = 12,
    offset: int = 0,
    epoch: int = -1,
    rack: str = "",
    replica: tuple[int, int] = (-1, -1),
    topic: str = TOPIC,
) -> Any:
    of_topic = FetchRequest.Topic
    topic_id = bytes(16)
    if version >= 13:
        named = MetadataRequest(topics=[MetadataRequest.Topic(name=topic)], allow_auto_topic_creation=False)
        topic_id = _ask(cluster, node, named, 12).topics[0].topic_id
    ask = of_topic.Partition(
        partition=0, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=1 << 20, log_start_offset=0
    )
    request = FetchRequest(
        replica_id=replica[0],
        replica_state=FetchRequest.ReplicaState(replica_id=replica[0], replica_epoch=replica[1]),
        max_wait_ms=0,
        min_bytes=1,
        topics=[of_topic(topic=topic, topic_id=topic_id, partitions=[ask])],
        rack_id=rack,
    )
    answer = _ask(cluster, node, request, version)
    (part,) = answer.responses[0].partitions
    hint = part.current_leader.leader_id, part.current_leader.leader_epoch
    ends = [(end.node_id, end.port == cluster.ports[end.node_id], end.rack) for end in answer.node_endpoints]
    watermarks = part.error_code, part.high_watermark, part.last_stable_offset, part.log_start_offset
    return watermarks, bool(part.records), part.preferred_read_replica, hint, ends


def _listed(cluster: ProcessCluster, node: int, *, replica: int = -1, epoch: int = -1, timestamp: int = -1) -> Any:
    of_topic = ListOffsetsRequest.Topic
    ask = of_topic.Partition(partition_index=0, current_leader_epoch=epoch, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=replica, topics=[of_topic(name=TOPIC, partitions=[ask])])
    (part,) = _ask(cluster, node, request, 8).topics[0].partitions
    return part.error_code, part.offset, part.leader_epoch


def _epoch_end(cluster: ProcessCluster, node: int, *, replica: int = -2, epoch: int = 0) -> Any:
    of_topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    ask = of_topic.OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(replica_id=replica, topics=[of_topic(topic=TOPIC, partitions=[ask])])
    (part,) = _ask(cluster, node, request, 4).topics[0].partitions
    return part.error_code, part.leader_epoch, part.end_offset


def _deleted(cluster: ProcessCluster, node: int, offset: int) -> Any:
    of_topic = DeleteRecordsRequest.Topic
    topic = of_topic(name=TOPIC, partitions=[of_topic.Partition(partition_index=0, offset=offset)])
    answer = _ask(cluster, node, DeleteRecordsRequest(topics=[topic], timeout_ms=30_000), 2)
    (part,) = answer.topics[0].partitions
    return part.error_code, part.low_watermark


def _everything(cluster: ProcessCluster) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for version in (9, 12):
        found[f"produce to a follower v{version}"] = _produced(cluster, FOLLOWER, version=version)
    for node in (LEADER, FOLLOWER):
        for version in (10, 11, 12, 16):
            found[f"fetch at {node} v{version}"] = _fetched(cluster, node, version=version)
        for epoch in (0, 5):
            found[f"fetch at {node} epoch {epoch}"] = _fetched(cluster, node, version=16, epoch=epoch)
        for offset in (3, 4, -1):
            found[f"fetch at {node} offset {offset}"] = _fetched(cluster, node, offset=offset)
        for rack in (f"rack-{FOLLOWER}", "rack-9"):
            found[f"fetch at {node} for {rack}"] = _fetched(cluster, node, rack=rack)
        for replica in (-2, -1, FOLLOWER):
            found[f"latest at {node} for {replica}"] = _listed(cluster, node, replica=replica)
            found[f"earliest at {node} for {replica}"] = _listed(cluster, node, replica=replica, timestamp=-2)
        found[f"latest at {node} epoch 7"] = _listed(cluster, node, epoch=7)
        for replica in (-2, FOLLOWER):
            found[f"end of epoch 0 at {node} for {replica}"] = _epoch_end(cluster, node, replica=replica)
            found[f"end of epoch 3 at {node} for {replica}"] = _epoch_end(cluster, node, replica=replica, epoch=3)
    for epoch in (-1, 0):
        found[f"fetch as nobody's replica, epoch {epoch}"] = _fetched(cluster, LEADER, replica=(9, -1), epoch=epoch)
    found["fetch of an older life"] = _fetched(cluster, LEADER, version=16, replica=(FOLLOWER, 0), epoch=0)
    found["fetch as a replica at a follower"] = _fetched(cluster, FOLLOWER, replica=(OTHER, -1), epoch=0)
    found["delete at a follower"] = _deleted(cluster, FOLLOWER, 1)
    found["delete at the leader"] = _deleted(cluster, LEADER, 1)
    found["delete too much"] = _deleted(cluster, LEADER, 99)
    return found


def test_the_same_answers(clusters: tuple[ProcessCluster, ...]) -> None:
    ours, theirs = map(_everything, clusters)
    assert ours == theirs


def test_a_consumer_reads_in_its_rack(clusters: tuple[ProcessCluster, ...]) -> None:
    """librdkafka tells which broker it reads a partition from."""
    ours, _ = clusters
    places: list[tuple[int, int]] = []

    def tell(statistics: str) -> None:
        found = json.loads(statistics)["topics"].get(TOPIC, {}).get("partitions", {}).get("0")
        if found is not None:
            places.append((found["leader"], found["broker"]))

    consumer = Consumer(
        {
            "bootstrap.servers": ours.bootstrap,
            "group.id": "near",
            "client.rack": f"rack-{FOLLOWER}",
            "statistics.interval.ms": 100,
            "stats_cb": tell,
            "log_level": 0,
        }
    )
    try:
        consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
        offsets: list[int] = []

        def poll() -> bool:
            found = consumer.poll(0.1)
            if found is not None:
                offsets.append(found.offset())
            return places[-1:] == [(LEADER, FOLLOWER)]

        until(poll)
        latest = _produced(ours, LEADER, acks=-1)[0][1]
        until(lambda: poll() and offsets[-1:] == [latest])
        assert offsets == list(range(offsets[0], latest + 1))
    finally:
        consumer.close()


def test_too_few_in_sync(clusters: tuple[ProcessCluster, ...]) -> None:
    answers = []
    for cluster in clusters:
        assert _produced(cluster, LEADER, acks=-1, topic=STRICT)[0][0] == 0
        cluster.stop_node(OTHER)
        until(lambda at=cluster: _produced(at, LEADER, acks=-1, topic=STRICT)[0][0] != 0)
        answers.append(
            (
                _produced(cluster, LEADER, acks=-1, topic=STRICT),
                _produced(cluster, LEADER, acks=1, topic=STRICT)[0][0],
                _produced(cluster, LEADER, acks=-1)[0][0],
            )
        )
    assert answers[0] == answers[1]
