"""The blocking client against both brokers: everything that the asyncio client can do, for code without a loop."""

import inspect
import threading
import time
from collections.abc import Iterator

import pytest
from tests.client.consuming import LIVELY, fresh_name
from tests.support.waiting import until

from ottla import (
    ApiError,
    Consumer,
    ConsumerOptions,
    ProducerOptions,
    ShareConsumer,
    ShareOptions,
    Span,
    TopicPartition,
)
from ottla.client.blocking.blocking import Blocking
from ottla.client.blocking.consumers import BlockingConsumer, BlockingEach, BlockingShareConsumer, BlockingTransaction
from ottla.client.blocking.faces import Face
from ottla.client.consumer.each import Each
from ottla.client.producer.transaction import Transaction
from ottla.model.errors import ErrorCode
from ottla.model.resources import Resource, ResourceType
from ottla.testing.broker import EmbeddedBroker

# In one worker, which starts that Kafka once.
KAFKA = pytest.mark.compat
EARLY = ConsumerOptions(auto_offset_reset="earliest", fetch_max_wait_ms=100)


@pytest.fixture(params=["ottla", pytest.param("kafka", marks=KAFKA)])
def bootstrap(request: pytest.FixtureRequest) -> str:
    if request.param == "kafka":
        return str(request.getfixturevalue("lively_kafka_bootstrap"))
    return str(request.getfixturevalue("ottla_broker_factory")(**LIVELY).bootstrap)


@pytest.fixture
def client(bootstrap: str) -> Iterator[Blocking]:
    with Blocking(bootstrap) as made:
        yield made


@pytest.fixture
def topic(client: Blocking) -> str:
    """Two partitions with ten records each."""
    name = fresh_name()
    client.admin.topics.create(name, 2, 1)
    for number in range(20):
        client.post(name, b"%d" % number, partition=number % 2)
    client.flush()
    return name


def test_nothing_is_missing() -> None:
    """Every public coroutine and generator of the asyncio objects has its face."""
    with Blocking("127.0.0.1:1") as client:
        faces: list[tuple[type, type]] = [
            (BlockingConsumer, Consumer),
            (BlockingEach, Each),
            (BlockingShareConsumer, ShareConsumer),
            (BlockingTransaction, Transaction),
        ]
        nouns = [each for each in vars(client.admin).values() if isinstance(each, Face) and each is not client]
        faces += [(type(noun), type(noun.inner)) for noun in nouns]
    assert len(faces) == 17
    internal = {"next_at_hand", "acknowledge", "not_received"}
    for face, shown in faces:
        wanted = {name for name, each in vars(shown).items() if inspect.isfunction(each) and not name.startswith("_")}
        assert wanted - internal <= set(dir(face)), (face, shown)
        for name in wanted - internal - {"close"}:
            assert vars(face)[name].method is vars(shown)[name], "under its own name"


def test_what_was_posted_is_delivered_when_the_block_fails(ottla_broker: EmbeddedBroker) -> None:
    """A consumer commits up to the record that failed, so what was posted for those before it has to be there."""
    name = fresh_name()
    with Blocking(ottla_broker.bootstrap) as client:
        client.admin.topics.create(name, 2, 1)
        client.send_all(name, [(None, b"%d" % number) for number in range(10)])

    def copy() -> None:
        with Blocking(ottla_broker.bootstrap, ProducerOptions(linger_ms=60_000)) as client:
            for record in client.read(name):
                if record.offset == 3:
                    raise ValueError("a bad record")
                client.post(copied, record.value)

    with Blocking(ottla_broker.bootstrap) as client:
        copied = fresh_name()
        client.admin.topics.create(copied, 1, 1)
        with pytest.raises(ValueError, match="a bad record"):
            copy()
        assert len(list(client.read(copied))) >= 3


