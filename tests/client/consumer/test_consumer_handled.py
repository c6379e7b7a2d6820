"""What could not be handled is not committed: by iterating, polling or Arrow, in a loop or without one."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from tests.client.consuming import LIVELY, fresh_name, options_of, partitions_of, run, topic_with
from tests.client.sharing import share_group

from ottla import Cluster, Consumer, ConsumerOptions, ShareConsumer, ShareOptions, TopicPartition
from ottla.client.admin import Admin
from ottla.client.blocking.blocking import Blocking
from ottla.client.consumer.assigned_partitions import AssignedPartition
from ottla.client.consumer.fetching import ConsumerFetcher, FetchCursor, Fetched, RawBatch
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.resources import Resource, ResourceType
from ottla.testing.broker import EmbeddedBroker

COUNT, BAD = 20, 7


class Failed(Exception):
    """What handling raises."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), LIVELY) as broker:
        yield broker


async def committed(cluster: Cluster, group: str, topic: str) -> int | None:
    async with Consumer(cluster, ConsumerOptions(group_id=group, enable_auto_commit=False)) as consumer:
        found = await consumer.committed(partitions_of(topic, 1))
    return found[TopicPartition(topic, 0)].offset if found else None


def options(group: str, protocol: str = "range", **changes: object) -> ConsumerOptions:
    return options_of(protocol, group, auto_commit_interval_ms=60_000, max_poll_records=5, **changes)


async def iterates(consumer: Consumer) -> None:
    async for record in consumer:
        if record.offset == BAD:
            raise Failed


async def iterates_and_pauses(consumer: Consumer) -> None:
    async for record in consumer:
        if record.offset == BAD:
            consumer.pause(TopicPartition(record.topic, 0))
            raise Failed


async def iterates_to_the_last_of_a_batch(consumer: Consumer) -> None:
    async for record in consumer:
        if record.offset == COUNT - 1:
            raise Failed


async def polls(consumer: Consumer) -> None:
    while True:
        for records in (await consumer.poll()).values():
            if any(record.offset == BAD for record in records):
                raise Failed


async def polls_and_commits_in_between(consumer: Consumer) -> None:
    while True:
        for partition, records in (await consumer.poll()).items():
            for record in records:
                if record.offset == BAD:
                    raise Failed
                await consumer.commit({partition: record.offset + 1})


async def reads_arrow(consumer: Consumer) -> None:
    async for _ in consumer.arrow(rows_min=5, linger_ms=10):
        raise Failed


async def commits_what_is_in_hand(consumer: Consumer) -> None:
    async for record in consumer:
        if record.offset == BAD:
            await consumer.commit()
            raise Failed


async def commits_and_is_not_told(consumer: Consumer) -> None:
    """The group has it, and the caller was cancelled before it heard of that."""
    async for record in consumer:
        if record.offset == BAD:
            place = consumer._ownership.places[TopicPartition(record.topic, 0)]
            before = place.committed
            await consumer.commit()
            place.committed = before
            raise asyncio.CancelledError


async def is_cancelled(consumer: Consumer) -> None:
    async for record in consumer:
        if record.offset == BAD:
            raise asyncio.CancelledError


async def breaks(consumer: Consumer) -> None:
    async for record in consumer:
        if record.offset == BAD:
            break


Work = Callable[[Consumer], Awaitable[None]]


@pytest.mark.parametrize("protocol", ["range", "consumer"])
@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (iterates, BAD),
        (iterates_and_pauses, BAD),
        (iterates_to_the_last_of_a_batch, COUNT - 1),
        (polls, 5),  # all of that poll
        (polls_and_commits_in_between, BAD),
        (reads_arrow, 0),
        (commits_what_is_in_hand, BAD + 1),
        (commits_and_is_not_told, BAD + 1),
        (is_cancelled, BAD),
        (breaks, BAD + 1),
    ],
)
def test_the_last_commit_ends_before_what_could_not_be_handled(
    broker: EmbeddedBroker, protocol: str, work: Work, expected: int | None
) -> None:
    async def test(cluster: Cluster) -> None:
        topic, group = await topic_with(cluster, 1, COUNT), fresh_name()
        with contextlib.suppress(Failed, asyncio.CancelledError):
            async with Consumer(cluster, options(group, protocol)) as consumer:
                consumer.subscribe([topic])
                await work(consumer)
        assert await committed(cluster, group, topic) == expected

    run(broker.bootstrap, test)


