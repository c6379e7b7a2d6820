"""Quotas on changes of topics in a cluster: the active controller counts, the broker that was asked mutes."""

from __future__ import annotations

from pathlib import Path

from tests.server.nodes import active, create, listener_of, run, running, settings, until
from tests.server.quotas.quota_records import write_quota

from ottla.client.connection import Address, Connection
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

THROTTLING_QUOTA_EXCEEDED = 89


def test_a_forwarded_request_is_throttled_by_the_controller_and_muted_by_its_broker(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(tmp_path, 3)) as nodes:
            controller = active(nodes)
            other = next(node for node in nodes.values() if node is not controller)
            await write_quota(controller, {"user": "ANONYMOUS"}, "controller_mutation_rate", 1.0)
            assert other.composed is not None
            rooms = other.composed.rooms
            await until(lambda: rooms.quotas.active)
            assert (await create(other, "large", partitions=60)).error_code == 0  # the bucket has 11
            endpoint = listener_of(other, "PLAINTEXT")
            connection = await Connection.open(Address(endpoint.host, endpoint.port))
            topic = CreateTopicsRequest.CreatableTopic(
                name="more", num_partitions=1, replication_factor=3, assignments=[], configs=[]
            )
            answer = await connection.request(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
            assert [each.error_code for each in answer.topics] == [THROTTLING_QUOTA_EXCEEDED]
            assert 20_000 < answer.throttle_time_ms <= 49_000
            await until(lambda: any(each.context.holds for each in rooms.connections.connections))
            connection.close()
            again = await Connection.open(Address(endpoint.host, endpoint.port))
            assert (await again.request(MetadataRequest(topics=None))).throttle_time_ms == 0
            again.close()

    run(test)
