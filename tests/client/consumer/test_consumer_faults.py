"""A consumer in trouble: errors of every kind, lost connections, a broker that restarts. Nothing is lost, and nothing
comes twice unless a commit was lost."""

import asyncio
from collections.abc import Callable

import pytest
from tests.client.consuming import (
    LIVELY,
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

from ottla import ApiError, ClientOptions, Cluster, CommitFailed, Consumer, ConsumerOptions, parse_bootstrap
from ottla.client.admin import Admin
from ottla.model.errors import ErrorCode
from ottla.testing.broker import EmbeddedBroker


@pytest.fixture
def broker(ottla_broker_factory: Callable[..., EmbeddedBroker]) -> EmbeddedBroker:
    return ottla_broker_factory(**LIVELY)


# Members are static here: the broker that is made to say that it does not know a member knows it all the same, and a
# group would wait for it.
PASSING = [
    ("FindCoordinator", {"error": "COORDINATOR_NOT_AVAILABLE", "times": 2}),
    ("JoinGroup", {"error": "COORDINATOR_LOAD_IN_PROGRESS", "times": 2}),
    ("JoinGroup", {"error": "NOT_COORDINATOR"}),
    ("JoinGroup", {"error": "UNKNOWN_MEMBER_ID", "times": 2}),
    ("JoinGroup", {"close": True}),
    ("SyncGroup", {"error": "REBALANCE_IN_PROGRESS"}),
    ("SyncGroup", {"error": "UNKNOWN_MEMBER_ID"}),
    ("SyncGroup", {"error": "ILLEGAL_GENERATION"}),
    ("SyncGroup", {"close": True, "after": True}),
    ("OffsetFetch", {"error": "COORDINATOR_LOAD_IN_PROGRESS"}),
    ("OffsetFetch", {"error": "UNSTABLE_OFFSET_COMMIT", "times": 2}),
    ("ListOffsets", {"error": "NOT_LEADER_OR_FOLLOWER", "times": 2}),
    ("Fetch", {"error": "NOT_LEADER_OR_FOLLOWER", "times": 2}),
    ("Fetch", {"error": "FENCED_LEADER_EPOCH"}),
    ("Fetch", {"error": "UNKNOWN_TOPIC_ID"}),
    ("Fetch", {"close": True, "times": 3}),
    ("Metadata", {"error": "LEADER_NOT_AVAILABLE"}),
    ("OffsetCommit", {"error": "NOT_COORDINATOR"}),
    ("OffsetCommit", {"close": True, "after": True}),
]


@pytest.mark.parametrize(
    ("api", "fault"), PASSING, ids=[f"{api}-{'-'.join(map(str, fault.values()))}" for api, fault in PASSING]
)
def test_what_passes_is_waited_out(broker: EmbeddedBroker, api: str, fault: dict[str, object]) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 2, 10)
        met = broker.fail(api, client_id="under test", **fault)  # type: ignore[arg-type]
        client = ClientOptions(parse_bootstrap(broker.bootstrap), client_id="under test", retry_backoff_ms=5)
        async with Reader(client, options_of("cooperative-sticky", topic, group_instance_id="i")) as reader:  # type: ignore[arg-type]
            reader.start([topic])
            await until(lambda: len(reader.records) >= 20, lambda: (reader.events, reader.records))
            await until(lambda: met.hits == fault.get("times", 1))
            assert sorted(reader.places()) == [(index, offset) for index in range(2) for offset in range(10)]
        async with Consumer(cluster, options_of("range", topic)) as consumer:
            stored = await consumer.committed(partitions_of(topic, 2))
            assert [each.offset for each in stored.values()] == [10, 10]

    run(broker.bootstrap, test)


LOSSES = [
    ("range", "Heartbeat", "UNKNOWN_MEMBER_ID"),
    ("cooperative-sticky", "Heartbeat", "UNKNOWN_MEMBER_ID"),
    ("cooperative-sticky", "Heartbeat", "ILLEGAL_GENERATION"),
    ("consumer", "ConsumerGroupHeartbeat", "FENCED_MEMBER_EPOCH"),
    ("consumer", "ConsumerGroupHeartbeat", "UNKNOWN_MEMBER_ID"),
]


@pytest.mark.parametrize(("protocol", "api", "error"), LOSSES)
def test_a_member_that_is_thrown_out_joins_again(broker: EmbeddedBroker, protocol: str, api: str, error: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 2, 5)
        options = options_of(protocol, topic, group_instance_id=None if protocol == "consumer" else "i")
        async with Reader(broker.bootstrap, options) as reader:
            reader.start([topic])
            await until(lambda: len(reader.records) == 10)
            await reader.consumer.commit()
            broker.fail(api, error)
            await until(lambda: ("lost", partitions_of(topic, 2)) in reader.events, lambda: reader.events)
            await until(lambda: shared([reader], 2))
            await fill(cluster, topic, 2, range(5, 10))
            await until(lambda: len(reader.records) >= 20)
            assert sorted(reader.places()) == [(index, offset) for index in range(2) for offset in range(10)]

    run(broker.bootstrap, test)


FATAL = [
    ("range", "JoinGroup", "GROUP_AUTHORIZATION_FAILED"),
    ("range", "Heartbeat", "FENCED_INSTANCE_ID"),
    ("consumer", "ConsumerGroupHeartbeat", "GROUP_AUTHORIZATION_FAILED"),
    ("consumer", "ConsumerGroupHeartbeat", "FENCED_INSTANCE_ID"),
]


