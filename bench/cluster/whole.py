"""Check that a cluster is complete: every replica of its topics is in sync and, if wanted, the preferred one leads."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.support.processes.clusters import METADATA_VERSION, ProcessCluster

from ottla.model.errors import ErrorCode
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

WAIT_S = 300.0
CREATE_VERSION, ELECT_VERSION = 7, 2
RECORDS_PER_REQUEST = 9_000  # Kafka refuses batches of more than 10,000 metadata records


def create(cluster: ProcessCluster, names: Sequence[str], partitions: int, replicas: int) -> None:
    at_once = max(1, RECORDS_PER_REQUEST // (partitions + 1))
    for start in range(0, len(names), at_once):
        topics = [
            CreateTopicsRequest.CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=replicas, assignments=[], configs=[]
            )
            for name in names[start : start + at_once]
        ]
        answer = cluster.ask(CreateTopicsRequest(topics=topics, timeout_ms=240_000), CREATE_VERSION, timeout_s=300)
        for topic in answer.topics:
            assert topic.error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS), (topic.name, topic.error_message)


def in_sync(cluster: ProcessCluster, names: Sequence[str], partitions: int, *, preferred: bool = False) -> bool:
    """Whether all replicas are in sync, according to the first broker that answers."""
    wanted = [MetadataRequest.Topic(name=name) for name in names]
    answer = cluster.ask(MetadataRequest(topics=wanted, allow_auto_topic_creation=False), METADATA_VERSION)
    return len(answer.topics) == len(names) and all(
        topic.error_code == 0
        and len(topic.partitions) == partitions
        and all(
            len(each.isr_nodes) == len(each.replica_nodes)
            and each.leader_id >= 0
            and (not preferred or each.leader_id == each.replica_nodes[0])
            for each in topic.partitions
        )
        for topic in answer.topics
    )


def until_in_sync(cluster: ProcessCluster, names: Sequence[str], partitions: int, *, preferred: bool = False) -> None:
    deadline = time.monotonic() + WAIT_S
    while not in_sync(cluster, names, partitions, preferred=preferred):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{cluster.kind} did not become whole")
        if preferred and in_sync(cluster, names, partitions):
            cluster.ask(ElectLeadersRequest(topic_partitions=None), ELECT_VERSION, timeout_s=60)
        time.sleep(0.05)
