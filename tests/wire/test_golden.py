"""Bytes that Kafka 4.3.1's own serializers wrote for the same messages."""

import pytest

from ottla.wire.compile import decode, encode
from ottla.wire.header import RequestHeader
from ottla.wire.journal.cluster_metadata import PartitionRecord
from ottla.wire.journal.consumer_offsets import OffsetCommitValue
from ottla.wire.message import Struct
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse, TopicPartitions
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.security.describe_client_quotas import DescribeClientQuotasResponse
from ottla.wire.messages.topics.metadata import MetadataRequest


def uuid(high: int, low: int) -> bytes:
    return high.to_bytes(8, "big") + low.to_bytes(8, "big")


PARTITION = FetchRequest.Topic.Partition(
    partition=3, fetch_offset=9, partition_max_bytes=100, high_watermark=5, replica_directory_id=uuid(3, 4)
)
ANSWERED = FetchResponse.FetchableTopicResponse.PartitionData
ENTRY = DescribeClientQuotasResponse.EntryData

GOLDEN: list[tuple[Struct, int, str]] = [
    (
        RequestHeader(request_api_key=1, request_api_version=12, correlation_id=7, client_id="c"),
        2,
        "0001000c0000000700016300",
    ),
    (
        RequestHeader(request_api_key=1, request_api_version=4, correlation_id=7, client_id=None),
        1,
        "0001000400000007ffff",
    ),
    (ApiVersionsRequest(client_software_name="ottla", client_software_version="1"), 3, "066f74746c61023100"),
    (
        MetadataRequest(
            topics=[MetadataRequest.Topic(topic_id=uuid(1, 2), name=None)], include_topic_authorized_operations=True
        ),
        12,
        "02000000000000000100000000000000020000010100",
    ),
    (MetadataRequest(topics=None), 1, "ffffffff"),
    (
        FetchRequest(
            cluster_id="x",
            max_wait_ms=1,
            min_bytes=2,
            topics=[FetchRequest.Topic(topic_id=uuid(1, 2), partitions=[PARTITION])],
            replica_state=FetchRequest.ReplicaState(replica_id=2, replica_epoch=8),
        ),
        18,
        "00000001000000027fffffff0000000000ffffffff02000000000000000100000000000000020200000003ffffffff0000000000000009"
        "ffffffffffffffffffffffff0000006402001000000000000000030000000000000004010800000000000000050001010200020278010d"
        "00000002000000000000000800",
    ),
    (
        FetchResponse(
            responses=[
                FetchResponse.FetchableTopicResponse(
                    topic="t",
                    partitions=[
                        ANSWERED(
                            partition_index=1,
                            error_code=0,
                            high_watermark=4,
                            diverging_epoch=ANSWERED.EpochEndOffset(epoch=2, end_offset=3),
                            snapshot_id=ANSWERED.SnapshotId(end_offset=1, epoch=0),
                            aborted_transactions=None,
                            records=None,
                        )
                    ],
                )
            ]
        ),
        12,
        "00000000000000000000020274020000000100000000000000000004ffffffffffffffffffffffffffffffff00ffffffff0002000d0000"
        "0002000000000000000300020d000000000000000100000000000000",
    ),
    (
        ConsumerGroupHeartbeatResponse(error_code=0, member_id="m", member_epoch=1, heartbeat_interval_ms=5),
        1,
        "00000000000000026d0000000100000005ff00",
    ),
    (
        ConsumerGroupHeartbeatResponse(
            error_code=0,
            member_id="m",
            member_epoch=1,
            heartbeat_interval_ms=5,
            assignment=ConsumerGroupHeartbeatResponse.Assignment(
                topic_partitions=[TopicPartitions(topic_id=uuid(1, 2), partitions=[0, 1])]
            ),
        ),
        1,
        "00000000000000026d0000000100000005010200000000000000010000000000000002030000000000000001000000",
    ),
    (
        PartitionRecord(
            partition_id=0,
            topic_id=uuid(1, 2),
            replicas=[1],
            isr=[1],
            removing_replicas=[],
            adding_replicas=[],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[uuid(5, 6)],
            eligible_leader_replicas=[2],
        ),
        2,
        "000000000000000000000001000000000000000202000000010200000001010100000001000000000000000002000000000000000500000"
        "000000000060101050200000002",
    ),
    (
        OffsetCommitValue(offset=12, leader_epoch=3, metadata="x", commit_timestamp=99),
        3,
        "000000000000000c000000030001780000000000000063",
    ),
    (
        DescribeClientQuotasResponse(
            error_code=0,
            error_message=None,
            entries=[
                ENTRY(
                    entity=[ENTRY.EntityData(entity_type="user", entity_name=None)],
                    values=[ENTRY.ValueData(key="k", value=1.5)],
                )
            ],
        ),
        1,
        "0000000000000002020575736572000002026b3ff8000000000000000000",
    ),
]


@pytest.mark.parametrize(
    ("message", "version", "golden"), GOLDEN, ids=[f"{type(message).__name__}-{v}" for message, v, _ in GOLDEN]
)
def test_the_same_bytes(message: Struct, version: int, golden: str) -> None:
    assert encode(message, version).hex() == golden
    assert decode(type(message), version, bytes.fromhex(golden)) == message
