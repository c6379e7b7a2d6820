"""A follower's session with one leader."""

from types import SimpleNamespace
from typing import Any

from ottla.model.limits import PARTITIONS_NAMED_PER_FETCH
from ottla.server.replication.session import Followed, Key, SessionWithLeader
from ottla.wire.messages.records.fetch import FetchRequest

TOPIC = b"\1" * 16
MANY = 2 * PARTITIONS_NAMED_PER_FETCH + 10


def session_of(count: int) -> SessionWithLeader:
    log = SimpleNamespace(next_offset=0, epochs=SimpleNamespace(latest=-1), log_start_offset=0)
    session = SessionWithLeader()
    for index in range(count):
        partition: Any = SimpleNamespace(leader_epoch=0, log=log)
        session.add(Followed(Key(TOPIC, index), partition))
    return session


def named(request: FetchRequest) -> list[int]:
    return [each.partition for topic in request.topics for each in topic.partitions]


def test_very_many_partitions_are_named_some_at_a_time() -> None:
    session = session_of(MANY)
    first = session.request(1)
    assert (first.session_id, named(first)) == (0, list(range(PARTITIONS_NAMED_PER_FETCH)))
    session.opened(7)
    requests = [session.request(1) for _ in range(2)]
    assert [each.session_epoch for each in requests] == [1, 2]
    assert [index for each in requests for index in named(each)] == list(range(PARTITIONS_NAMED_PER_FETCH, MANY))
    assert not session.is_urgent and not named(session.request(1))


def test_the_rest_does_not_wait() -> None:
    session = session_of(MANY)
    session.request(1)
    session.opened(7)
    assert session.is_urgent
    session.remove(Key(TOPIC, MANY - 1))
    session.request(1)
    assert session.is_urgent
    assert named(session.request(1))[-1] == MANY - 2
    assert not session.is_urgent


def test_a_leader_without_a_session_is_asked_for_everything() -> None:
    session = session_of(MANY)
    session.request(1)
    session.opened(0)
    assert named(session.request(1)) == named(session.request(1)) == list(range(MANY))


def test_after_a_lost_connection_all_are_named_again() -> None:
    session = session_of(MANY)
    session.request(1)
    session.opened(7)
    session.reset()
    again = named(session.request(1))
    session.opened(8)
    again += named(session.request(1)) + named(session.request(1))
    assert again == list(range(MANY))
