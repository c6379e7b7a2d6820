"""The share consumer against both brokers: every acknowledgement, both modes, locks, sharing, leaving."""

import asyncio
import time

import pytest
from tests.client.consuming import LIVELY, fill, run, topic_with, until
from tests.client.sharing import nothing_left, numbers, share_group, sharer, take
from tests.support.waiting import until_async

from ottla import ClientError, Cluster, Producer, ProducerOptions, TopicPartition
from ottla.client.admin import Admin
from ottla.client.share.delivery import Delivery
from ottla.client.share.options import Acknowledged, ShareOptions
from ottla.model.errors import ErrorCode
from ottla.records.compress import Codec

# In one worker, which starts that Kafka once.
KAFKA = pytest.mark.compat


@pytest.fixture(params=["ottla", pytest.param("kafka", marks=KAFKA)])
def bootstrap(request: pytest.FixtureRequest) -> str:
    if request.param == "kafka":
        return str(request.getfixturevalue("lively_kafka_bootstrap"))
    return str(request.getfixturevalue("ottla_broker_factory")(**LIVELY).bootstrap)


def test_what_was_handed_out_is_accepted_by_the_next_poll(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 2, 50)
        group = await share_group(cluster)
        async with sharer(cluster, group, topic) as consumer:
            found = await take(consumer, 100)
            assert numbers(found) == sorted([*range(50), *range(50)])
            assert {each.delivery_count for each in found} == {1}
            assert consumer.assignment == [TopicPartition(topic, 0), TopicPartition(topic, 1)]
            assert await nothing_left(consumer)
        async with sharer(cluster, group, topic) as consumer:
            assert await nothing_left(consumer)
        places = await Admin(cluster).shares.places(group)
        assert [place.lag for place in places] == [0, 0]

    run(bootstrap, test)


def test_iteration_accepts_what_the_loop_is_done_with(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 10)
        group = await share_group(cluster)
        async with sharer(cluster, group, topic) as consumer:
            seen = []
            async for delivery in consumer:
                seen.append(int(delivery.value or b""))
                if len(seen) == 4:
                    break
            assert seen == [0, 1, 2, 3]
        async with sharer(cluster, group, topic) as consumer:
            again = await take(consumer, 7)
        assert numbers(again) == [3, 4, 5, 6, 7, 8, 9], "the loop was not done with the fourth"
        assert again[0].delivery_count == 2, "it was locked by the first consumer, which gave it back"

    run(bootstrap, test)


def test_each_acknowledgement(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 6)
        group = await share_group(cluster)
        async with sharer(cluster, group, topic, acknowledgement_mode="explicit") as consumer:
            found = await take(consumer, 6)
            for each in found[:2]:
                each.accept()
            found[2].reject()
            found[3].release()
            found[4].release()
            assert await consumer.commit() == {}
            with pytest.raises(ValueError, match=r"offset 0 .* was acknowledged before"):
                found[0].release()
            again = await take(consumer, 2)
            assert [(each.offset, each.delivery_count) for each in again] == [(3, 2), (4, 2)]
            for each in again:
                each.release()
                each.accept()  # until it has left, the last word counts
            assert await nothing_left(consumer), "the acknowledgements travel with the fetch"
        async with sharer(cluster, group, topic) as consumer:
            assert numbers(await take(consumer, 1)) == [5], "only that one was left unacknowledged"

    run(bootstrap, test)


def test_a_block_around_a_delivery(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 4)
        group = await share_group(cluster)
        async with sharer(cluster, group, topic, acknowledgement_mode="explicit") as consumer:
            counts: dict[int, int] = {}

            def handle(delivery: Delivery) -> None:
                counts[delivery.offset] = delivery.delivery_count
                with delivery:
                    if delivery.offset == 1:
                        delivery.reject()
                    if delivery.offset == 2 and delivery.delivery_count < 3:
                        raise ZeroDivisionError

            async def work() -> dict[int, int]:
                for delivery in await consumer.poll(timeout_ms=200):
                    try:
                        handle(delivery)
                    except ZeroDivisionError:
                        assert delivery.offset == 2
                return counts

            await until_async(work, lambda _: counts.get(2) == 3)
            assert await nothing_left(consumer)
            assert counts == {0: 1, 1: 1, 2: 3, 3: 1}

    run(bootstrap, test)


def test_locks_run_out_unless_renewed(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 2)
        group = await share_group(cluster, **{"share.record.lock.duration.ms": "2000"})
        outcomes: list[Acknowledged] = []
        async with (
            sharer(cluster, group, topic, acknowledgement_mode="explicit", on_acknowledged=outcomes.append) as slow,
            sharer(cluster, group, topic) as other,
        ):
            held, lost = await take(slow, 2)

            async def steal() -> list[Delivery]:
                held.renew()
                return await other.poll(timeout_ms=200)

            stolen = await until_async(steal)
            assert [(each.offset, each.delivery_count) for each in stolen] == [(lost.offset, 2)]
            held.accept()
            assert await slow.commit() == {}
            assert outcomes[-1] == Acknowledged(TopicPartition(topic, 0), (held.offset,))
            lost.accept()
            refused = await slow.commit()
            assert refused[TopicPartition(topic, 0)].code == ErrorCode.INVALID_RECORD_STATE
            assert outcomes[-1].offsets == (lost.offset,) and outcomes[-1].error is not None

    run(bootstrap, test)