def test_closing_by_hand(broker: EmbeddedBroker) -> None:
    """`finally: await consumer.close()`, with a record in hand, or with what a generator had handed on."""

    async def records(cluster: Cluster, topic: str, group: str) -> AsyncIterator[Any]:
        async with Consumer(cluster, options(group)) as consumer:
            consumer.subscribe([topic])
            async for record in consumer:
                yield record

    async def test(cluster: Cluster) -> None:
        topic, group, other = await topic_with(cluster, 1, COUNT), fresh_name(), fresh_name()
        consumer = Consumer(cluster, options(group))
        consumer.subscribe([topic])
        with pytest.raises(Failed):  # noqa: PT012
            try:
                await iterates(consumer)
            finally:
                await consumer.close()
        assert await committed(cluster, group, topic) == BAD
        async with contextlib.aclosing(records(cluster, topic, other)) as source:  # type: ignore[type-var]
            async for record in source:
                if record.offset == BAD:
                    break
        assert await committed(cluster, other, topic) == BAD

    run(broker.bootstrap, test)


def test_what_could_not_be_handled_comes_again(broker: EmbeddedBroker) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, COUNT)
        async with Consumer(cluster, options(fresh_name())) as consumer:
            consumer.assign(partitions_of(topic, 1))
            seen: list[int] = []
            async for record in consumer:
                seen.append(record.offset)
                if record.offset == BAD and seen.count(BAD) < 3:
                    consumer.not_handled()
                if record.offset == COUNT - 1:
                    break
            assert seen == [*range(BAD), BAD, BAD, *range(BAD, COUNT)]
            consumer.seek(TopicPartition(topic, 0), 3)
            consumer.not_handled()  # a position that was sought stays
            assert consumer.position(TopicPartition(topic, 0)) == 3

    run(broker.bootstrap, test)


def test_the_periodic_commit_is_of_what_was_handled(broker: EmbeddedBroker) -> None:
    async def test(cluster: Cluster) -> None:
        topic, group = await topic_with(cluster, 1, COUNT), fresh_name()
        chosen = options_of("range", group, auto_commit_interval_ms=0, max_poll_records=1)
        async with Consumer(cluster, chosen) as consumer:
            consumer.subscribe([topic])
            async for record in consumer:
                await asyncio.sleep(0.01)  # the commit has its time
                assert (await committed(cluster, group, topic) or 0) <= record.offset
                if record.offset == BAD:
                    break

    run(broker.bootstrap, test)


def test_without_a_loop(broker: EmbeddedBroker) -> None:
    with Blocking(broker.bootstrap) as client:
        topic = client.run(topic_with(client.cluster, 1, COUNT))
        groups = [fresh_name() for _ in range(4)]

        def iterate(consumer: Any) -> None:
            consumer.subscribe([topic])
            for record in consumer:
                if record.offset == BAD:
                    raise Failed

        with pytest.raises(Failed), client.consumer(options(groups[0])) as consumer:
            iterate(consumer)
        with pytest.raises(Failed):  # noqa: PT012
            second = client.consumer(options(groups[1]))
            try:
                iterate(second)
            finally:
                second.close()
        with pytest.raises(Failed), Blocking(broker.bootstrap) as other:
            iterate(other.consumer(options(groups[2])))
        with pytest.raises(Failed), client.consumer(options(groups[3])) as consumer:  # noqa: PT012
            consumer.subscribe([topic])
            for _ in consumer.arrow(rows_min=5, linger_ms=10):
                raise Failed
        found = [client.run(committed(client.cluster, group, topic)) for group in groups]
        assert found == [BAD, BAD, BAD, 0]


