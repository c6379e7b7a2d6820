"""ShareFetch and ShareAcknowledge on a live node: what a member is handed out, and what becomes of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.share_talk import ACCEPT, REJECT, RELEASE, RENEW, SMALL, Queue
from tests.server.talk import Pipeline, delete, eventually, produce
from tests.support.requests.raw import RawConnection
from tests.support.waiting import until

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import uuid_text
from ottla.records.record import NO_OFFSET, Record
from ottla.replica.terms import sole
from ottla.server.loop.later import Later
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.records.delete_records import DeleteRecordsRequest
from ottla.wire.messages.shares.initialize_share_group_state import InitializeShareGroupStateRequest
from ottla.wire.messages.shares.read_share_group_state import ReadShareGroupStateRequest


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("shares"), SMALL) as broker:
        yield broker


@pytest.fixture
def connection(broker: EmbeddedBroker) -> Iterator[RawConnection]:
    with RawConnection(broker.bootstrap) as connection:
        yield connection


@pytest.fixture
def queue(broker: EmbeddedBroker, connection: RawConnection) -> Iterator[Queue]:
    with Queue(broker, connection) as queue:
        yield queue


def test_a_record_is_handed_out_once_and_gone_when_accepted(queue: Queue) -> None:
    queue.put(b"one", b"two", b"three")
    first, second = queue.join("first"), queue.join("second")
    assert first.poll() == [(0, 2, 1)]
    assert second.poll() == []
    assert first.acknowledge((0, 2, [ACCEPT])) == 0
    assert first.poll() == second.poll() == []
    queue.put(b"four")
    assert second.poll() == [(3, 3, 1)]


def test_what_is_handed_out_is_counted(broker: EmbeddedBroker, queue: Queue) -> None:
    queue.put(b"one", b"two", b"three")
    assert broker.node is not None
    partition = broker.node.partitions.find(queue.topic, 0)
    assert partition.sent_bytes == 0 and queue.join().poll() == [(0, 2, 1)]
    assert partition.sent_bytes == partition.log.size_bytes


def test_acknowledgements_ride_on_a_fetch_and_may_differ_by_record(queue: Queue) -> None:
    queue.put(b"accepted", b"released", b"rejected")
    member = queue.join()
    assert member.poll() == [(0, 2, 1)]
    assert member.poll([(0, 2, [ACCEPT, RELEASE, REJECT])]) == [(1, 1, 2)]
    assert member.acknowledge((1, 1, [ACCEPT])) == 0
    assert member.poll() == []


def test_a_lock_that_ends_gives_the_record_to_others(queue: Queue) -> None:
    queue.put(b"slow")
    slow, other = queue.join("slow"), queue.join("other")
    assert slow.poll() == [(0, 0, 1)]
    queue.broker.clock.advance("31s")
    assert eventually(other.poll) == [(0, 0, 2)]
    assert slow.acknowledge((0, 0, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE
    assert other.acknowledge((0, 0, [ACCEPT])) == 0


def test_what_another_leader_has_read_is_not_changed_by_the_one_before(queue: Queue) -> None:
    """Even if that one leads again by then, and never heard of the other: its locks are not those that count."""
    queue.put(b"mine", b"not mine any more")
    member = queue.join()
    assert member.poll() == [(0, 1, 1)]
    part = ReadShareGroupStateRequest.ReadStateData
    read = part(topic_id=queue.topic_id, partitions=[part.PartitionData(partition=0, leader_epoch=1)])
    answer: Any = queue.connection.call(ReadShareGroupStateRequest(group_id=queue.group, topics=[read]), 0)
    assert answer.results[0].partitions[0].error_code == 0
    node, loop = queue.broker.node, queue.broker._thread.loop
    assert node is not None and loop is not None
    done = threading.Event()

    def lead_again() -> None:
        node.partitions.find(queue.topic, 0).lead(sole(node.metadata.node_id, 2, 2), 0)
        done.set()

    loop.call_soon_threadsafe(lead_again)
    assert done.wait(10)
    assert member.acknowledge((0, 1, [ACCEPT])) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert member.poll() == [(0, 1, 1)]  # as the coordinator knows it
    assert member.acknowledge((0, 1, [ACCEPT])) == 0


def test_a_lock_can_be_renewed(queue: Queue) -> None:
    queue.put(b"long work")
    member, other = queue.join("member"), queue.join("other")
    assert member.poll() == [(0, 0, 1)]
    queue.broker.clock.advance("20s")
    answer = member.acknowledge_answer({0: [(0, 0, [RENEW])]}, renew=True)
    assert (answer.error_code, answer.acquisition_lock_timeout_ms) == (0, 30_000)
    queue.broker.clock.advance("20s")
    assert other.poll(max_wait_ms=50) == []
    assert member.acknowledge((0, 0, [ACCEPT])) == 0


def test_a_record_is_given_up_at_the_delivery_limit(broker: EmbeddedBroker, connection: RawConnection) -> None:
    with Queue(broker, connection, share_delivery_count_limit=2) as queue:
        queue.put(b"poison", b"good")
        member = queue.join()
        assert member.poll() == [(0, 1, 1)]
        assert member.poll([(0, 1, [RELEASE, ACCEPT])]) == [(0, 0, 2)]
        assert member.poll([(0, 0, [RELEASE])]) == []


def test_a_waiting_fetch_is_answered_by_a_produce_a_release_and_by_nothing_else(queue: Queue) -> None:
    first, second = queue.join("first"), queue.join("second")
    second.poll()
    with Pipeline(queue.broker.bootstrap) as pipeline:
        request = second.request(max_wait_ms=20_000)
        pipeline.send(request, 2)
        queue.put(b"x")
        answer: Any = pipeline.answer()
        assert answer.responses[0].partitions[0].acquired_records[0].first_offset == 0
        second.epoch += 1
        first.poll()
        pipeline.send(first.request(max_wait_ms=20_000), 2)
        assert second.acknowledge((0, 0, [RELEASE])) == 0
        answer = pipeline.answer()
        assert answer.responses[0].partitions[0].acquired_records[0].delivery_count == 2


def test_max_records_are_a_limit_only_if_wanted(queue: Queue) -> None:
    queue.put(*[b"x"] * 10)
    member, strict = queue.join("soft"), queue.join("strict")
    assert strict.poll(max_records=3, strict=True) == [(0, 2, 1)]
    assert member.poll(max_records=3) == [(3, 9, 1)]


def test_the_session_of_a_lost_connection_gives_its_records_back(queue: Queue) -> None:
    queue.put(b"x")
    lost, other = queue.join("lost"), queue.join("other")
    assert lost.poll() == [(0, 0, 1)]
    assert other.poll() == []
    lost.close()
    assert eventually(other.poll) == [(0, 0, 2)]


def test_a_closed_session_gives_its_records_back(queue: Queue) -> None:
    queue.put(b"x", b"y")
    one, other = queue.join("one"), queue.join("other")
    assert one.poll() == [(0, 1, 1)]
    assert one.acknowledge_answer({0: [(0, 0, [ACCEPT])]}, epoch=-1).error_code == 0
    assert other.poll() == [(1, 1, 2)]
    assert one.acknowledge_answer({}, epoch=-1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_deleted_records_are_forgotten_whoever_has_them(queue: Queue) -> None:
    queue.put(*[b"x"] * 5)
    member = queue.join()
    assert member.poll(max_records=3, strict=True) == [(0, 2, 1)]
    topic = DeleteRecordsRequest.Topic
    request = DeleteRecordsRequest(
        topics=[topic(name=queue.topic, partitions=[topic.Partition(partition_index=0, offset=4)])], timeout_ms=1000
    )
    queue.connection.call(request, 2)
    assert member.poll([(0, 2, [ACCEPT])]) == [(4, 4, 1)]


def test_a_deleted_topic_ends_it_all(queue: Queue) -> None:
    queue.put(b"x")
    member = queue.join()
    assert member.poll() == [(0, 0, 1)]
    delete(queue.connection, queue.topic)
    answer = member.fetch({0: [(0, 0, [ACCEPT])]})
    (data,) = answer.responses[0].partitions
    assert data.error_code == data.acknowledge_error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_what_was_acknowledged_survives_a_restart_and_nothing_else(queue: Queue) -> None:
    queue.put(*[b"x"] * 6)
    member = queue.join()
    assert member.poll() == [(0, 5, 1)]
    assert member.acknowledge((0, 0, [ACCEPT]), (2, 3, [ACCEPT]), (4, 4, [RELEASE])) == 0
    queue.broker.restart()
    again = queue.join("again")
    assert eventually(again.poll) == [(1, 1, 2), (4, 5, 2)]
    assert again.acknowledge((1, 1, [ACCEPT]), (4, 5, [ACCEPT])) == 0


def test_a_group_that_begins_at_the_end_goes_on_from_there_after_a_restart(
    broker: EmbeddedBroker, connection: RawConnection
) -> None:
    with Queue(broker, connection, share_auto_offset_reset="latest") as queue:
        queue.put(b"before")
        assert queue.join().poll() == []
        queue.put(b"meanwhile")
        broker.restart()
        assert eventually(queue.join("again").poll) == [(1, 1, 1)]


def test_a_group_may_begin_some_time_ago(broker: EmbeddedBroker, connection: RawConnection) -> None:
    with Queue(broker, connection, share_auto_offset_reset="by_duration:PT1H") as queue:
        now_ms = broker.clock.now_ms()
        for age_ms in (7_200_000, 3_000_000, 0):
            queue.put(Record(NO_OFFSET, now_ms - age_ms, None, b"x"))
        assert queue.join().poll() == [(1, 2, 1)]


def test_there_is_a_limit_to_sessions(tmp_path: Path) -> None:
    with (
        EmbeddedBroker(tmp_path, SMALL | {"group.share.max.share.sessions": 1}) as broker,
        RawConnection(broker.bootstrap) as connection,
        Queue(broker, connection) as queue,
    ):
        one, other = queue.join("one"), queue.join("other")
        assert one.poll() == []
        assert other.fetch().error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        assert one.fetch(epoch=0).error_code == 0, "one that has a place may begin anew"
        one.close()
        eventually(lambda: other.fetch().error_code == 0, "a place for the other")


def test_min_bytes_are_waited_for(queue: Queue) -> None:
    member = queue.join()
    queue.put(b"x" * 100)
    assert member.poll(min_bytes=1_000, max_wait_ms=0) == [(0, 0, 1)], "no time to wait"
    with Pipeline(queue.broker.bootstrap) as pipeline:
        pipeline.send(member.request(min_bytes=1_000, max_wait_ms=20_000), 2)
        queue.put(b"y" * 100)
        queue.put(b"z" * 900)
        (data,) = pipeline.answer().responses[0].partitions
        assert [(each.first_offset, each.last_offset) for each in data.acquired_records] == [(1, 2)]


def test_several_partitions_take_turns(broker: EmbeddedBroker, connection: RawConnection) -> None:
    with Queue(broker, connection, partitions=3) as queue:
        for index in range(3):
            assert produce(connection, queue.topic, [b"x"] * 5, index=index)[0] == 0
        member = queue.join()
        seen = []
        for _ in range(3):
            answer = member.fetch(partitions=(0, 1, 2), max_records=5)
            parts = [data for topic in answer.responses for data in topic.partitions]
            seen += [data.partition_index for data in parts if data.acquired_records]
        assert sorted(seen) == [0, 1, 2]


def named(answer: Any) -> list[int]:
    assert answer.error_code == 0, answer
    return sorted(data.partition_index for topic in answer.responses for data in topic.partitions)


def test_partitions_without_records_are_named_once(broker: EmbeddedBroker, connection: RawConnection) -> None:
    """As Kafka does: the first answer of a session names what was read, later ones what was added since."""
    with Queue(broker, connection, partitions=3) as queue:
        member = queue.join()
        assert named(member.fetch(partitions=(0, 1), max_wait_ms=10)) == [0, 1]
        assert named(member.fetch(max_wait_ms=10)) == []
        assert named(member.fetch(add=(2,), max_wait_ms=10)) == [2]
        assert named(member.fetch(add=(2,), max_wait_ms=10)) == []
        assert produce(connection, queue.topic, [b"x"], index=1)[0] == 0
        assert named(member.fetch()) == [1]
        assert member.fetch(epoch=-1).responses == []


def test_who_wants_no_bytes_is_answered_at_once(queue: Queue) -> None:
    """That is, as soon as the partition is loaded; Kafka's own tests wait for it in this way."""
    member = queue.join()
    assert named(member.fetch(min_bytes=0, max_wait_ms=600_000)) == [0]
    assert named(member.fetch(min_bytes=0, max_wait_ms=600_000)) == []
    queue.put(b"one")
    assert member.poll(min_bytes=0, max_wait_ms=600_000) == [(0, 0, 1)]
    assert member.fetch(max_bytes=0, max_wait_ms=600_000).responses == [], "nothing is wanted at all"


