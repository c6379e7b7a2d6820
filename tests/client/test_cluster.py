"""The cluster: addresses, metadata and its cache, retries."""

import asyncio
import random
from typing import Any

import pytest
from tests.client.scripted import CLOSE, ScriptedBroker, metadata
from tests.support.ports import free_ports

from ottla.client.admin import Admin
from ottla.client.cluster import Cluster
from ottla.client.connection import Address
from ottla.client.errors import NotConnected
from ottla.client.metadata import Metadata
from ottla.client.options import ClientOptions, parse_address, parse_bootstrap
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest, CreateTopicsResponse
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.wire.messages.topics.metadata import MetadataRequest


def options(bootstrap: str, **more: Any) -> ClientOptions:
    return ClientOptions(
        parse_bootstrap(bootstrap), retry_backoff_ms=1, retry_backoff_max_ms=2, rng=random.Random(1), **more
    )


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("host", Address("host", 9092)),
        ("host:1", Address("host", 1)),
        (" PLAINTEXT://host:1 ", Address("host", 1)),
        ("[::1]:7", Address("::1", 7)),
        ("[::1]", Address("::1", 9092)),
        ("::1", Address("::1", 9092)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_bootstrap(f"{text},x:3") == (address, Address("x", 3))
    assert parse_address(str(address)) == address


@pytest.mark.parametrize("text", ["", ":1", "host:port", "host:99999", "host:-1", "[::1", "a b", "..:1", "host:\uff19"])
def test_bad_addresses(text: str) -> None:
    with pytest.raises(ValueError, match=r"host|port|address"):
        parse_bootstrap([text] if text else "")


def test_backoff_grows_and_stays_bounded() -> None:
    chosen = ClientOptions((Address("h", 1),), retry_backoff_ms=100, retry_backoff_max_ms=1000, rng=random.Random(3))
    waits = [chosen.backoff_ms(attempt) for attempt in range(1, 40)]
    assert 80 <= waits[0] <= 120 and 160 <= waits[1] <= 240
    assert all(wait <= 1200 for wait in waits)


def test_a_cluster_that_was_never_reached_fails_at_once() -> None:
    async def test() -> None:
        async with Cluster(options(f"127.0.0.1:{free_ports(1)[0]}")) as cluster:
            with pytest.raises(NotConnected, match="connection refused"):
                await cluster.refresh()

    asyncio.run(test())


def test_the_second_address_is_tried() -> None:
    async def test() -> None:
        async with ScriptedBroker() as broker:
            broker.answers[MetadataRequest] = metadata(broker)
            async with Cluster(options(f"127.0.0.1:{free_ports(1)[0]},{broker.bootstrap}")) as cluster:
                assert (await cluster.topic("t")).partition_count == 1

    asyncio.run(test())


def test_metadata_is_cached_and_asked_for_once() -> None:
    async def test() -> None:
        async with ScriptedBroker() as broker:
            broker.answers[MetadataRequest] = metadata(broker, partitions=3)
            async with Cluster(options(broker.bootstrap)) as cluster:
                await asyncio.gather(*(cluster.topic("t") for _ in range(10)))
                assert await cluster.leader(TopicPartition("t", 2)) == (1, 0)
                assert len(broker.of(MetadataRequest)) == 1
                cluster.metadata.mark_stale("t")
                await cluster.topic("t")
                assert len(broker.of(MetadataRequest)) == 2

    asyncio.run(test())


def test_old_metadata_is_refreshed() -> None:
    async def test() -> None:
        async with ScriptedBroker() as broker:
            broker.answers[MetadataRequest] = metadata(broker)
            async with Cluster(options(broker.bootstrap, metadata_max_age_ms=0)) as cluster:
                await cluster.topic("t")
                await cluster.topic("t")
                assert len(broker.of(MetadataRequest)) == 2

    asyncio.run(test())


def test_an_older_leader_epoch_does_not_win() -> None:
    async def test() -> None:
        async with ScriptedBroker() as broker:
            answers = metadata(broker)
            epochs = [5, 3, 6]

            def answer(request: MetadataRequest) -> Any:
                found = answers(request)
                found.topics[0].partitions[0].leader_epoch = epochs.pop(0)
                return found

            broker.answers[MetadataRequest] = answer
            async with Cluster(options(broker.bootstrap)) as cluster:
                for expected in (5, 5, 6):
                    await cluster.refresh(["t"])
                    assert (await cluster.leader(TopicPartition("t", 0)))[1] == expected

    asyncio.run(test())


def test_a_read_is_repeated_over_a_lost_connection() -> None:
    async def test() -> None:
        async with ScriptedBroker() as broker:
            whole = metadata(broker)
            hang_ups = [True, True]
            broker.answers[MetadataRequest] = lambda request: CLOSE if hang_ups and hang_ups.pop() else whole(request)
            async with Cluster(options(broker.bootstrap)) as cluster:
                assert (await cluster.topic("t")).name == "t"
                assert broker.connections == 3

    asyncio.run(test())


def test_errors_that_do_not_pass_are_given_back() -> None:
    async def test() -> None:
        async with ScriptedBroker() as broker:
            broker.answers[MetadataRequest] = metadata(broker)
            async with Cluster(options(broker.bootstrap)) as cluster:
                with pytest.raises(ApiError) as caught:
                    await cluster.topic("missing")
                assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                with pytest.raises(NotConnected, match="broker 9 is not in the cluster"):
                    await cluster.connection(9)
                with pytest.raises(ApiError, match="has 1 partitions"):
                    await cluster.leader(TopicPartition("t", 4))

    asyncio.run(test())


def test_a_topic_that_was_just_made_is_waited_for() -> None:
    async def test() -> None:
        async with ScriptedBroker() as broker:
            knows, lags_behind = metadata(broker), metadata(broker, topics=())
            made = CreateTopicsResponse.CreatableTopicResult(
                name="t", error_code=0, error_message=None, num_partitions=1
            )
            broker.answers[CreateTopicsRequest] = lambda _: CreateTopicsResponse(topics=[made])
            gone = DeleteTopicsResponse.DeletableTopicResult(name="t", error_code=0, error_message=None)
            broker.answers[DeleteTopicsRequest] = lambda _: DeleteTopicsResponse(responses=[gone])
            late = [True, True]
            broker.answers[MetadataRequest] = lambda asked: (lags_behind if late and late.pop() else knows)(asked)
            async with Cluster(options(broker.bootstrap)) as cluster:
                topics = Admin(cluster).topics
                await topics.create("t", validate_only=True)
                with pytest.raises(ApiError, match="there is no topic"):
                    await cluster.topic("t")
                late.append(True)
                await topics.create("t")
                assert (await cluster.topic("t")).partition_count == 1
                await topics.delete("t")
                late.append(True)
                with pytest.raises(ApiError, match="there is no topic"):
                    await cluster.topic("t")

    asyncio.run(test())


def test_a_topic_is_not_new_for_ever() -> None:
    known = Metadata()
    known.made("a", 0)
    known.made("b", 5)
    assert known.is_new("a", 9) and known.is_new("b", 9) and not known.is_new("c", 9)
    assert not known.is_new("a", 10)
    known.made("c", 12)
    assert [each for each in "abc" if known.is_new(each, 0)] == ["b", "c"]  # what is over is not kept


def test_a_closed_cluster_opens_nothing() -> None:
    async def test() -> None:
        async with ScriptedBroker() as broker:
            cluster = Cluster(options(broker.bootstrap))
            await cluster.close()
            with pytest.raises(NotConnected, match="closed"):
                await cluster.refresh()

    asyncio.run(test())