def test_members_share_a_partition(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 300)
        group = await share_group(cluster)
        taken: list[list[int]] = [[], []]

        async def work(number: int) -> None:
            async with sharer(bootstrap, group, topic, max_poll_records=10, acquire_mode="record_limit") as consumer:
                while sum(map(len, taken)) < 300:
                    if taken[1 - number] or len(taken[number]) < 150:  # whoever joined first leaves the other its half
                        taken[number] += [delivery.offset for delivery in await consumer.poll(timeout_ms=200)]
                    await asyncio.sleep(0.01)
                await consumer.commit()

        await asyncio.gather(work(0), work(1))
        assert sorted(taken[0] + taken[1]) == list(range(300)), "each record once"
        assert taken[0] and taken[1]

    run(bootstrap, test)


def test_records_as_they_were_written(bootstrap: str) -> None:
    """Headers, nulls, codecs; offsets without a record (markers of transactions) do not hold up the queue."""

    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 0)
        group = await share_group(cluster, **{"share.isolation.level": "read_committed"})
        sent_ms = int(time.time() * 1000) - 5_000
        options = ProducerOptions(transactional_id=topic, codec=Codec.ZSTD)
        async with Producer(cluster, options) as producer:
            async with producer.transaction():
                await producer.send(topic, b"v", b"k", headers=[("h", b"1"), ("n", None)], timestamp=sent_ms)
            async with producer.transaction() as aborted:
                await producer.send(topic, b"aborted")
                await aborted.abort()
            async with producer.transaction():
                await producer.send(topic, None, b"gone")
        async with sharer(cluster, group, topic) as consumer:
            first, second = await take(consumer, 2)
            assert (first.key, first.value, first.timestamp, first.offset) == (b"k", b"v", sent_ms, 0)
            assert first.headers == (("h", b"1"), ("n", None))
            assert (second.key, second.value) == (b"gone", None)
            assert await nothing_left(consumer)
            (place,) = await Admin(cluster).shares.places(group)
            assert place.lag == 0, "markers and what was aborted count as dealt with"

    run(bootstrap, test)


def test_acknowledgements_leave_by_themselves(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 3)
        group = await share_group(cluster)
        outcomes: list[Acknowledged] = []
        options = {"acknowledge_linger_ms": 50, "on_acknowledged": outcomes.append}
        async with sharer(cluster, group, topic, acknowledgement_mode="explicit", **options) as consumer:
            for delivery in await take(consumer, 3):
                delivery.accept()
            await until(lambda: outcomes)
            assert outcomes == [Acknowledged(TopicPartition(topic, 0), (0, 1, 2))]

    run(bootstrap, test)


def test_a_lost_connection_loses_the_locks_and_nothing_else(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 5)
        group = await share_group(cluster)
        async with sharer(cluster, group, topic, acknowledgement_mode="explicit") as consumer:
            first = await take(consumer, 5)
            for session in consumer._sessions.values():
                cluster.disconnect(session)
            first[0].accept()
            refused = await consumer.commit()
            assert refused[TopicPartition(topic, 0)].code == ErrorCode.SHARE_SESSION_NOT_FOUND
            again = await take(consumer, 5)
            assert [(each.offset, each.delivery_count) for each in again] == [(offset, 2) for offset in range(5)]
            for each in again:
                each.accept()
            assert await consumer.commit() == {}

    run(bootstrap, test)


def test_an_epoch_that_the_broker_does_not_expect(bootstrap: str) -> None:
    """As after an answer that got lost: the session is opened anew, its records come again."""

    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 3)
        group = await share_group(cluster)
        async with sharer(cluster, group, topic, acknowledgement_mode="explicit") as consumer:
            first = await take(consumer, 3)
            for session in consumer._sessions.values():
                session._epoch += 5
            first[0].accept()
            again = await take(consumer, 3)
            assert [(each.offset, each.delivery_count) for each in again] == [(offset, 2) for offset in range(3)]
            refused = await consumer.commit()
            assert refused[TopicPartition(topic, 0)].code == ErrorCode.INVALID_SHARE_SESSION_EPOCH

    run(bootstrap, test)


def test_other_topics(bootstrap: str) -> None:
    """A subscription changes while records are held: they can still be acknowledged."""

    async def test(cluster: Cluster) -> None:
        one, other = await topic_with(cluster, 1, 3), await topic_with(cluster, 1, 3)
        group = await share_group(cluster)
        async with sharer(cluster, group, one, acknowledgement_mode="explicit") as consumer:
            held = await take(consumer, 3)
            consumer.subscribe([other])
            new = await take(consumer, 3)
            assert {each.topic for each in new} == {other}
            for each in [*held, *new]:
                each.accept()
            assert await consumer.commit() == {}
            await fill(cluster, one, 1, range(2))
            assert await nothing_left(consumer)
        places = {place.partition.topic: place.lag for place in await Admin(cluster).shares.places(group)}
        assert places == {one: 2, other: 0}

    run(bootstrap, test)


def test_the_group_sees_its_members(bootstrap: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 1)
        group = await share_group(cluster)
        admin = Admin(cluster)
        async with sharer(cluster, group, topic, max_poll_interval_ms=1_000) as consumer:
            await take(consumer, 1)
            members = (await admin.groups.describe(group)).members
            assert [each.member_id for each in members] == [consumer.member_id]

            await until_async(lambda: admin.groups.describe(group), lambda described: not described.members)
            await fill(cluster, topic, 1, [7])
            assert numbers(await take(consumer, 1)) == [7], "it joins again with the next poll"
        assert not (await admin.groups.describe(group)).members
        with pytest.raises(ClientError, match="closed"):
            await consumer.poll()

    run(bootstrap, test)


def test_options() -> None:
    with pytest.raises(ValueError, match="acknowledgement_mode is one of implicit, explicit, not 'both'"):
        ShareOptions("g", acknowledgement_mode="both")
    with pytest.raises(ValueError, match="needs a group_id"):
        ShareOptions("")
