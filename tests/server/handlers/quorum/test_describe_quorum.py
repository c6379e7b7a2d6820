"""DescribeQuorum, in every version."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.admin import Admin

from ottla.model.errors import ErrorCode
from ottla.wire.messages.quorum.describe_quorum import DescribeQuorumRequest


@pytest.fixture
def admin() -> Admin:
    admin = Admin()
    admin.create("t")
    return admin


@pytest.mark.parametrize("version", range(3))
def test_describe_quorum(admin: Admin, version: int) -> None:
    topic = DescribeQuorumRequest.TopicData

    def ask(name: str, index: int) -> Any:
        asked = topic(topic_name=name, partitions=[topic.PartitionData(partition_index=index)])
        return admin.ask(DescribeQuorumRequest(topics=[asked]), version)

    (found,) = ask("__cluster_metadata", 0).topics[0].partitions
    assert (found.error_code, found.leader_id, found.leader_epoch) == (0, 1, admin.member.quorum.epoch)
    assert found.high_watermark == admin.host.end_offset
    assert [voter.replica_id for voter in found.current_voters] == [1]
    (found,) = ask("t", 0).topics[0].partitions
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
