"""Consumers that share topics, against both brokers and with every protocol: nothing twice, nothing left out."""

import asyncio
import contextlib
import re

import pytest
from tests.client.consuming import (
    LIVELY,
    PROTOCOLS,
    Reader,
    fill,
    fresh_name,
    options_of,
    partitions_of,
    run,
    shared,
    topic_with,
    until,
)

from ottla import (
    ClientError,
    ClientOptions,
    Cluster,
    CommitFailed,
    Consumer,
    Producer,
    ProducerOptions,
    parse_bootstrap,
)
from ottla.client.admin import Admin

# In one worker, which starts that Kafka once.
KAFKA = pytest.mark.compat
_BOTH = [
    pytest.param((broker, protocol), marks=KAFKA if broker == "kafka" else [], id=f"{broker}-{protocol}")
    for broker, protocols in PROTOCOLS.items()
    for protocol in protocols
]


def _place(request: pytest.FixtureRequest) -> tuple[str, str]:
    broker, protocol = request.param
    if broker == "kafka":
        return str(request.getfixturevalue("lively_kafka_bootstrap")), protocol
    return str(request.getfixturevalue("ottla_broker_factory")(**LIVELY).bootstrap), protocol


@pytest.fixture(params=_BOTH)
def place(request: pytest.FixtureRequest) -> tuple[str, str]:
    """(bootstrap, protocol)"""
    return _place(request)


_MAIN = {"ottla": ("range", "cooperative-sticky", "consumer"), "kafka": ("cooperative-sticky", "consumer")}


