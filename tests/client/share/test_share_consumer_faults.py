"""The share consumer when things go wrong: sessions that are gone, members that are not known, leaders that moved."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.client.consuming import LIVELY, run, topic_with, until
from tests.client.sharing import nothing_left, numbers, share_group, sharer, take

from ottla import ApiError, Cluster, ShareConsumer, ShareOptions, TopicPartition
from ottla.client.admin import Admin
from ottla.client.consumer.fetching import ConsumedRecord
from ottla.client.share.delivery import Acknowledgement, Delivery, acquired_of, runs
from ottla.client.share.session import MemberShareSession
from ottla.model.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.records.record import Record
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.shares.share_fetch import ShareFetchResponse


@pytest.fixture
def broker(ottla_broker_factory: Callable[..., EmbeddedBroker]) -> EmbeddedBroker:
    return ottla_broker_factory(**LIVELY)


@pytest.mark.parametrize(
    "error", ["SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH", "SHARE_SESSION_LIMIT_REACHED"]
)
def test_a_session_that_is_gone_is_opened_again(broker: EmbeddedBroker, error: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 4)
        group = await share_group(cluster)
        async with sharer(cluster, group, topic, acknowledgement_mode="explicit") as consumer:
            first = await take(consumer, 4)
            fault = broker.fail(api="ShareFetch", error=error, times=1)
            again = await take(consumer, 4)
            assert fault.hits == 1
            assert [(each.offset, each.delivery_count) for each in again] == [(offset, 2) for offset in range(4)]
            first[0].accept()
            refused = await consumer.commit()
            assert refused[TopicPartition(topic, 0)].code == ErrorCode[error], "it was lost with the session"
            for each in again:
                each.accept()
            assert await consumer.commit() == {}
            assert await nothing_left(consumer)

    run(broker.bootstrap, test)


@pytest.mark.parametrize("error", ["NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "KAFKA_STORAGE_ERROR"])
def test_partitions_that_cannot_be_read_for_a_while(broker: EmbeddedBroker, error: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 2, 4)
        group = await share_group(cluster)
        fault = broker.fail(api="ShareFetch", error=error, times=1)
        async with sharer(cluster, group, topic) as consumer:
            assert numbers(await take(consumer, 8)) == [0, 0, 1, 1, 2, 2, 3, 3]
            assert fault.hits == 1

    run(broker.bootstrap, test)


def test_a_partition_that_cannot_be_kept_takes_no_other_with_it(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is raised over one partition's part of an answer: what is good comes first."""
    kept = ShareConsumer._keep

    def keep(self: ShareConsumer, session: MemberShareSession, fetched: Any) -> bool:
        if fetched.partition.partition == 0:
            raise KeyError("a defect")
        return kept(self, session, fetched)

    monkeypatch.setattr(ShareConsumer, "_keep", keep)

    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 2, 4)
        async with sharer(cluster, await share_group(cluster), topic) as consumer:
            found: list[Delivery] = []
            failures = 0
            while len(found) < 4 or not failures:
                try:
                    found += await consumer.poll()
                except KeyError:
                    failures += 1
            assert [(each.partition, each.offset) for each in found] == [(1, offset) for offset in range(4)]

    run(broker.bootstrap, test)


