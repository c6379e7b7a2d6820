"""Transactions of our producer against real brokers: what is committed is visible as a whole, the rest not at all."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.waiting import WAIT_S

from ottla import (
    Admin,
    ApiError,
    Cluster,
    Producer,
    ProducerFenced,
    ProducerOptions,
    RangeReader,
    ReadOptions,
    Span,
    TransactionAborted,
)
from ottla.client.connection import Connection
from ottla.client.consumer.group_metadata import GroupMetadata
from ottla.client.coordinator import Coordinator, CoordinatorKind
from ottla.client.producer import transaction as transaction_module
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.message import Request, Response
from ottla.wire.messages.groups.offset_fetch import OffsetFetchRequest

_names = (f"txn-{n}" for n in itertools.count())


@pytest.fixture(params=["ottla", pytest.param("kafka", marks=pytest.mark.compat)])
def bootstrap(request: pytest.FixtureRequest) -> str:
    fixture = "ottla_broker" if request.param == "ottla" else "real_kafka"
    return str(request.getfixturevalue(fixture).bootstrap)


@pytest.fixture
def name() -> str:
    return next(_names)


@pytest.fixture(params=["joins by writing", "joins explicitly"])
def protocol(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of KIP-890: a broker with transaction.version 2 serves clients of the older kind all the same."""
    if request.param == "joins explicitly":
        monkeypatch.setattr(transaction_module, "joins_by_writing", lambda connection: False)
    return str(request.param)


def run(bootstrap: str, name: str, test: Callable[[Cluster], Awaitable[None]], partitions: int = 2) -> None:
    async def main() -> None:
        async with asyncio.timeout(WAIT_S), Cluster(bootstrap) as cluster:
            await Admin(cluster).topics.create(name, partitions)
            await test(cluster)

    asyncio.run(main())


def producer_of(cluster: Cluster, name: str, **more: object) -> Producer:
    return Producer(cluster, ProducerOptions(transactional_id=name, linger_ms=1, **more))  # type: ignore[arg-type]


async def values(cluster: Cluster, topic: str, partitions: int = 2, *, committed: bool = True) -> list[bytes | None]:
    spans = [Span(topic, index) for index in range(partitions)]
    async with RangeReader(cluster, spans, ReadOptions(read_committed=committed)) as reader:
        return sorted([record.value async for record in reader], key=lambda each: each or b"")


async def becomes(cluster: Cluster, topic: str, wanted: list[bytes]) -> None:
    """The coordinator answers as soon as the outcome is certain; the markers are in the logs a moment later."""
    async with asyncio.timeout(WAIT_S):
        while (found := await values(cluster, topic)) != wanted:
            assert set(found) <= set(wanted)
            await asyncio.sleep(0.02)


async def offset_of(cluster: Cluster, group: str, partition: TopicPartition) -> int:
    coordinator = Coordinator(cluster, group, CoordinatorKind.GROUP)
    topic = OffsetFetchRequest.Group.Topics(name=partition.topic, partition_indexes=[partition.partition])
    request = OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id=group, topics=[topic])], require_stable=True)
    answer = await coordinator.call(
        request,
        at_most=9,
        error_of=lambda each: each.groups[0].topics[0].partitions[0].error_code,
    )
    coordinator.close()
    return answer.groups[0].topics[0].partitions[0].committed_offset


def test_commit_and_abort(bootstrap: str, name: str, protocol: str) -> None:
    async def test(cluster: Cluster) -> None:
        async with producer_of(cluster, name) as producer:
            for number in range(3):
                async with producer.transaction():
                    for partition in range(2):
                        await producer.post(name, b"committed %d %d" % (number, partition), partition=partition)

                async def failing() -> None:
                    async with producer.transaction():
                        await producer.send(name, b"aborted", partition=0)
                        await producer.post(name, b"not even sent", partition=1)
                        raise RuntimeError("mine")

                with pytest.raises(RuntimeError, match="mine"):
                    await failing()
        wanted = [b"committed %d %d" % (number, partition) for number in range(3) for partition in range(2)]
        await becomes(cluster, name, wanted)
        assert (await values(cluster, name, committed=False)).count(b"aborted") == 3

    run(bootstrap, name, test)


