"""Reading the registry's topic goes on whatever happens."""

import asyncio
import logging

import pytest
from tests.server.talk import produce
from tests.support.requests.raw import RawConnection
from tests.support.requests.unreadable import no_gzip

from ottla.client.cluster import Cluster
from ottla.client.consumer.fetching import ConsumedRecord
from ottla.client.options import ClientOptions, parse_bootstrap
from ottla.client.producer.producer import Producer
from ottla.model.errors import ErrorCode
from ottla.registry.tail import Tail
from ottla.testing.broker import EmbeddedBroker


def test_a_defect_does_not_end_the_reading(ottla_broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[bytes | None] = []

    def apply(state: list[bytes | None], record: ConsumedRecord) -> None:
        seen.append(record.value)
        if len(seen) == 1:
            raise ZeroDivisionError("a defect")
        state.append(record.value)

    async def test() -> None:
        async with Cluster(ClientOptions(parse_bootstrap(ottla_broker.bootstrap))) as cluster:
            async with Producer(cluster) as producer:
                for value in (b"1", b"2"):
                    await producer.send("t", value, partition=0)
            tail: Tail[list[bytes | None]] = Tail(cluster, "t", list, apply)
            tail.start()
            try:
                await tail.read_to_end()
                assert tail.state == [b"1", b"2"] and tail.reading == 2
            finally:
                await tail.stop()

    with caplog.at_level(logging.ERROR):
        asyncio.run(test())
    assert seen == [b"1", b"1", b"2"]
    assert "ZeroDivisionError" in caplog.text  # with its place


def test_a_batch_that_cannot_be_unpacked_is_passed_over(
    ottla_broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker takes a packed batch unread. The registry could write nothing any more."""

    async def test() -> None:
        async with Cluster(ClientOptions(parse_bootstrap(ottla_broker.bootstrap))) as cluster:
            async with Producer(cluster) as producer:
                await producer.send("t", b"1", partition=0)
                with RawConnection(ottla_broker.bootstrap) as connection:
                    assert produce(connection, "t", no_gzip())[0] == ErrorCode.NONE
                await producer.send("t", b"2", partition=0)
            tail: Tail[list[bytes | None]] = Tail(cluster, "t", list, lambda state, record: state.append(record.value))
            tail.start()
            try:
                await asyncio.wait_for(tail.read_to_end(), 60)
                assert tail.state == [b"1", b"2"] and tail.reading == 1 and tail.trouble is None
            finally:
                await tail.stop()

    with caplog.at_level(logging.ERROR):
        asyncio.run(test())
    assert "passed over" in caplog.text