@pytest.mark.parametrize(("protocol", "api", "error"), FATAL)
def test_what_does_not_pass_is_raised(broker: EmbeddedBroker, protocol: str, api: str, error: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 0)
        async with Consumer(cluster, options_of(protocol, topic, group_instance_id="i")) as consumer:
            consumer.subscribe([topic])
            fault = broker.fail(api, error, times=None)
            with pytest.raises(ApiError) as raised:
                await consumer.poll(timeout_ms=20_000)
            assert raised.value.code == ErrorCode[error]
            fault.clear()

    run(broker.bootstrap, test)


@pytest.mark.parametrize("error", ["ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"])
def test_a_commit_that_is_refused(broker: EmbeddedBroker, error: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 5)
        options = options_of("range", topic, enable_auto_commit=False, group_instance_id="i")
        async with Consumer(cluster, options) as consumer:
            consumer.subscribe([topic])
            assert [(await anext(consumer)).offset for _ in range(5)] == list(range(5))
            broker.fail("OffsetCommit", error)
            with pytest.raises(ApiError) as raised:
                await consumer.commit()
            assert raised.value.code == ErrorCode[error]
            gone = error != "REBALANCE_IN_PROGRESS"
            assert isinstance(raised.value, CommitFailed) == gone
            if gone:  # joins again, and finds nothing committed
                assert (await anext(consumer)).offset == 0

    run(broker.bootstrap, test)


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky", "consumer"])
def test_a_broker_that_restarts(broker: EmbeddedBroker, protocol: str) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 2, 50)
        options = options_of(protocol, topic, max_poll_records=3)
        async with Reader(broker.bootstrap, options) as first, Reader(broker.bootstrap, options) as second:
            readers = [first.start([topic]), second.start([topic])]
            await until(lambda: shared(readers, 2))
            await asyncio.to_thread(broker.restart)
            await fill(cluster, topic, 2, range(50, 100))
            wanted = {(index, offset) for index in range(2) for offset in range(100)}
            await until(lambda: wanted <= {*first.places(), *second.places()}, lambda: (first.events, second.events))
            for reader in readers:
                assert len(reader.places()) == len(set(reader.places())), "a member got a record twice"

    run(broker.bootstrap, test)


def test_a_topic_that_comes_after_its_subscription(broker: EmbeddedBroker) -> None:
    async def test(cluster: Cluster) -> None:
        topic = fresh_name()
        client = ClientOptions(parse_bootstrap(broker.bootstrap), retry_backoff_max_ms=100)
        async with Reader(client, options_of("range", topic)) as reader:  # type: ignore[arg-type]
            reader.start([topic])
            await until(lambda: reader.events == [("assigned", [])])
            await topic_with(cluster, 1, 5, topic)
            await until(lambda: len(reader.records) == 5)

    run(broker.bootstrap, test)


def test_a_topic_that_is_deleted_and_a_lookup_that_fails_take_nothing_with_them(broker: EmbeddedBroker) -> None:
    """The position of one partition is gone, in the answer that brings another's records; then its topic is."""

    async def test(cluster: Cluster) -> None:
        good, bad = await topic_with(cluster, 1, 100), await topic_with(cluster, 1, 10)
        (there,), (gone,) = partitions_of(good, 1), partitions_of(bad, 1)
        await Admin(cluster).topics.delete_records(bad, {0: 5})
        options = options_of("range", fresh_name(), enable_auto_commit=False)
        async with Consumer(broker.bootstrap, options) as consumer:
            consumer.assign([there, gone])
            consumer.seek(there, 0)
            consumer.seek(gone, 1)
            fault = broker.fail("ListOffsets", "TOPIC_AUTHORIZATION_FAILED", times=None)
            seen: list[int] = []
            failures: set[ErrorCode] = set()
            while len(seen) < 100 or not failures:
                try:
                    for records in (await consumer.poll(timeout_ms=1_000)).values():
                        seen += [record.offset for record in records]
                except ApiError as error:
                    failures.add(error.code)
            assert seen == list(range(100)) and failures == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
            fault.clear()
            await Admin(cluster).topics.delete(bad)
            await fill(cluster, good, 1, range(100, 120))
            while len(seen) < 120:
                found = await consumer.poll(timeout_ms=1_000)
                seen += [record.offset for record in found.get(there, [])]
            assert seen == list(range(120))
            outcomes = await consumer.each.commit()
            assert outcomes.found[there].offset == 120

    run(broker.bootstrap, test)


def test_a_topic_that_is_made_anew_is_read_from_its_start(broker: EmbeddedBroker) -> None:
    async def test(cluster: Cluster) -> None:
        topic = await topic_with(cluster, 1, 5)
        async with Consumer(cluster, ConsumerOptions(auto_offset_reset="earliest", fetch_max_wait_ms=50)) as consumer:
            consumer.assign(partitions_of(topic, 1))
            assert [(await anext(consumer)).offset for _ in range(5)] == list(range(5))
            await Admin(cluster).topics.delete(topic)
            await topic_with(cluster, 1, 3, topic)
            assert [(await anext(consumer)).offset for _ in range(3)] == list(range(3))

    run(broker.bootstrap, test)
