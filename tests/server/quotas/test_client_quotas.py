"""Client quotas of a node, seen by clients over bare connections. The broker's clock is moved, nothing sleeps."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from tests.server.quotas.quota_records import set_quota
from tests.server.talk import FETCH_VERSION, PRODUCE_VERSION, create, fetch_request, produce, produce_request
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.model import limits
from ottla.model.ids import NO_ID
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.frame import request_frame
from ottla.wire.messages.cluster.api_versions import ApiVersionsRequest
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.topics.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

TOPIC = "t"
EVERYBODY: dict[str, str | None] = {"user": None}
RAW: dict[str, str | None] = {"client-id": "raw"}
HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")
THROTTLING_QUOTA_EXCEEDED = 89


def holds(broker: EmbeddedBroker) -> list[int]:
    """How often each connection is held, in the order in which they came."""
    assert broker.node is not None and broker.node.composed is not None
    return [connection.context.holds for connection in broker.node.composed.rooms.connections.connections]


def throttle_of(connection: RawConnection, size: int, acks: int = 1) -> int:
    """Write about `size` bytes; return the throttle time of the answer."""
    answer: Any = connection.call(produce_request({(TOPIC, 0): [b"x" * size]}, acks=acks), PRODUCE_VERSION)
    assert answer.responses[0].partition_responses[0].error_code == 0
    throttle_ms: int = answer.throttle_time_ms
    return throttle_ms


def test_a_producer_over_its_quota_is_told_and_not_read_until_its_wait_is_over(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as client:
        create(client, TOPIC)
        set_quota(ottla_broker, RAW, "producer_byte_rate", 1000.0)
        assert throttle_of(client, 9_000) == 0  # a window of ten seconds
        until(lambda: holds(ottla_broker) == [0])
        throttle_ms = throttle_of(client, 11_000)
        assert 10_000 <= throttle_ms <= 10_500  # 20,000 bytes and two headers are those of twenty seconds
        until(lambda: holds(ottla_broker) == [1])
        client.send(request_frame(HELLO, 3, 77, "raw"))
        with RawConnection(ottla_broker.bootstrap) as other:
            other.call(HELLO, 3)  # others are served
        ottla_broker.clock.advance((throttle_ms - 5_000) / 1000)
        assert not client.has_answer()
        until(lambda: holds(ottla_broker) == [1])
        ottla_broker.clock.advance("5s")
        client.decode(ApiVersionsRequest.key, 3, client.receive(), 77)
        until(lambda: holds(ottla_broker) == [0])


def test_a_quota_that_is_removed_throttles_no_longer(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as client:
        create(client, TOPIC)
        set_quota(ottla_broker, RAW, "producer_byte_rate", 100_000.0)
        assert throttle_of(client, 900_000) == 0
        set_quota(ottla_broker, RAW, "producer_byte_rate", None)
        assert throttle_of(client, 900_000) == 0
        assert ottla_broker.node is not None and ottla_broker.node.composed is not None
        assert not ottla_broker.node.composed.rooms.quotas.active


def test_a_quota_survives_a_restart(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as client:
        create(client, TOPIC)
        set_quota(ottla_broker, RAW, "producer_byte_rate", 1000.0)
    ottla_broker.restart()
    with RawConnection(ottla_broker.bootstrap) as client:
        assert throttle_of(client, 15_000) > 4_000


def test_a_producer_without_acknowledgements_is_muted_too(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as client:
        create(client, TOPIC)
        set_quota(ottla_broker, RAW, "producer_byte_rate", 1000.0)
        request = produce_request({(TOPIC, 0): [b"x" * 30_000]}, acks=0)
        client.send(request_frame(request, PRODUCE_VERSION, 5, "raw"))
        until(lambda: holds(ottla_broker) == [1])
        client.send(request_frame(HELLO, 3, 6, "raw"))
        ottla_broker.clock.advance("21s")
        client.decode(ApiVersionsRequest.key, 3, client.receive(), 6)


def test_a_client_that_leaves_while_it_is_muted_leaves_nothing_behind(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as client:
        create(client, TOPIC)
        set_quota(ottla_broker, RAW, "producer_byte_rate", 1.0)
        assert throttle_of(client, 500_000) > 400_000_000
    ottla_broker.clock.advance(limits.MUTED_LOOK_S)
    until(lambda: holds(ottla_broker) == [])


def test_the_bytes_of_a_day_are_those_of_the_quota(ottla_broker: EmbeddedBroker) -> None:
    """A producer that writes without a pause gets its quota, by the broker's own clock."""
    with RawConnection(ottla_broker.bootstrap) as client:
        create(client, TOPIC)
        rate = 50_000
        set_quota(ottla_broker, RAW, "producer_byte_rate", float(rate))
        begun_ms = ottla_broker.clock.now_ms()
        sent = 0
        for _ in range(60):
            throttle_ms = throttle_of(client, 100_000)
            sent += 100_000
            ottla_broker.clock.advance(throttle_ms / 1000)
        spent_s = (ottla_broker.clock.now_ms() - begun_ms) / 1000
        assert spent_s > 60  # otherwise the window of the begin counts for too much
        assert rate * 0.8 < sent / spent_s < rate * 1.25