def test_nothing_is_visible_before_the_commit(bootstrap: str, name: str, protocol: str) -> None:
    async def test(cluster: Cluster) -> None:
        async with producer_of(cluster, name) as producer:
            async with producer.transaction() as txn:
                await producer.send(name, b"first", partition=0)
                assert await values(cluster, name) == []
                await txn.commit()
                await becomes(cluster, name, [b"first"])
            async with producer.transaction() as txn:
                future = await producer.enqueue(name, b"second", partition=0)
                await txn.abort()
                assert future.done()
            await becomes(cluster, name, [b"first"])

    run(bootstrap, name, test)


def test_offsets_are_committed_with_the_transaction(bootstrap: str, name: str, protocol: str) -> None:
    async def test(cluster: Cluster) -> None:
        place = TopicPartition(name, 1)
        async with producer_of(cluster, name) as producer:
            async with producer.transaction() as txn:
                await producer.post(name, b"v")
                await txn.send_offsets({place: 7}, name)
            assert await offset_of(cluster, name, place) == 7
            async with producer.transaction() as txn:
                await txn.send_offsets({place: (9, -1, "note")}, name)
                await txn.abort()
            assert await offset_of(cluster, name, place) == 7

            async def as_a_stranger() -> None:
                async with producer.transaction() as txn:
                    await producer.post(name, b"zombie")
                    await txn.send_offsets({place: 11}, GroupMetadata(name, 3, "nobody"))

            with pytest.raises(ApiError) as caught:
                await as_a_stranger()
            assert caught.value.code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
            assert await offset_of(cluster, name, place) == 7
            async with producer.transaction() as txn:  # the producer goes on
                await txn.send_offsets({place: 12}, GroupMetadata(name))
            assert await offset_of(cluster, name, place) == 12
        await becomes(cluster, name, [b"v"])

    run(bootstrap, name, test)


def test_the_older_producer_is_fenced(bootstrap: str, name: str, protocol: str) -> None:
    async def test(cluster: Cluster) -> None:
        async with producer_of(cluster, name) as old, producer_of(cluster, name) as new:

            async def overtaken() -> None:
                async with old.transaction():
                    await old.send(name, b"zombie", partition=0)
                    await new.init_transactions()
                    await old.send(name, b"zombie", partition=0)

            with pytest.raises(ProducerFenced, match="another producer uses the transactional id"):
                await overtaken()
            with pytest.raises(ProducerFenced):
                async with old.transaction():
                    pass
            async with new.transaction():
                await new.send(name, b"alive", partition=0)
        await becomes(cluster, name, [b"alive"])

    run(bootstrap, name, test)


