"""Transactions that one producer opens and somebody else ends, against Ottla and a real Kafka."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest
from tests.support.waiting import WAIT_S

from ottla import Admin, Cluster, Producer, ProducerFenced, ProducerOptions, RangeReader, ReadOptions, Span
from ottla.client.producer import handover
from ottla.client.producer import transaction as transaction_module
from ottla.client.producer.transaction import OpenTransaction
from ottla.model.ids import TopicPartition

_names = (f"handover-{n}" for n in itertools.count())


@pytest.fixture(params=["ottla", pytest.param("kafka", marks=pytest.mark.compat)])
def bootstrap(request: pytest.FixtureRequest) -> str:
    fixture = "ottla_broker" if request.param == "ottla" else "real_kafka"
    return str(request.getfixturevalue(fixture).bootstrap)


@pytest.fixture(params=["joins by writing", "joins explicitly"], autouse=True)
def protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of KIP-890."""
    if request.param == "joins explicitly":
        monkeypatch.setattr(transaction_module, "joins_by_writing", lambda connection: False)


def run(bootstrap: str, test: Callable[[Cluster, str], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(WAIT_S), Cluster(bootstrap) as cluster:
            name = next(_names)
            await Admin(cluster).topics.create(name, 1)
            await test(cluster, name)

    asyncio.run(main())


def options(name: str) -> ProducerOptions:
    return ProducerOptions(transactional_id=f"txn-{name}")


async def open_one(cluster: Cluster, name: str) -> OpenTransaction:
    async with Producer(cluster, options(name)) as producer:
        await producer.begin()
        await producer.post(name, b"1")
        return await producer.hand_over()


async def visible(cluster: Cluster, name: str) -> list[bytes | None]:
    async with RangeReader(cluster, [Span(name, 0)], ReadOptions(read_committed=True)) as reader:
        return [record.value async for record in reader]


def test_somebody_else_commits(bootstrap: str) -> None:
    async def test(cluster: Cluster, name: str) -> None:
        opened = await open_one(cluster, name)
        assert await visible(cluster, name) == []
        assert await handover.find_open(cluster, opened.transactional_id) is not None
        async with Cluster(bootstrap) as other:
            assert await handover.end(other, opened, committed=True)
        assert await handover.end(cluster, opened, committed=True), "asked again it is answered again"
        assert not await handover.end(cluster, opened, committed=False)
        assert await handover.find_open(cluster, opened.transactional_id) is None
        assert await handover.is_committed(cluster, TopicPartition(name, 0), 0)
        assert await visible(cluster, name) == [b"1"]

    run(bootstrap, test)


def test_somebody_else_aborts(bootstrap: str) -> None:
    async def test(cluster: Cluster, name: str) -> None:
        opened = await open_one(cluster, name)
        found = await handover.find_open(cluster, opened.transactional_id)
        assert found is not None
        assert found[:3] == opened[:3]
        assert await handover.end(cluster, found, committed=False)
        assert not await handover.end(cluster, opened, committed=True), "what was aborted cannot be committed"
        assert not await handover.is_committed(cluster, TopicPartition(name, 0), 0)
        assert await visible(cluster, name) == []

    run(bootstrap, test)


@pytest.mark.parametrize("committed", [True, False])
def test_the_records_tell_when_the_coordinator_does_not(bootstrap: str, committed: bool) -> None:
    async def test(cluster: Cluster, name: str) -> None:
        opened = await open_one(cluster, name)
        if committed:
            assert await handover.end(cluster, opened, committed=True)
        await open_one(cluster, name)  # takes the id, and leaves another transaction open
        assert not await handover.end(cluster, opened, committed=True)
        assert await handover.is_committed(cluster, TopicPartition(name, 0), 0) is committed

    run(bootstrap, test)


@pytest.mark.parametrize("offset", [1, -1])
def test_a_record_that_is_gone_tells_nothing(bootstrap: str, offset: int) -> None:
    """At offset 1 is the end of the transaction, no record: as where compaction has been."""

    async def test(cluster: Cluster, name: str) -> None:
        assert await handover.end(cluster, await open_one(cluster, name), committed=True)
        assert await handover.is_committed(cluster, TopicPartition(name, 0), 0)
        with pytest.raises(handover.OutcomeUnknown, match=f"no record at offset {offset}"):
            await handover.is_committed(cluster, TopicPartition(name, 0), offset)

    run(bootstrap, test)


def test_an_id_is_adopted_until_somebody_takes_it(bootstrap: str) -> None:
    async def test(cluster: Cluster, name: str) -> None:
        async with Producer(cluster, options(name)) as first:
            taken = await first.take()
        async with Producer(cluster, options(name)) as second:
            second.adopt(taken)
            for value in (b"1", b"2"):
                async with second.transaction():
                    await second.send(name, value)
            async with Producer(cluster, options(name)) as third:
                await third.take()
            with pytest.raises(ProducerFenced):
                async with second.transaction():
                    await second.send(name, b"3")
        assert await visible(cluster, name) == [b"1", b"2"]

    run(bootstrap, test)


def test_a_transaction_that_failed_is_not_handed_over(bootstrap: str) -> None:
    async def test(cluster: Cluster, name: str) -> None:
        async with Producer(cluster, options(name)) as producer:
            await producer.begin()
            await producer.post(name, b"1")
            await producer.flush()
            async with Producer(cluster, options(name)) as other:
                await other.take()
            await producer.post(name, b"2")
            with pytest.raises(Exception, match=r".") as failure:
                await producer.hand_over()
            assert getattr(failure.value, "code", None) is not None
        assert await visible(cluster, name) == []

    run(bootstrap, test)