def test_failures_are_raised_between_the_records_and_do_not_pile_up(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defect: as long as there were records, nobody heard of a partition that failed, and each failure was kept."""
    kept = ShareConsumer._keep
    bad: list[tuple[MemberShareSession, Any]] = []

    def keep(self: ShareConsumer, session: MemberShareSession, fetched: Any) -> bool:
        if fetched.partition.partition == 2:
            return kept(self, session, fetched)
        bad.append((session, fetched))
        raise KeyError(len(bad))

    monkeypatch.setattr(ShareConsumer, "_keep", keep)

    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 3, 4)
        async with sharer(cluster, await share_group(cluster), topic) as consumer:

            async def come() -> list[object]:
                try:
                    return [(await anext(consumer)).offset]
                except KeyError as error:
                    return [*error.args]

            assert [*await come(), len(bad)] == [0, 2]
            for _ in range(99):
                consumer._keep_what_is_good(*bad[0])
            assert [await come() for _ in range(5)] == [[101], [1], [2], [2], [3]]

    run(broker.bootstrap, test)


def test_lost_answers(broker: EmbeddedBroker) -> None:
    """The connection breaks in the middle of a fetch that had locked records: they come again."""

    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 4)
        group = await share_group(cluster)
        fault = broker.fail(api="ShareFetch", close=True, after=True, times=2)
        async with sharer(cluster, group, topic) as consumer:
            assert numbers(await take(consumer, 4)) == [0, 1, 2, 3]
            assert fault.hits == 2
            assert await nothing_left(consumer)

    run(broker.bootstrap, test)


@pytest.mark.parametrize("error", ["FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"])
def test_a_member_that_is_not_known_joins_again(broker: EmbeddedBroker, error: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 2)
        group = await share_group(cluster)
        async with sharer(cluster, group, topic, acknowledgement_mode="explicit") as consumer:
            held = await take(consumer, 2)
            member_id = consumer.member_id
            fault = broker.fail(api="ShareGroupHeartbeat", error=error, times=1)
            await until(lambda: fault.hits)
            await until(lambda: consumer.assignment)
            assert consumer.member_id == member_id
            for each in held:
                each.accept()
            assert await consumer.commit() == {}, "what it holds, it still holds"
            (member,) = (await Admin(cluster).groups.describe(group)).members
            assert member.member_id == member_id

    run(broker.bootstrap, test)


def test_what_will_not_pass_is_raised_and_tried_again(broker: EmbeddedBroker) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 2)
        group = await share_group(cluster)
        broker.fail(api="ShareGroupHeartbeat", error="GROUP_AUTHORIZATION_FAILED", times=1)
        async with sharer(cluster, group, topic) as consumer:
            with pytest.raises(ApiError, match="GROUP_AUTHORIZATION_FAILED"):
                await take(consumer, 1)
            broker.fail(api="ShareFetch", error="INVALID_REQUEST", times=1)
            with pytest.raises(ApiError, match="INVALID_REQUEST"):
                await take(consumer, 1)
            assert numbers(await take(consumer, 2)) == [0, 1]

    run(broker.bootstrap, test)


def test_a_restart(broker: EmbeddedBroker) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 6)
        group = await share_group(cluster)
        async with sharer(cluster, group, topic, acknowledgement_mode="explicit") as consumer:
            for each in (await take(consumer, 6))[:3]:
                each.accept()
            assert await consumer.commit() == {}
            await asyncio.to_thread(broker.restart)
            assert numbers(await take(consumer, 3)) == [3, 4, 5]

    run(broker.bootstrap, test)


def test_closing_when_the_broker_is_gone(broker: EmbeddedBroker) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 2)
        group = await share_group(cluster)
        consumer = sharer(cluster, group, topic)
        await take(consumer, 2)
        await asyncio.to_thread(broker.stop)
        assert await consumer.poll(timeout_ms=300) == []
        async with asyncio.timeout(20):  # a third of the time for which calls are repeated
            await consumer.close()

    run(broker.bootstrap, test)


def test_closing_while_another_task_iterates(broker: EmbeddedBroker) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 1)
        group = await share_group(cluster)
        consumer = ShareConsumer(cluster, ShareOptions(group))
        consumer.subscribe([topic])
        seen: list[Delivery] = []

        async def read() -> None:
            async for delivery in consumer:
                with delivery:
                    seen.append(delivery)

        reading = asyncio.create_task(read())
        await until(lambda: seen)
        await consumer.close()
        await reading
        with pytest.raises(TypeError, match="a list of names"):
            consumer.subscribe("topic")

    run(broker.bootstrap, test)


# --- without a broker -------------------------------------------------------------------------------------------------

AnswerOfOne = ShareFetchResponse.ShareFetchableTopicResponse.PartitionData


def answer_with(records: bytes, *acquired: tuple[int, int, int]) -> AnswerOfOne:
    kind = AnswerOfOne.AcquiredRecords
    return AnswerOfOne(
        partition_index=0,
        error_code=0,
        acknowledge_error_code=0,
        current_leader=AnswerOfOne.LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
        records=records,
        acquired_records=[kind(first_offset=a, last_offset=b, delivery_count=c) for a, b, c in acquired],
    )


def batch_of(first: int, *offsets: int) -> bytearray:
    return build_batch([Record(offset, 1, None, b"%d" % offset) for offset in offsets], base_offset=first)


def test_only_what_was_acquired_is_taken() -> None:
    """Batches hold more than is ours; offsets without a record are gaps; what is damaged is given back."""
    records = bytes(batch_of(0, *range(5)) + batch_of(5, 5, 7, 9))
    found = acquired_of(TopicPartition("t", 0), answer_with(records, (1, 2, 1), (4, 9, 3)), check_crc=True)
    assert [(record.offset, count) for record, count in found.records] == [
        (1, 1),
        (2, 1),
        (4, 3),
        (5, 3),
        (7, 3),
        (9, 3),
    ]
    assert (found.gaps, found.unreadable, found.error) == ([range(6, 7), range(8, 9)], [], None)
    damaged = bytearray(records)
    damaged[-1] ^= 1
    found = acquired_of(TopicPartition("t", 0), answer_with(bytes(damaged), (1, 2, 1), (4, 9, 3)), check_crc=True)
    assert [record.offset for record, _ in found.records] == [1, 2, 4]
    assert (found.gaps, found.unreadable) == ([], [range(5, 10)])
    assert found.error is not None and found.error.code == ErrorCode.CORRUPT_MESSAGE


def test_acknowledgements_in_runs() -> None:
    accept, reject = Acknowledgement.ACCEPT, Acknowledgement.REJECT
    kinds = [(3, accept), (1, accept), (2, accept), (7, accept), (8, reject), (9, accept), (11, reject)]
    assert runs(kinds) == [(1, 3, [1]), (7, 9, [1, 3, 1]), (11, 11, [3])]
    assert runs([]) == []


def test_a_huge_gap_is_a_range() -> None:
    """A compacted topic, or a batch whose header promises more records than it has."""
    huge = 10**8
    records = bytes(batch_of(0, 0, huge))
    found = acquired_of(TopicPartition("t", 0), answer_with(records, (0, 2 * huge, 1)), check_crc=True)
    assert [record.offset for record, _ in found.records] == [0, huge]
    assert found.gaps == [range(1, huge), range(huge + 1, 2 * huge + 1)]
    damaged = bytearray(records)
    damaged[-1] ^= 1
    found = acquired_of(TopicPartition("t", 0), answer_with(bytes(damaged), (0, 2 * huge, 1)), check_crc=True)
    assert found.unreadable == [range(2 * huge + 1)]


def test_a_huge_gap_is_acknowledged_as_a_range() -> None:
    async def test() -> None:
        huge, name = 10**8, (bytes(16), 0)
        session = MemberShareSession(cast("Any", None), cast("Any", None), 0, "m")
        session.acknowledge(name, 0, Acknowledgement.ACCEPT)
        session.acknowledge_ranges(name, [range(1, huge)], Acknowledgement.GAP)
        session.acknowledge(name, huge, Acknowledgement.REJECT)
        session.acknowledge_ranges(name, [range(huge + 1, 2 * huge)], Acknowledgement.RELEASE)
        assert session.pending[name].runs() == [
            (0, 0, [1]),
            (1, huge - 1, [0]),
            (huge, huge, [3]),
            (huge + 1, 2 * huge - 1, [2]),
        ]
        assert session.is_pending(name, huge) and not session.is_pending(name, 5)
        assert not session.is_pending((bytes(16), 1), 0)

    asyncio.run(test())


def test_a_delivery_is_a_record() -> None:
    class Lease:
        until_s = 0.0
        said: list[tuple[int, Acknowledgement]] = []

        def acknowledge(self, delivery: Delivery, kind: Acknowledgement) -> None:
            delivery.acknowledgement = kind
            self.said.append((delivery.offset, kind))

    record = ConsumedRecord("t", 0, 5, 1, b"k", b"v", (("h", b"1"),), 0)
    delivery = Delivery.of(record, 2, Lease())
    assert delivery == record and delivery.headers == (("h", b"1"),) and delivery.delivery_count == 2
    with delivery:
        delivery.renew()
    with pytest.raises(KeyError), Delivery.of(record, 1, delivery.lease):
        raise KeyError
    kinds = [kind for _, kind in Lease.said]
    assert kinds == [Acknowledgement.RENEW, Acknowledgement.ACCEPT, Acknowledgement.RELEASE]