@pytest.fixture(params=[each for each in _BOTH if each.values[0][1] in _MAIN[each.values[0][0]]])
def main_place(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The same for tests to which the assignor makes no difference."""
    return _place(request)


def everything(partitions: int, records: int) -> list[tuple[int, int]]:
    return [(index, offset) for index in range(partitions) for offset in range(records)]


def test_members_come_and_go(place: tuple[str, str]) -> None:
    bootstrap, protocol = place

    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 4, 25)
        options = options_of(protocol, topic)
        async with Reader(bootstrap, options) as first:
            first.start([topic])
            await until(lambda: len(first.records) == 100, lambda: len(first.records))
            async with Reader(bootstrap, options) as second:
                second.start([topic])
                await until(lambda: shared([first, second], 4), lambda: (first.events, second.events))
                await fill(cluster, topic, 4, range(25, 50))
                await until(lambda: len(first.records) + len(second.records) >= 200)
                assert second.records
                if protocol in ("cooperative-sticky", "consumer"):
                    revoked = [each for kind, each in first.events if kind == "revoked"]
                    assert [len(each) for each in revoked] == [2], "more was taken away than had to move"
                generation = second.consumer.group_metadata()
                assert generation.group_id == topic
                assert generation.member_id
                assert generation.generation_id > 0
            await until(lambda: shared([first], 4))
            await fill(cluster, topic, 4, range(50, 60))
            await until(lambda: len(first.records) + len(second.records) >= 240)
            # All handed out once: every commit before a revocation was exact.
            assert sorted(first.places() + second.places()) == everything(4, 60)
            for reader in (first, second):
                assert sorted(reader.held) == reader.consumer.assignment
        assert first.events[-1][0] == "revoked"
        async with Consumer(cluster, options) as consumer:
            stored = await consumer.committed(partitions_of(topic, 4))
            assert [stored[each].offset for each in partitions_of(topic, 4)] == [60] * 4

    run(bootstrap, test)


def test_a_member_that_does_not_poll_loses_its_place(main_place: tuple[str, str]) -> None:
    bootstrap, protocol = main_place

    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 2, 10)
        options = options_of(protocol, topic, enable_auto_commit=False, max_poll_interval_ms=1_500)
        async with Reader(bootstrap, options) as slow, Reader(bootstrap, options) as quick:
            slow.start([topic])
            await until(lambda: len(slow.records) == 20)
            await slow.stop()
            before = slow.consumer.group_metadata()
            quick.start([topic])
            await until(lambda: len(quick.records) == 20, lambda: (quick.events, quick.records))
            with pytest.raises(CommitFailed):
                await slow.consumer.commit()
            slow.go_on()
            await until(lambda: shared([slow, quick], 2))
            assert ("lost", partitions_of(topic, 2)) in slow.events
            assert slow.consumer.group_metadata() != before

    run(bootstrap, test)


def test_a_static_member_comes_back_to_its_partitions(main_place: tuple[str, str]) -> None:
    bootstrap, protocol = main_place

    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 4, 5)

        def reader(instance: str) -> Reader:
            return Reader(bootstrap, options_of(protocol, topic, group_instance_id=instance))

        async with reader("one") as one:
            one.start([topic])
            async with reader("two") as two:
                two.start([topic])
                await until(lambda: shared([one, two], 4) and len(one.records) + len(two.records) == 20)
                held = two.consumer.assignment
                events = len(one.events)
            async with reader("two") as two_again:
                two_again.start([topic])
                await until(lambda: two_again.consumer.assignment == held, lambda: two_again.events)
                assert len(one.events) == events, "the group rebalanced"
                await fill(cluster, topic, 4, range(5, 10))
                await until(lambda: len(two_again.records) >= 10)
                assert sorted(two_again.places()) == [(each.partition, n) for each in held for n in range(5, 10)]

    run(bootstrap, test)


def test_a_pattern_finds_topics_that_come_later(main_place: tuple[str, str]) -> None:
    bootstrap, protocol = main_place

    async def test(cluster: Cluster) -> None:
        name = fresh_name()
        await topic_with(cluster, 1, 3, f"{name}-b-other")
        await topic_with(cluster, 1, 3, f"{name}-a1")
        client = ClientOptions(parse_bootstrap(bootstrap), metadata_max_age_ms=300)
        async with Reader(client, options_of(protocol, name)) as reader:  # type: ignore[arg-type]
            reader.start(re.compile(f"{name}-a.*"))
            await until(lambda: len(reader.records) == 3, lambda: reader.events)
            await topic_with(cluster, 2, 2, f"{name}-a2")
            await until(lambda: len(reader.records) == 7, lambda: (reader.events, reader.records))
            assert {record.topic for record in reader.records} == {f"{name}-a1", f"{name}-a2"}

    run(bootstrap, test)


def test_another_subscription_and_more_partitions(main_place: tuple[str, str]) -> None:
    bootstrap, protocol = main_place

    async def test(cluster: Cluster) -> None:
        first, second = await topic_with(cluster, 2, 3), await topic_with(cluster, 1, 3)
        client = ClientOptions(parse_bootstrap(bootstrap), metadata_max_age_ms=300)
        async with Reader(client, options_of(protocol, first)) as reader:  # type: ignore[arg-type]
            reader.start([first])
            await until(lambda: len(reader.records) == 6)
            reader.consumer.subscribe([second], reader)
            await until(lambda: len(reader.records) == 9)
            assert reader.consumer.assignment == partitions_of(second, 1)
            await Admin(cluster).topics.add_partitions(second, 3)
            await until(lambda: reader.consumer.assignment == partitions_of(second, 3), lambda: reader.events)

    run(bootstrap, test)


def test_offsets_in_a_transaction(main_place: tuple[str, str]) -> None:
    """Consume, transform, produce: the position moves with the records, and only if they are committed."""
    bootstrap, protocol = main_place

    async def test(cluster: Cluster) -> None:
        source, target = await topic_with(cluster, 1, 10), await topic_with(cluster, 1, 0)
        (partition,) = partitions_of(source, 1)
        options = options_of(protocol, source, enable_auto_commit=False, isolation_level="read_committed")
        async with (
            Producer(cluster, ProducerOptions(transactional_id=source)) as producer,
            Consumer(cluster, options) as consumer,
        ):
            consumer.subscribe([source])
            for stop in (4, 7, 10):
                async with producer.transaction() as transaction:
                    while (consumer.position(partition) if consumer.assignment else None) != stop:
                        for records in (await consumer.poll(1)).values():
                            for record in records:
                                await producer.enqueue(target, record.value, partition=0)
                    await transaction.send_offsets({partition: stop}, consumer.group_metadata())
                    if stop == 7:
                        await transaction.abort()
                stored = (await consumer.committed([partition]))[partition].offset
                assert stored == {4: 4, 7: 4, 10: 10}[stop]
            async with Consumer(cluster, options_of("range", fresh_name(), isolation_level="read_committed")) as reader:
                reader.assign(partitions_of(target, 1))
                values = [(await anext(reader)).value for _ in range(7)]
                assert values == [b"0", b"1", b"2", b"3", b"7", b"8", b"9"]

    run(bootstrap, test)


def test_a_caller_may_give_up_at_any_time(main_place: tuple[str, str]) -> None:
    """`wait_for` around the iteration cuts joins, commits and look-ups short: the next call goes on from there."""
    bootstrap, protocol = main_place

    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 3, 20)
        found = []
        async with Consumer(bootstrap, options_of(protocol, topic)) as consumer:
            consumer.subscribe([topic])
            patience_s = 0.001
            while len(found) < 60:
                try:
                    record = await asyncio.wait_for(anext(consumer), patience_s)
                    found.append((record.partition, record.offset))
                except TimeoutError:
                    patience_s *= 1.1
        assert sorted(found) == everything(3, 20)

    run(bootstrap, test)


def test_leaving_and_closing_while_another_task_reads(main_place: tuple[str, str]) -> None:
    bootstrap, protocol = main_place

    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 2, 5)
        options = options_of(protocol, topic)
        consumer = Consumer(cluster, options)
        consumer.subscribe([topic])
        first = [await anext(consumer) for _ in range(10)]
        await consumer.unsubscribe()
        assert consumer.assignment == []
        with pytest.raises(ValueError, match="not assigned"):
            consumer.position(partitions_of(topic, 1)[0])
        consumer.assign(partitions_of(topic, 1))
        consumer.seek_to_beginning()
        assert [(await anext(consumer)).offset for _ in range(5)] == list(range(5))
        await consumer.unsubscribe()
        consumer.subscribe([topic])

        async def read() -> list[object]:
            return [record async for record in consumer]

        reading = asyncio.create_task(read())
        await until(lambda: len(consumer.assignment) == 2)
        await consumer.close()
        assert await reading == [], "what was committed came again"
        assert len(first) == 10
        with pytest.raises(ClientError, match="closed"):
            await consumer.poll()

    run(bootstrap, test)


def test_a_listener_that_fails(main_place: tuple[str, str]) -> None:
    """Its error goes to the caller; the rebalance is complete all the same."""
    bootstrap, protocol = main_place

    class Failing:
        def __init__(self) -> None:
            self.failures = 0

        def on_assigned(self, partitions: object) -> None:
            self.fail()

        async def on_revoked(self, partitions: object) -> None:
            self.fail()

        def on_lost(self, partitions: object) -> None:
            self.fail()

        def fail(self) -> None:
            self.failures += 1
            raise RuntimeError("the listener failed")

    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 4, 5)
        options = options_of(protocol, topic)
        listener = Failing()
        async with Reader(bootstrap, options) as other:
            consumer = Consumer(cluster, options)
            consumer.subscribe([topic], listener)
            found = 0
            while found < 20:
                try:
                    found += sum(map(len, (await consumer.poll()).values()))
                except RuntimeError:
                    assert listener.failures
            other.start([topic])
            while not (len(consumer.assignment) == len(other.consumer.assignment) == 2):
                with contextlib.suppress(RuntimeError):
                    await consumer.poll(timeout_ms=50)
            with pytest.raises(RuntimeError, match="the listener failed"):
                await consumer.close()
            await until(lambda: len(other.consumer.assignment) == 4)

    run(bootstrap, test)