def test_threads_that_use_a_client_first_share_one_producer(ottla_broker: EmbeddedBroker) -> None:
    name, threads_at_once, rounds = fresh_name(), 8, 10
    with Blocking(ottla_broker.bootstrap) as client:
        client.admin.topics.create(name, 1, 1)
    for _ in range(rounds):
        with Blocking(ottla_broker.bootstrap) as client:
            barrier = threading.Barrier(threads_at_once)

            def post(client: Blocking = client, barrier: threading.Barrier = barrier) -> None:
                barrier.wait()
                client.post(name, b"v")

            threads = [threading.Thread(target=post) for _ in range(threads_at_once)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    with Blocking(ottla_broker.bootstrap) as client:
        assert len(list(client.read(name))) == threads_at_once * rounds


def test_a_client_that_is_closed_refuses(ottla_broker: EmbeddedBroker) -> None:
    client = Blocking(ottla_broker.bootstrap)
    client.close()
    client.close()
    with pytest.raises(RuntimeError, match="the client is closed"):
        client.post("t", b"v")


def test_threads_that_iterate_one_consumer_at_once_are_told(ottla_broker: EmbeddedBroker) -> None:
    name, found = fresh_name(), list[BaseException]()
    with Blocking(ottla_broker.bootstrap) as client:
        client.admin.topics.create(name, 1, 1)
        consumer = client.consumer(ConsumerOptions(group_id=fresh_name()))
        consumer.subscribe([name])

        def iterate() -> None:
            try:
                for _ in consumer:
                    pass
            except RuntimeError as error:
                found.append(error)

        threads = [threading.Thread(target=iterate) for _ in range(4)]
        for thread in threads:
            thread.start()
        until(lambda: len(found) == 3)  # nothing is written, so the fourth waits
        with pytest.raises(RuntimeError, match="another task or thread is reading from this consumer"):
            consumer.poll()
        consumer.close()
        for thread in threads:
            thread.join()
    assert len(found) == 3
    assert all("another task or thread is reading from this consumer" in str(error) for error in found)


def test_iterating_and_committing(client: Blocking, topic: str) -> None:
    options = ConsumerOptions(group_id=fresh_name(), auto_offset_reset="earliest", enable_auto_commit=False)
    with client.consumer(options) as consumer:
        consumer.subscribe([topic])
        seen = [next(consumer) for _ in range(15)]
        assert consumer.assignment == [TopicPartition(topic, 0), TopicPartition(topic, 1)]
        consumer.commit()
        committed = consumer.committed(consumer.assignment)
        assert sum(each.offset for each in committed.values()) == 15, "exactly what the loop got, not what was fetched"
    assert client.admin.groups.describe(options.group_id or "").members == ()
    with client.consumer(options) as consumer:
        consumer.subscribe([topic])
        for record in consumer:
            seen.append(record)
            if len(seen) == 20:
                break
    assert sorted(int(each.value or b"") for each in seen) == list(range(20))


def test_seeking_pausing_polling(client: Blocking, topic: str) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    consumer = client.consumer(EARLY)
    consumer.assign([first, second])
    consumer.seek(first, 8)
    consumer.pause(second)
    found: list[int] = []
    while len(found) < 2:
        for records in consumer.poll(max_records=1, timeout_ms=500).values():
            assert len(records) == 1
            found += [each.offset for each in records]
    assert found == [8, 9] and consumer.position(first) == 10 and consumer.paused() == [second]
    assert consumer.end_offsets([first]) == {first: 10}
    nowhere = TopicPartition(topic, 7)
    with pytest.raises(ValueError, match="is not assigned"):
        consumer.seek(nowhere, 0)
    for operation in (consumer.seek_to_beginning, consumer.seek_to_end, consumer.pause):
        with pytest.raises(ValueError, match="is not assigned"):
            operation(first, nowhere)
    with pytest.raises(ValueError, match="is not assigned"):
        consumer.resume(second, nowhere)
    assert consumer.position(first) == 10 and consumer.paused() == [second]


def fail_halfway(client: Blocking, topic: str) -> None:
    with client.transaction():
        client.send(topic, b"aborted", partition=0)
        raise ZeroDivisionError


def test_transactions(bootstrap: str, topic: str) -> None:
    with Blocking(bootstrap, ProducerOptions(transactional_id=fresh_name())) as client:
        with client.transaction() as txn:
            client.send(topic, b"committed", partition=0)
            txn.send_offsets({TopicPartition(topic, 0): 3}, "somebody")
        with pytest.raises(ZeroDivisionError):
            fail_halfway(client, topic)
        assert client.admin.groups.offsets("somebody")[TopicPartition(topic, 0)].offset == 3
        options = ConsumerOptions(auto_offset_reset="earliest", isolation_level="read_committed")
        consumer = client.consumer(options)
        consumer.assign([TopicPartition(topic, 0)])
        assert [next(consumer).value for _ in range(11)][-1] == b"committed"
        assert consumer.poll(timeout_ms=100) == {}


def test_share_groups(client: Blocking, topic: str) -> None:
    group = fresh_name()
    client.admin.configs.set(Resource(ResourceType.GROUP, group), {"share.auto.offset.reset": "earliest"})
    with client.share_consumer(ShareOptions(group, acknowledgement_mode="explicit")) as consumer:
        consumer.subscribe([topic])
        seen = []
        for delivery in consumer:
            with delivery:  # in this thread, not in the loop's
                seen.append(int(delivery.value or b""))
            if len(seen) == 20:
                break
        assert sorted(seen) == list(range(20))
        assert consumer.commit() == {}
        assert consumer.poll(timeout_ms=100) == []
    assert {place.lag for place in client.admin.shares.places(group)} == {0}


def test_arrow(client: Blocking, topic: str) -> None:
    spans = [Span(topic, 0), Span(topic, 1)]
    rows = [row for batch in client.iterate(client.ranges(spans).arrow()) for row in batch.to_pylist()]
    assert sorted(int(row["value"]) for row in rows) == list(range(20))
    consumer = client.consumer(EARLY)
    consumer.assign([TopicPartition(topic, 0)])
    batch = next(consumer.arrow(linger_ms=10))
    assert batch.column("offset").to_pylist() == list(range(10))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_may_take_its_time(client: Blocking, topic: str, protocol: str) -> None:
    """Heartbeats go on between calls, so the session timeout does not matter; the poll interval does."""
    group = fresh_name()
    options = ConsumerOptions(
        group_id=group,
        group_protocol=protocol,
        auto_offset_reset="earliest",
        session_timeout_ms=1_200,
        heartbeat_interval_ms=100,
        max_poll_interval_ms=3_800,
        enable_auto_commit=False,
    )
    with client.consumer(options) as consumer:
        consumer.subscribe([topic])
        assert next(consumer)
        member = consumer.group_metadata()
        time.sleep(1.7)  # what the caller is busy with
        assert consumer.poll(timeout_ms=100) is not None
        assert consumer.group_metadata() == member, "still the same member"
        until(lambda: client.admin.groups.describe(group).members, lambda members: not members)
        with pytest.raises(ApiError):
            consumer.commit()


def test_what_the_client_does_by_itself(client: Blocking) -> None:
    """A posted record leaves after its linger, though nobody calls anything."""
    name = fresh_name()
    client.admin.topics.create(name, 1, 1)
    client.post(name, b"by itself")
    with Blocking(client.cluster.options) as other:
        assert next(other.read(name, 0, end=None)).value == b"by itself"


def test_life(bootstrap: str) -> None:
    def threads() -> int:
        """Without those of a broker in this process."""
        return sum(not each.name.startswith("ottla-worker") for each in threading.enumerate())

    before = threads()
    client = Blocking(bootstrap)
    with pytest.raises(ApiError) as caught:
        client.admin.topics.delete("there-is-none")
    assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert threads() == before + 1
    client.close()
    client.close()
    assert threads() == before
    with pytest.raises(RuntimeError, match="closed"):
        client.admin.topics.names()


def test_a_callback_cannot_block_its_own_loop(client: Blocking, topic: str) -> None:
    class Listener:
        def on_assigned(self, partitions: object) -> None:
            client.admin.topics.names()

        on_revoked = on_lost = lambda self, partitions: None

    consumer = client.consumer(ConsumerOptions(group_id=fresh_name(), auto_offset_reset="earliest"))
    consumer.subscribe([topic], Listener())
    with pytest.raises(RuntimeError, match="own loop"):
        next(consumer)
