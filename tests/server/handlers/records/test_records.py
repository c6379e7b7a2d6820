"""DeleteRecords, DescribeProducers and OttlaDescribeSegments, in every version."""

from __future__ import annotations

import pytest
from tests.server.admin import Admin

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.wire.messages.records.delete_records import DeleteRecordsRequest
from ottla.wire.messages.records.describe_producers import DescribeProducersRequest
from ottla.wire.messages.records.ottla_describe_segments import OttlaDescribeSegmentsRequest


@pytest.fixture
def admin() -> Admin:
    admin = Admin()
    admin.create("t", 3)
    return admin


@pytest.mark.parametrize("version", range(3))
def test_delete_records(admin: Admin, version: int) -> None:
    admin.write(10)
    partition = DeleteRecordsRequest.Topic.Partition

    def ask(name: str, index: int, offset: int) -> tuple[int, int]:
        topic = DeleteRecordsRequest.Topic(name=name, partitions=[partition(partition_index=index, offset=offset)])
        answer = admin.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=1000), version)
        (found,) = answer.topics[0].partitions
        return found.low_watermark, found.error_code

    assert ask("t", 0, 4) == (4, 0)
    assert ask("t", 0, 2) == (4, 0)
    assert ask("t", 0, 11) == (-1, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert ask("t", 0, -5) == (-1, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert ask("t", 0, -1) == (10, 0)
    assert ask("t", 9, 0) == (-1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert ask("__consumer_offsets", 0, 0) == (-1, ErrorCode.INVALID_TOPIC_EXCEPTION)


def test_describe_producers(admin: Admin) -> None:
    admin.write(3, producer_id=77)
    topic = DescribeProducersRequest.TopicRequest
    topics = [topic(name="t", partition_indexes=[0, 9]), topic(name="a b", partition_indexes=[0])]
    first, second = admin.ask(DescribeProducersRequest(topics=topics)).topics
    found, missing = first.partitions
    (producer,) = found.active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (77, 0, 2)
    assert (producer.last_timestamp, producer.current_txn_start_offset) == (admin.now_ms, -1)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert second.partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_describe_segments(admin: Admin) -> None:
    admin.write(3)
    partition = admin.partitions.find("t", 0)
    partition.log.roll(admin.now_ms)
    admin.write(4)
    answer = admin.ask(OttlaDescribeSegmentsRequest(topic="t", partition_indexes=[0, 1, 9]))
    found, empty, missing = answer.partitions
    assert (found.is_leader, found.log_start_offset, found.end_offset, found.segment_count) == (True, 0, 7, 2)
    first, second = found.segments
    assert (first.base_offset, first.is_active, first.largest_timestamp) == (0, False, admin.now_ms)
    assert (second.base_offset, second.is_active) == (3, True)
    assert first.size_bytes + second.size_bytes == partition.log.size_bytes
    assert (empty.end_offset, empty.segment_count, empty.segments[0].largest_timestamp) == (0, 1, -1)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    wrong = admin.ask(OttlaDescribeSegmentsRequest(topic="a b", partition_indexes=[0]))
    assert wrong.partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_few_segments_are_described_at_once(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [0] * (limits.SEGMENTS_PARTITIONS_MAX + 1)
    answer = admin.ask(OttlaDescribeSegmentsRequest(topic="t", partition_indexes=many))
    assert (answer.error_code, answer.partitions) == (ErrorCode.INVALID_REQUEST, [])
    monkeypatch.setattr(limits, "SEGMENTS_DESCRIBED_MAX", 2)
    for _ in range(4):
        admin.write(1)
        admin.partitions.find("t", 0).log.roll(admin.now_ms)
    (found,) = admin.ask(OttlaDescribeSegmentsRequest(topic="t", partition_indexes=[0])).partitions
    assert (found.segment_count, [each.base_offset for each in found.segments]) == (5, [3, 4])
