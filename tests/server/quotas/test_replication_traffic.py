"""Followers keep up however small the quotas are: those of clients hold for clients alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.server.talk import FETCH_VERSION, PRODUCE_VERSION, fetch_request, produce_request
from tests.support.processes.clusters import OttlaCluster, running
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.client.admin.quotas import DEFAULT, QuotaEntity
from ottla.client.admin.topics import NewTopic
from ottla.client.blocking.blocking import Blocking

A_BYTE_A_SECOND = {"producer_byte_rate": 1.0, "consumer_byte_rate": 1.0}
RECORD = bytes(100_000)


def test_replication_is_not_throttled(tmp_path: Path) -> None:
    """Brokers are the same user as clients here, ANONYMOUS. At a byte per second nothing here would be acknowledged by
    a follower within an hour.
    """
    with running(OttlaCluster(tmp_path, size=2)) as cluster, Blocking(cluster.bootstrap) as client:
        client.admin.topics.create_each([NewTopic("t", assignments={0: [1, 2]})]).all()
        client.admin.quotas.alter(QuotaEntity(user=DEFAULT), A_BYTE_A_SECOND)
        request = produce_request({("t", 0): [RECORD]}, timeout_ms=60_000)
        for offset in range(5):
            with RawConnection(cluster.address(1), timeout_s=60) as connection:
                written: Any = connection.call(request, PRODUCE_VERSION)
            (told,) = written.responses[0].partition_responses
            assert (told.error_code, told.base_offset) == (0, offset), "every replica has it"
        assert written.throttle_time_ms > 0, "the client is throttled"
        read = fetch_request({("t", 0): 0}, max_wait_ms=0)

        def throttle_ms() -> int:
            """On a connection of its own, because one that is throttled is not read."""
            with RawConnection(cluster.address(1)) as connection:
                answer: Any = connection.call(read, FETCH_VERSION)
            return int(answer.throttle_time_ms)

        until(lambda: throttle_ms() > 0)  # consumers are, too
        isr = client.admin.topics.describe("t").partitions[0].isr
        assert sorted(isr) == [1, 2]
