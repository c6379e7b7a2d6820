"""Fetch on a live node: sizes, errors, order and sessions. What is expected here is what Kafka 4.3.1 answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.talk import (
    FETCH_VERSION,
    Pipeline,
    create,
    delete,
    eventually,
    fetch_request,
    produce,
    values_of,
)
from tests.support.requests.raw import RawConnection

from ottla.log.files.disk import StorageError
from ottla.log.log import Log
from ottla.model.errors import ErrorCode
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.records.fetch import FetchRequest
from ottla.wire.messages.records.list_offsets import ListOffsetsRequest
from ottla.wire.messages.topics.describe_log_dirs import DescribeLogDirsRequest

LONG_MS = 600_000
FIRST_BY_ID = 13
NO_SUCH_ID = bytes(range(16))
BATCH_BYTES = 170  # of one record of 100 bytes


@pytest.fixture
def connection(ottla_broker: EmbeddedBroker) -> Iterator[RawConnection]:
    with RawConnection(ottla_broker.bootstrap) as connection:
        yield connection


@pytest.fixture
def topics(connection: RawConnection) -> dict[str, bytes]:
    """Topics a and b with two partitions of one record each; their ids."""
    ids = {name: create(connection, name, 2) for name in "ab"}
    for name in ids:
        for index in range(2):
            assert produce(connection, name, [b"x" * 100], index=index) == (0, 0)
    return ids


def told(answer: Any) -> list[tuple[str | bytes, int, int, int]]:
    """(topic, partition, error, bytes) in the order of the answer."""
    assert answer.error_code == 0
    return [
        (topic.topic or topic.topic_id, part.partition_index, part.error_code, len(part.records))
        for topic in answer.responses
        for part in topic.partitions
    ]


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [
        ({"max_bytes": 0}, (BATCH_BYTES, 0)),
        ({"max_bytes": 60}, (BATCH_BYTES, 0)),
        ({"max_bytes": 200}, (BATCH_BYTES, 0)),
        ({"max_bytes": 2 * BATCH_BYTES - 1}, (BATCH_BYTES, 0)),
        ({"max_bytes": 2 * BATCH_BYTES}, (BATCH_BYTES, BATCH_BYTES)),
        ({"partition_max_bytes": 0}, (BATCH_BYTES, 0)),
        ({"partition_max_bytes": 60}, (BATCH_BYTES, 0)),
        ({"partition_max_bytes": BATCH_BYTES}, (BATCH_BYTES, BATCH_BYTES)),
    ],
)
def test_sizes(
    connection: RawConnection, topics: dict[str, bytes], limits: dict[str, int], sizes: tuple[int, int]
) -> None:
    answer = connection.call(fetch_request({("a", 0): 0, ("b", 0): 0}, **limits), FETCH_VERSION)  # type: ignore[arg-type]
    assert told(answer) == [("a", 0, 0, sizes[0]), ("b", 0, 0, sizes[1])]


def sent_bytes(connection: RawConnection, *, ask: bool = True) -> dict[tuple[str, int], int]:
    (directory,) = connection.call(DescribeLogDirsRequest(topics=None, with_sent_bytes=ask), 5).results
    return {
        (topic.name, part.partition_index): part.sent_bytes for topic in directory.topics for part in topic.partitions
    }


def test_what_consumers_are_given_is_counted(
    ottla_broker: EmbeddedBroker, connection: RawConnection, topics: dict[str, bytes]
) -> None:
    assert set(sent_bytes(connection).values()) == {0}
    for _ in range(2):
        connection.call(fetch_request({("a", 0): 0, ("b", 0): 1}), FETCH_VERSION)
    with Pipeline(ottla_broker.bootstrap) as pipe:
        pipe.send(fetch_request({("a", 1): 1}, min_bytes=2 * BATCH_BYTES, max_wait_ms=LONG_MS), FETCH_VERSION)
        eventually(lambda: ottla_broker.node and ottla_broker.node.storage.waiters.count == 1, "it waits")
        for _ in range(2):
            produce(connection, "a", [b"x" * 100], index=1)
        pipe.answer()
    given = {("a", 0): 2 * BATCH_BYTES, ("a", 1): 2 * BATCH_BYTES, ("b", 0): 0, ("b", 1): 0}
    assert sent_bytes(connection) == given, "each byte once, however often a fetch that waits looks at it"
    assert set(sent_bytes(connection, ask=False).values()) == {-1}, "nobody else is told"


def test_more_than_max_bytes_cannot_be_waited_for(connection: RawConnection, topics: dict[str, bytes]) -> None:
    request = fetch_request({("a", 0): 0}, min_bytes=1 << 30, max_bytes=100, max_wait_ms=LONG_MS)
    assert told(connection.call(request, FETCH_VERSION)) == [("a", 0, 0, BATCH_BYTES)]


def test_mid_batch_offsets_give_the_whole_batch(connection: RawConnection, topics: dict[str, bytes]) -> None:
    produce(connection, "a", [b"1", b"2", b"3"])
    answer = connection.call(fetch_request({("a", 0): 2}), FETCH_VERSION)
    assert values_of(answer) == {("a", 0): [b"1", b"2", b"3"]}


def test_what_does_not_exist_comes_last_and_can_be_waited_with(
    ottla_broker: EmbeddedBroker, connection: RawConnection, topics: dict[str, bytes]
) -> None:
    wanted: dict[tuple[str | bytes, int], int] = {("nope", 0): 0, ("a", 0): 1, ("b", 7): 0, ("a", 1): 1}
    with Pipeline(ottla_broker.bootstrap) as pipe:
        pipe.send(fetch_request(wanted, max_wait_ms=LONG_MS), FETCH_VERSION)
        eventually(lambda: ottla_broker.node and ottla_broker.node.storage.waiters.count == 1, "it waits")
        produce(connection, "a", [b"x" * 100], index=1)
        answer = pipe.answer()
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert told(answer) == [("a", 0, 0, 0), ("a", 1, 0, BATCH_BYTES), ("nope", 0, unknown, 0), ("b", 7, unknown, 0)]
    refused = answer.responses[1].partitions[0]
    assert (refused.high_watermark, refused.last_stable_offset, refused.log_start_offset) == (-1, -1, -1)
    assert refused.aborted_transactions == []


def test_where_nothing_exists_there_is_nothing_to_wait_for(connection: RawConnection) -> None:
    answer = connection.call(fetch_request({(NO_SUCH_ID, 0): 0}, max_wait_ms=LONG_MS), FIRST_BY_ID)
    assert told(answer) == [(NO_SUCH_ID, 0, ErrorCode.UNKNOWN_TOPIC_ID, 0)]


@pytest.mark.parametrize("isolation", [0, 1])
def test_an_offset_out_of_range_is_told_at_once(
    connection: RawConnection, topics: dict[str, bytes], isolation: int
) -> None:
    request = fetch_request({("b", 0): 77, ("a", 0): 1}, max_wait_ms=LONG_MS, isolation=isolation)
    answer: Any = connection.call(request, FETCH_VERSION)
    assert told(answer) == [("b", 0, ErrorCode.OFFSET_OUT_OF_RANGE, 0), ("a", 0, 0, 0)]
    refused, good = answer.responses[0].partitions[0], answer.responses[1].partitions[0]
    assert (refused.high_watermark, refused.last_stable_offset, refused.log_start_offset) == (-1, -1, -1)
    assert refused.aborted_transactions is None
    assert (good.high_watermark, good.last_stable_offset, good.log_start_offset) == (1, 1, 0)
    assert good.aborted_transactions == ([] if isolation else None)


def test_a_partition_named_twice_is_answered_once(connection: RawConnection, topics: dict[str, bytes]) -> None:
    request = fetch_request({("b", 0): 0})
    again = FetchRequest.Topic.Partition(partition=0, fetch_offset=1, partition_max_bytes=1000)
    request.topics[0].partitions.append(again)
    assert told(connection.call(request, FETCH_VERSION)) == [("b", 0, 0, 0)]


def test_a_wrong_isolation_level_is_refused(connection: RawConnection, topics: dict[str, bytes]) -> None:
    answer: Any = connection.call(fetch_request({("b", 0): 0}, isolation=7), FETCH_VERSION)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_topic_deleted_while_a_fetch_waits_for_it(
    ottla_broker: EmbeddedBroker, connection: RawConnection, topics: dict[str, bytes]
) -> None:
    found: list[Any] = []

    def wait() -> None:
        with RawConnection(ottla_broker.bootstrap) as own:
            request = fetch_request({("a", 0): 1, ("b", 0): 1}, max_wait_ms=LONG_MS)
            found.append(told(own.call(request, FETCH_VERSION)))

    thread = threading.Thread(target=wait)
    thread.start()
    eventually(lambda: ottla_broker.node and ottla_broker.node.storage.waiters.count == 1, "it waits")
    delete(connection, "a")
    thread.join(20)
    assert found == [[("a", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0), ("b", 0, 0, 0)]]


@pytest.mark.parametrize(
    ("version", "code"), [(5, ErrorCode.NOT_LEADER_OR_FOLLOWER), (6, ErrorCode.KAFKA_STORAGE_ERROR)]
)
def test_a_disk_that_cannot_be_read(
    connection: RawConnection,
    topics: dict[str, bytes],
    version: int,
    code: ErrorCode,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise StorageError(5, "the disk cannot be read")

    monkeypatch.setattr(Log, "read", broken)
    request = fetch_request({("a", 0): 0}, max_wait_ms=LONG_MS)
    assert told(connection.call(request, version)) == [("a", 0, code, 0)]


# Sessions


def test_a_session_tells_news_in_turns(connection: RawConnection, topics: dict[str, bytes]) -> None:
    wanted: dict[tuple[str | bytes, int], int] = {("a", 0): 0, ("b", 0): 0, ("a", 1): 1, ("nope", 0): 0, ("b", 1): 0}
    unknown = ("nope", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
    answer: Any = connection.call(fetch_request(wanted, session=(0, 0)), FETCH_VERSION)
    session = answer.session_id
    assert session
    data = BATCH_BYTES
    assert told(answer) == [("a", 0, 0, data), ("b", 0, 0, data), ("a", 1, 0, 0), ("b", 1, 0, data), unknown]

    def more(epoch: int, changes: dict[tuple[str | bytes, int], int], **options: Any) -> Any:
        answer: Any = connection.call(fetch_request(changes, session=(session, epoch), **options), FETCH_VERSION)
        assert answer.session_id == session
        return told(answer)

    assert more(1, {}) == [("a", 0, 0, data), ("b", 0, 0, data), ("b", 1, 0, data), unknown]
    assert more(2, {("a", 0): 1, ("b", 0): 1, ("b", 1): 1}, max_wait_ms=50) == [unknown]
    for name, index in (("a", 0), ("b", 0), ("b", 1)):
        produce(connection, name, [b"x" * 100], index=index)
    assert more(3, {}) == [("a", 0, 0, data), ("b", 0, 0, data), ("b", 1, 0, data), unknown]
    produce(connection, "a", [b"x" * 100], index=1)
    # Who got data goes to the end of the line, behind those that never did.
    assert more(4, {}) == [("a", 1, 0, data), ("a", 0, 0, data), ("b", 0, 0, data), ("b", 1, 0, data), unknown]
    assert more(5, {("a", 1): 2}, forget={"a": [0], "b": [0, 1]}) == [unknown]


def test_an_empty_full_fetch_opens_an_empty_session(connection: RawConnection, topics: dict[str, bytes]) -> None:
    answer: Any = connection.call(fetch_request({}, session=(0, 0)), FETCH_VERSION)
    assert answer.session_id
    answer = connection.call(fetch_request({("a", 0): 0}, session=(answer.session_id, 1)), FETCH_VERSION)
    assert told(answer) == [("a", 0, 0, BATCH_BYTES)]


@pytest.mark.parametrize("name", ["x" * 32_000, "\N{GRINNING FACE}" * 249])
def test_names_that_no_topic_can_have_are_answered_without_a_session(
    connection: RawConnection, topics: dict[str, bytes], name: str
) -> None:
    for wanted in ({(name, 0): 0}, {("a", 0): 0, (name, 0): 0}):
        answer: Any = connection.call(fetch_request(wanted, session=(0, 0)), FETCH_VERSION)
        assert (answer.error_code, answer.session_id) == (0, 0)
        assert told(answer)[-1] == (name, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
        assert len(told(answer)) == len(wanted)
    answer = connection.call(fetch_request({("a", 0): 0}, session=(0, 0)), FETCH_VERSION)
    answer = connection.call(fetch_request({(name, 0): 0}, session=(answer.session_id, 1)), FETCH_VERSION)
    assert (answer.error_code, answer.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)


def test_a_session_that_forgets_everything_ends(connection: RawConnection, topics: dict[str, bytes]) -> None:
    answer: Any = connection.call(fetch_request({("a", 0): 0}, session=(0, 0)), FETCH_VERSION)
    session = answer.session_id
    answer = connection.call(fetch_request({}, session=(session, 1), forget={"a": [0]}), FETCH_VERSION)
    assert (answer.error_code, answer.session_id, answer.responses) == (0, 0, [])
    answer = connection.call(fetch_request({}, session=(session, 2)), FETCH_VERSION)
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_session_errors_have_no_session(connection: RawConnection, topics: dict[str, bytes]) -> None:
    answer: Any = connection.call(fetch_request({("a", 0): 1}, session=(0, 0)), FETCH_VERSION)
    session = answer.session_id
    for at, version, code in (
        ((session, 9), FETCH_VERSION, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ((session, 9), FIRST_BY_ID, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ((session, -5), FETCH_VERSION, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        ((session, 1), FIRST_BY_ID, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
        ((session ^ 1, 1), FETCH_VERSION, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
    ):
        answer = connection.call(fetch_request({}, session=at), version)
        assert (answer.error_code, answer.session_id, answer.responses) == (code, 0, [])
    assert connection.call(fetch_request({}, session=(session, 1)), FETCH_VERSION).session_id == session  # type: ignore[attr-defined]


def test_unknown_ids_live_in_a_session_until_they_are_known(
    connection: RawConnection, topics: dict[str, bytes]
) -> None:
    wanted: dict[tuple[str | bytes, int], int] = {(NO_SUCH_ID, 0): 0, (topics["b"], 7): 0, (topics["a"], 0): 1}
    answer: Any = connection.call(fetch_request(wanted, session=(0, 0)), FIRST_BY_ID)
    expected = [
        (NO_SUCH_ID, 0, ErrorCode.UNKNOWN_TOPIC_ID, 0),
        (topics["b"], 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
    ]
    assert told(answer) == [(topics["a"], 0, 0, 0), *expected]
    answer = connection.call(fetch_request({}, session=(answer.session_id, 1)), FIRST_BY_ID)
    assert told(answer) == expected


def test_a_session_may_forget_by_another_connection_what_its_fetch_waits_for(
    ottla_broker: EmbeddedBroker, connection: RawConnection, topics: dict[str, bytes]
) -> None:
    with Pipeline(ottla_broker.bootstrap) as pipe, Pipeline(ottla_broker.bootstrap) as other:
        pipe.send(fetch_request({("a", 0): 1, ("a", 1): 1, ("b", 0): 1}, session=(0, 0)), FETCH_VERSION)
        session = pipe.answer().session_id
        pipe.send(fetch_request({}, session=(session, 1), max_wait_ms=LONG_MS), FETCH_VERSION)
        assert ottla_broker.node is not None
        waiters = ottla_broker.node.storage.waiters
        eventually(lambda: waiters.count == 1, "it waits")
        other.send(fetch_request({}, session=(session, 2), forget={"a": [0]}, max_wait_ms=LONG_MS), FETCH_VERSION)
        eventually(lambda: waiters.count == 2, "both wait")
        assert produce(connection, "a", [b"x" * 100]) == (0, 1), "the producer is not harmed"
        assert told(pipe.answer()) == [("a", 0, 0, BATCH_BYTES)]
        produce(connection, "b", [b"x" * 100])
        assert told(other.answer()) == [("b", 0, 0, BATCH_BYTES)]


def test_a_disk_that_cannot_be_searched(
    connection: RawConnection, topics: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise StorageError(5, "the disk cannot be read")

    monkeypatch.setattr(Log, "time_search", broken)
    topic = ListOffsetsRequest.Topic
    ask = topic(name="a", partitions=[topic.Partition(partition_index=0, timestamp=5)])
    answer: Any = connection.call(ListOffsetsRequest(replica_id=-1, topics=[ask]), 7)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