def test_the_versions_of_requests_tell_the_rules(
    bootstrap: str, name: str, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: dict[str, int] = {}
    whole = Connection.submit_now

    def submit_now(self: Connection, message: Request[Response], *, version: int, **more: Any) -> Any:
        sent[type(message).name] = version
        return whole(self, message, version=version, **more)

    monkeypatch.setattr(Connection, "submit_now", submit_now)

    async def test(cluster: Cluster) -> None:
        async with producer_of(cluster, name) as producer, producer.transaction() as txn:
            await producer.send(name, b"v")
            await txn.send_offsets({TopicPartition(name, 0): 1}, name)
        if protocol == "joins by writing":
            assert sent["Produce"] >= 12 and sent["TxnOffsetCommit"] >= 5 and sent["EndTxn"] >= 5
            assert not {"AddPartitionsToTxn", "AddOffsetsToTxn"} & set(sent)
        else:
            assert sent["Produce"] == 11 and sent["TxnOffsetCommit"] == 4 and sent["EndTxn"] == 4
            assert sent["AddPartitionsToTxn"] == 3 and "AddOffsetsToTxn" in sent

    run(bootstrap, name, test)


def test_an_empty_transaction_costs_nothing(bootstrap: str, name: str, protocol: str) -> None:
    async def test(cluster: Cluster) -> None:
        async with producer_of(cluster, name) as producer:
            for _ in range(3):
                async with producer.transaction():
                    pass
            async with producer.transaction():
                await producer.send(name, b"v")
        await becomes(cluster, name, [b"v"])

    run(bootstrap, name, test)


def test_a_failed_record_fails_the_commit(bootstrap: str, name: str, protocol: str) -> None:
    async def test(cluster: Cluster) -> None:
        async with producer_of(cluster, name, max_request_bytes=4 << 20, buffer_bytes=8 << 20) as producer:

            async def too_large() -> None:
                async with producer.transaction():
                    await producer.send(name, b"small", partition=0)
                    await producer.post(name, bytes(2 << 20), partition=1)

            with pytest.raises(ApiError, match="MESSAGE_TOO_LARGE"):
                await too_large()
            async with producer.transaction():
                await producer.send(name, b"next", partition=0)
        await becomes(cluster, name, [b"next"])

    run(bootstrap, name, test)


def test_large_transactions_are_pipelined(bootstrap: str, name: str, protocol: str) -> None:
    async def test(cluster: Cluster) -> None:
        wanted = [b"%05d" % n for n in range(3_000)]
        async with producer_of(cluster, name, batch_size_bytes=500) as producer:
            async with producer.transaction():
                for value in wanted:
                    await producer.post(name, value, partition=0)
            async with producer.transaction() as txn:
                waiting = [await producer.enqueue(name, value, partition=0) for value in wanted]
                await txn.abort()
            assert isinstance(waiting[-1].exception(), TransactionAborted)
        await becomes(cluster, name, wanted)
        async with RangeReader(cluster, [Span(name, 0)], ReadOptions(read_committed=True)) as reader:
            assert [record.value async for record in reader] == wanted, "in order"

    run(bootstrap, name, test)


def test_an_interrupted_end_does_not_spoil_the_next_transaction(bootstrap: str, name: str, protocol: str) -> None:
    """The commit is cut at one moment after the other: each transaction is there as a whole or not at all."""

    async def test(cluster: Cluster) -> None:
        async with producer_of(cluster, name) as producer:
            for turns in range(12):

                async def interrupted(turns: int = turns) -> None:
                    async with producer.transaction() as txn:
                        for partition in range(2):
                            await producer.post(name, b"cut %02d" % turns, partition=partition)
                        ending = asyncio.create_task(txn.commit() if turns % 3 else txn.abort())
                        for _ in range(turns):
                            await asyncio.sleep(0)
                        ending.cancel()
                        await asyncio.wait([ending])

                await interrupted()
                async with producer.transaction():
                    await producer.post(name, b"whole %02d" % turns, partition=0)
        whole = [b"whole %02d" % turns for turns in range(12)]
        async with asyncio.timeout(WAIT_S):
            while True:
                found = await values(cluster, name)
                cut = [value for value in found if value not in whole]
                # Markers come later, and not to both partitions at once.
                if set(whole) <= set(found) and all(cut.count(value) == 2 for value in cut):
                    break
                await asyncio.sleep(0.02)
        assert [value for value in found if value in whole] == whole

    run(bootstrap, name, test)


def test_without_a_transactional_id_there_are_no_transactions() -> None:
    async def main() -> None:
        async with Producer("127.0.0.1:1") as producer:
            with pytest.raises(ValueError, match="transactional_id"):
                producer.transaction()
        async with Producer("127.0.0.1:1", ProducerOptions(transactional_id="t")) as producer:
            with pytest.raises(RuntimeError, match="no transaction is open"):
                await producer.send("t", b"v")
        with pytest.raises(ValueError, match="acks=-1"):
            ProducerOptions(transactional_id="t", acks=1)

    asyncio.run(main())