def test_a_group_that_nobody_joined_has_no_state(queue: Queue) -> None:
    """A member that never sends a heartbeat is told why it gets nothing, and served as soon as there is a state."""
    queue.put(b"one")
    # Whoever looks for a share coordinator has its topic created.
    find = FindCoordinatorRequest(key_type=2, coordinator_keys=[f"{queue.group}:{uuid_text(queue.topic_id)}:0"])
    until(lambda: queue.connection.call(find, 6).coordinators[0].error_code, lambda code: code == ErrorCode.NONE)
    early = queue.join("early", joins=False)
    (data,) = early.fetch(max_wait_ms=600_000).responses[0].partitions
    assert data.error_code == ErrorCode.UNKNOWN_SERVER_ERROR and "uninitialized" in data.error_message, data
    queue.join("regular")
    assert early.poll(max_wait_ms=600_000) == [(0, 0, 1)]
    assert early.acknowledge((0, 0, [ACCEPT])) == 0


def test_what_is_delivered_often_comes_in_small_portions(queue: Queue) -> None:
    """A record that no consumer survives must not take its neighbours along to the delivery limit (of 5)."""
    queue.put(*[b"x"] * 8)
    member = queue.join()
    for expected in [(0, 7, 1), (0, 7, 2), (0, 7, 3), (0, 3, 4), (0, 0, 5)]:
        assert member.poll() == [expected]
        first, last, _ = expected
        assert member.acknowledge((first, last, [RELEASE])) == 0
    for offset in (1, 2, 3):
        assert member.poll(max_records=1, strict=True) == [(offset, offset, 5)]
        assert member.acknowledge((offset, offset, [ACCEPT])) == 0
    assert member.poll() == [(4, 7, 4)]