def fetch(connection: RawConnection, session: tuple[int, int] = (0, -1), **more: Any) -> Any:
    parts: dict[tuple[str | bytes, int], int] = {} if session[1] > 0 else {(TOPIC, 0): 0}
    return connection.call(fetch_request(parts, session=session, **more), FETCH_VERSION)


def size_of(answer: Any) -> int:
    return sum(len(part.records or b"") for topic in answer.responses for part in topic.partitions)


def test_a_consumer_over_its_quota_gets_nothing_and_these_bytes_do_not_count(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as client:
        create(client, TOPIC)
        for _ in range(4):
            assert produce(client, TOPIC, [b"x" * 9_000])[0] == 0
        set_quota(ottla_broker, RAW, "consumer_byte_rate", 2000.0)
        first = fetch(client, session=(0, 0))
        # no more than the window of ten seconds is read
        assert first.throttle_time_ms == 0 and 9_000 < size_of(first) <= 20_000 and first.session_id
        second = fetch(client, session=(first.session_id, 1))
        assert (second.error_code, second.session_id, second.responses) == (0, first.session_id, [])
        assert 0 < second.throttle_time_ms <= 10_000
        until(lambda: holds(ottla_broker) == [1])
        ottla_broker.clock.advance("20s")
        third = fetch(client, session=(first.session_id, 2))
        assert third.throttle_time_ms == 0 and size_of(third) == size_of(first)


def test_a_full_fetch_over_its_quota_opens_no_session(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as client:
        create(client, TOPIC)
        assert produce(client, TOPIC, [b"x" * 9_000])[0] == 0
        set_quota(ottla_broker, RAW, "consumer_byte_rate", 100.0)  # the first batch is sent whole, whatever it takes
        answer = fetch(client, session=(0, 0))
        assert (answer.session_id, answer.responses) == (0, []) and answer.throttle_time_ms > 0


def test_fetches_behind_a_throttled_one_are_answered_after_the_wait(ottla_broker: EmbeddedBroker) -> None:
    """The second fetch was read already when the first one is answered and mutes the connection."""
    with RawConnection(ottla_broker.bootstrap) as client, RawConnection(ottla_broker.bootstrap) as writer:
        create(client, TOPIC)
        set_quota(ottla_broker, RAW, "consumer_byte_rate", 100.0)
        waiting = fetch_request({(TOPIC, 0): 0}, max_wait_ms=60_000)
        client.send(request_frame(waiting, FETCH_VERSION, 1, "raw"))
        client.send(request_frame(waiting, FETCH_VERSION, 2, "raw"))
        assert produce(writer, TOPIC, [b"x" * 9_000])[0] == 0
        first: Any = client.decode(1, FETCH_VERSION, client.receive(), 1)
        assert first.throttle_time_ms > 0 and not first.responses
        until(lambda: holds(ottla_broker)[0] == 1)
        ottla_broker.clock.advance("300s")
        second: Any = client.decode(1, FETCH_VERSION, client.receive(), 2)
        assert second.error_code == 0


def test_a_follower_is_not_throttled(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as client:
        create(client, TOPIC)
        set_quota(ottla_broker, EVERYBODY, "consumer_byte_rate", 1.0)
        set_quota(ottla_broker, EVERYBODY, "request_percentage", 0.0001)
        assert produce(client, TOPIC, [b"x" * 9_000], acks=1)[0] == 0
        ottla_broker.clock.advance("2s")
        with RawConnection(ottla_broker.bootstrap) as follower:
            request = fetch_request({(TOPIC, 0): 0})
            request.replica_id = 7
            answer: Any = follower.call(request, FETCH_VERSION)
            assert answer.throttle_time_ms == 0
            assert holds(ottla_broker)[-1] == 0


def test_the_time_of_requests_counts_and_a_wait_is_no_longer_than_a_sample(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as client:
        create(client, TOPIC)
        set_quota(ottla_broker, RAW, "request_percentage", 0.0001)  # ten microseconds in ten seconds
        seen = set()
        for _ in range(3):
            answer: Any = client.call(MetadataRequest(topics=None), 12)
            seen.add(answer.throttle_time_ms)
            ottla_broker.clock.advance("1s")
        assert seen == {1000}
        set_quota(ottla_broker, RAW, "request_percentage", 100.0)
        answer = client.call(MetadataRequest(topics=None), 12)
        assert answer.throttle_time_ms == 0


def creation(names: list[str], partitions: int = 1) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(
        topics=[
            topic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])
            for name in names
        ],
        timeout_ms=10_000,
    )


def test_topics_over_the_quota_are_refused_and_the_others_made(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as client:
        set_quota(ottla_broker, RAW, "controller_mutation_rate", 1.0)
        answer: Any = client.call(creation(["a", "b"], 30), 7)  # the bucket has 11
        assert [topic.error_code for topic in answer.topics] == [0, THROTTLING_QUOTA_EXCEEDED]
        assert 18_000 <= answer.throttle_time_ms <= 19_000
        until(lambda: holds(ottla_broker) == [1])
        ottla_broker.clock.advance("10s")
        with RawConnection(ottla_broker.bootstrap) as other:
            growth = CreatePartitionsRequest.Topic(name="a", count=31, assignments=None)
            grown: Any = other.call(CreatePartitionsRequest(topics=[growth], timeout_ms=1000, validate_only=False), 3)
            assert [topic.error_code for topic in grown.results] == [THROTTLING_QUOTA_EXCEEDED]
            assert 7_000 <= grown.throttle_time_ms <= 9_000
        with RawConnection(ottla_broker.bootstrap) as other:
            doomed = DeleteTopicsRequest.DeleteTopicState(name="a", topic_id=NO_ID)
            gone: Any = other.call(DeleteTopicsRequest(topics=[doomed], timeout_ms=1000), 6)
            assert [topic.error_code for topic in gone.responses] == [THROTTLING_QUOTA_EXCEEDED]
        ottla_broker.clock.advance("10s")
        again: Any = client.call(creation(["b"]), 7)
        assert again.topics[0].error_code == 0 and again.throttle_time_ms == 0


def test_an_old_client_gets_its_topics_and_waits(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as client:
        set_quota(ottla_broker, RAW, "controller_mutation_rate", 1.0)
        answer: Any = client.call(creation(["a", "b"], 30), 5)
        assert [topic.error_code for topic in answer.topics] == [0, 0]
        assert 48_000 <= answer.throttle_time_ms <= 49_000
        until(lambda: holds(ottla_broker) == [1])


def test_a_refused_topic_uses_nothing_up(ottla_broker: EmbeddedBroker) -> None:
    with RawConnection(ottla_broker.bootstrap) as client:
        create(client, "there")
        set_quota(ottla_broker, RAW, "controller_mutation_rate", 1.0)
        for _ in range(3):
            answer: Any = client.call(creation(["there"], 30), 7)
            assert answer.topics[0].error_code == 36  # TOPIC_ALREADY_EXISTS
            assert answer.throttle_time_ms == 0


def test_a_quota_in_the_middle_of_a_large_request_is_told(ottla_broker: EmbeddedBroker) -> None:
    """The request is handled in portions; only the last ones are over the quota."""
    with RawConnection(ottla_broker.bootstrap) as client:
        set_quota(ottla_broker, RAW, "controller_mutation_rate", 2.0)
        answer: Any = client.call(creation([f"t{number}" for number in range(60)]), 7)
        codes = [topic.error_code for topic in answer.topics]
        assert codes[:22] == [0] * 22 and codes[-1] == THROTTLING_QUOTA_EXCEEDED
        assert answer.throttle_time_ms > 0


@pytest.mark.parametrize("who", ["raw", "somebody else"])
def test_client_ids_of_one_connection_are_told_apart(ottla_broker: EmbeddedBroker, who: str) -> None:
    with RawConnection(ottla_broker.bootstrap) as client:
        create(client, TOPIC)
        set_quota(ottla_broker, RAW, "producer_byte_rate", 1000.0)
        request = produce_request({(TOPIC, 0): [b"x" * 30_000]}, acks=1)
        client.send(request_frame(request, PRODUCE_VERSION, 9, who))
        answer: Any = client.decode(ProduceRequest.key, PRODUCE_VERSION, client.receive(), 9)
        assert (answer.throttle_time_ms > 0) == (who == "raw")


def test_shared_answers_are_not_changed(ottla_broker: EmbeddedBroker) -> None:
    """ApiVersions may be answered from a cache: one client's wait must not be told to another."""
    with contextlib.ExitStack() as stack:
        slow, fast = (stack.enter_context(RawConnection(ottla_broker.bootstrap)) for _ in range(2))
        set_quota(ottla_broker, RAW, "request_percentage", 0.0001)
        throttled: Any = slow.call(HELLO, 3)
        assert throttled.throttle_time_ms == 1000
        set_quota(ottla_broker, RAW, "request_percentage", None)
        free: Any = fast.call(HELLO, 3)
        assert free.throttle_time_ms == 0