@pytest.mark.parametrize("mode", ["implicit", "explicit"])
def test_a_share_consumer_accepts_nothing_that_raised(broker: EmbeddedBroker, mode: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic, group = await topic_with(cluster, 1, COUNT), fresh_name()
        resource = Resource(ResourceType.GROUP, group)
        await Admin(cluster).configs.set(resource, {"share.auto.offset.reset": "earliest"})
        chosen = ShareOptions(group, acknowledgement_mode=mode)  # type: ignore[arg-type]
        with pytest.raises(Failed):  # noqa: PT012
            async with ShareConsumer(cluster, chosen) as consumer:
                consumer.subscribe([topic])
                async for delivery in consumer:
                    with delivery if mode == "explicit" else contextlib.nullcontext():
                        if delivery.offset == BAD:
                            raise Failed
        async with ShareConsumer(cluster, chosen) as consumer:
            consumer.subscribe([topic])
            async for delivery in consumer:
                assert delivery.offset == BAD
                break

    run(broker.bootstrap, test)


def interrupt_after_answer(client: Blocking, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes when the next call that brings something is done: nobody has what it brought."""
    run_it = client.run

    def interrupted(call: Any) -> Any:
        found = run_it(call)
        if found:
            monkeypatch.setattr(client, "run", run_it)
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(client, "run", interrupted)


def test_a_caller_that_is_interrupted_gets_it_again(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while `poll` is done already: nobody has what it brought."""
    with Blocking(broker.bootstrap) as client:
        topic = client.run(topic_with(client.cluster, 1, COUNT))
        with client.consumer(options(fresh_name())) as consumer:
            consumer.assign(partitions_of(topic, 1))
            seen: list[int] = []
            for way in (
                lambda: [each.offset for each in consumer.poll(5, 10_000).popitem()[1]],
                lambda: [next(consumer).offset],
                lambda: next(consumer.arrow(rows_min=1, linger_ms=10))["offset"].to_pylist(),
            ):
                interrupt_after_answer(client, monkeypatch)
                with pytest.raises(KeyboardInterrupt):
                    way()
                seen += way()
            assert seen == list(range(len(seen))) and len(seen) > 6


@pytest.mark.parametrize("mode", ["implicit", "explicit"])
def test_a_sharer_that_is_interrupted_gets_it_again(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    """Defect: the next poll accepted what nobody had got."""
    with Blocking(broker.bootstrap) as client:
        topic = client.run(topic_with(client.cluster, 1, COUNT))
        group = client.run(share_group(client.cluster))
        with client.share_consumer(ShareOptions(group, acknowledgement_mode=mode)) as consumer:
            consumer.subscribe([topic])
            seen: list[tuple[int, int]] = []
            for way in (lambda: consumer.poll(5, 10_000), lambda: [next(consumer)]):
                interrupt_after_answer(client, monkeypatch)
                with pytest.raises(KeyboardInterrupt):
                    way()
                for delivery in way():
                    seen.append((delivery.offset, delivery.delivery_count))
                    delivery.accept()
            assert seen == [(offset, 1) for offset in range(6)]
            assert consumer.commit() == {}


# --- what arrived is not lost beside a failure -----------------------------------------------------------------------


def test_a_batch_that_cannot_be_read_takes_no_other_with_it(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of one partition are not passed over because another's cannot be decoded."""

    async def test(cluster: Cluster) -> None:
        topic, group = await topic_with(cluster, 2, COUNT), fresh_name()
        taken = AssignedPartition.take

        def take(place: AssignedPartition, records_max: int) -> Any:
            if place.partition.partition == bad and place.has_records:
                raise ApiError(ErrorCode.CORRUPT_MESSAGE)
            return taken(place, records_max)

        monkeypatch.setattr(AssignedPartition, "take", take)
        for bad in (0, 1):
            async with Consumer(cluster, options(group + str(bad))) as consumer:
                consumer.assign(partitions_of(topic, 2))
                seen: list[int] = []
                failures = 0
                while len(seen) < COUNT or not failures:
                    try:
                        for records in (await consumer.poll(timeout_ms=100)).values():
                            seen += [record.offset for record in records]
                    except ApiError:
                        failures += 1
                assert seen == list(range(COUNT))

    run(broker.bootstrap, test)


def test_a_fetch_that_fails_takes_no_other_with_it() -> None:
    """Each cursor has its own outcome, and is behind what its owner was given, no further."""

    async def test() -> None:
        fetcher = ConsumerFetcher(None, None)  # type: ignore[arg-type]
        good, bad = FetchCursor(TopicPartition("t", 0), 0), FetchCursor(TopicPartition("t", 1), 0)
        defect = KeyError("oops")

        async def answers() -> list[Fetched]:
            return [Fetched(good, [], 1, next_epoch=7)]

        async def fails() -> list[Fetched]:
            raise defect

        fetcher._spawn(answers(), [good])
        fetcher._spawn(fails(), [bad])
        await fetcher.wait()
        assert good.busy and bad.busy and (good.position, good.last_epoch) == (0, -1)
        assert {fetched.cursor: fetched.error for fetched in fetcher.collect()} == {good: None, bad: defect}
        assert not good.busy and not bad.busy
        assert (good.position, good.last_epoch, bad.position) == (1, 7, 0)
        assert fetcher.collect() == [] and not fetcher

    asyncio.run(test())


def test_a_place_keeps_a_batch_that_cannot_be_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    place = AssignedPartition(TopicPartition("t", 0))
    place.move(0)
    header: Any = type("Header", (), {"size_bytes": 10, "base_offset": 0})
    raw = RawBatch(place.partition, header, memoryview(b""), 0, None)
    place.add(Fetched(place.cursor, [raw], 5, 5, 5, 10))  # type: ignore[arg-type]

    def decode(_: RawBatch) -> Any:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE)

    monkeypatch.setattr("ottla.client.consumer.assigned_partitions.decode_batch", decode)
    for _ in range(2):
        with pytest.raises(ApiError):
            place.take(10)
    assert (place.position, place.buffered_bytes) == (0, 10)