def test_who_goes_away_while_it_waits_has_nothing(queue: Queue) -> None:
    gone, other = queue.join("gone"), queue.join("other")
    gone.poll()
    node = queue.broker.node
    assert node is not None
    before = node.storage.waiters.count
    with Pipeline(queue.broker.bootstrap) as pipeline:
        pipeline.send(gone.request(max_wait_ms=60_000), 2)
        eventually(lambda: node.storage.waiters.count > before, "the fetch waits")
    eventually(lambda: node.storage.waiters.count == before, "the fetch is forgotten")
    queue.put(b"x")
    assert other.poll() == [(0, 0, 1)]


def test_what_cannot_be_stored_does_not_count(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue.put(b"x", b"y")
    member, other = queue.join("member"), queue.join("other")
    assert member.poll() == [(0, 1, 1)]
    node = queue.broker.node
    assert node is not None

    def refuse(_: str, __: object) -> Later[Any]:
        later: Later[Any] = Later()
        later.set(ApiError(ErrorCode.NOT_COORDINATOR))
        return later

    with monkeypatch.context() as patched:
        patched.setattr(node.rooms.coordinators.all.shares.coordinators, "submit", refuse)
        assert member.acknowledge((0, 1, [ACCEPT, RELEASE])) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert other.poll() == [], "they are still the member's"
    assert member.acknowledge((0, 1, [ACCEPT, RELEASE])) == 0
    assert other.poll() == [(1, 1, 2)]


def test_a_state_that_was_begun_anew_is_loaded_anew(queue: Queue) -> None:
    """As when an admin alters the group's offsets while a consumer that has left the group still has a session."""
    queue.put(b"x", b"y")
    member = queue.join()
    assert member.poll() == [(0, 1, 1)]
    Partition = InitializeShareGroupStateRequest.InitializeStateData.PartitionData
    data = InitializeShareGroupStateRequest.InitializeStateData(
        topic_id=queue.topic_id, partitions=[Partition(partition=0, state_epoch=100, start_offset=1)]
    )
    queue.connection.call(InitializeShareGroupStateRequest(group_id=queue.group, topics=[data]), 0)
    assert member.acknowledge((0, 0, [ACCEPT])) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert member.poll() == [(1, 1, 1)]
