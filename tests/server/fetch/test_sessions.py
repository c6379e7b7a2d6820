"""Fetch sessions (KIP-227): what is remembered, what is told, who is evicted."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TOPIC_NAME_CHARS_MAX
from ottla.server.fetch.fetch_sessions import (
    FetchSession,
    FetchSessions,
    asked_partitions,
    asked_partitions_in_steps,
    is_too_large,
    names_more_than,
)
from ottla.wire import compile
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse

Data = FetchResponse.FetchableTopicResponse.PartitionData


def request(
    session_id: int = 0, epoch: int = 0, *, forget: tuple[int, ...] = (), **topics: dict[int, int]
) -> FetchRequest:
    """`t={0: 5}` asks for partition 0 of t from offset 5."""
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        session_id=session_id,
        session_epoch=epoch,
        topics=[
            FetchRequest.Topic(
                topic=name,
                partitions=[
                    FetchRequest.Topic.Partition(partition=index, fetch_offset=offset, partition_max_bytes=100)
                    for index, offset in partitions.items()
                ],
            )
            for name, partitions in topics.items()
        ],
        forgotten_topics_data=[FetchRequest.ForgottenTopic(topic="t", partitions=list(forget))] if forget else [],
    )


def data(high_watermark: int = 0, *, error: int = 0, records: bytes = b"") -> Data:
    return Data(
        partition_index=0,
        error_code=error,
        high_watermark=high_watermark,
        log_start_offset=0,
        aborted_transactions=None,
        records=records,
    )


def opened(sessions: FetchSessions, now_ms: int = 0, *, by_id: bool = False, **topics: dict[int, int]) -> FetchSession:
    session = sessions.open(asked_partitions(request(**topics), by_id).values(), by_id, now_ms)
    assert session is not None
    return session


@pytest.fixture
def sessions() -> FetchSessions:
    return FetchSessions(3, random.Random(1))


def test_increments_change_a_session(sessions: FetchSessions) -> None:
    session = opened(sessions, t={0: 1, 1: 2})
    assert [wanted.ask.fetch_offset for wanted in session.partitions.values()] == [1, 2]
    again = sessions.enter(request(session.key, 1, t={1: 9, 2: 3}, forget=(0,)), False, 1)
    assert again is session
    assert {key: wanted.ask.fetch_offset for key, wanted in session.partitions.items()} == {("t", 1): 9, ("t", 2): 3}
    assert sessions.enter(request(session.key, 2), False, 2) is session


def test_a_full_fetch_closes_the_session_it_names(sessions: FetchSessions) -> None:
    for epoch in (0, -1):
        session = opened(sessions, t={0: 0})
        assert sessions.enter(request(session.key, epoch, t={0: 0}), False, 0) is None
        assert len(sessions) == 0


def test_a_session_that_has_forgotten_everything_is_closed(sessions: FetchSessions) -> None:
    session = opened(sessions, t={0: 0, 1: 0})
    assert sessions.enter(request(session.key, 1, forget=(0, 1)), False, 0) is None
    assert len(sessions) == 0


@pytest.mark.parametrize(
    ("session_offset", "epoch", "by_id", "code"),
    [
        (1, 1, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (0, 2, False, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (0, -5, False, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (0, 2, True, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (0, 1, True, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_mismatches_are_refused_and_change_nothing(
    sessions: FetchSessions, session_offset: int, epoch: int, by_id: bool, code: ErrorCode
) -> None:
    session = opened(sessions, t={0: 0})
    with pytest.raises(ApiError) as refused:
        sessions.enter(request(session.key + session_offset, epoch), by_id, 0)
    assert refused.value.code == code
    assert sessions.enter(request(session.key, 1), False, 0) is session


def test_the_last_word_counts_for_a_partition_named_twice() -> None:
    twice = request(t={0: 5, 1: 6})
    twice.topics.append(request(t={0: 9}).topics[0])
    found = asked_partitions(twice, False)
    assert {key: wanted.ask.fetch_offset for key, wanted in found.items()} == {("t", 0): 9, ("t", 1): 6}


def test_only_news_is_told(sessions: FetchSessions) -> None:
    (wanted,) = opened(sessions, t={0: 0}).partitions.values()
    assert wanted.news(data(5))
    assert not wanted.news(data(5))
    assert wanted.news(data(6))
    assert wanted.news(data(6, records=b"x"))
    assert wanted.news(data(error=3))
    assert wanted.news(data(6)), "after an error the next good answer is news"
    assert not wanted.news(data(6))


def test_who_got_data_goes_to_the_end_of_the_line(sessions: FetchSessions) -> None:
    session = opened(sessions, t={0: 0, 1: 0, 2: 0})
    session.served(session.partitions["t", 0])
    assert [index for _, index in session.partitions] == [1, 2, 0]


def test_what_was_forgotten_meanwhile_does_not_come_back(sessions: FetchSessions) -> None:
    session = opened(sessions, t={0: 0, 1: 0, 2: 0})
    served = session.partitions["t", 0]
    sessions.enter(request(session.key, 1, forget=(0,)), False, 0)
    session.served(served)
    assert [index for _, index in session.partitions] == [1, 2]


def test_a_full_table_gives_way_only_to_the_stale_or_the_smaller(sessions: FetchSessions) -> None:
    large, small, fresh = {0: 0, 1: 0, 2: 0}, {0: 0, 1: 0}, {0: 0}
    first = [opened(sessions, now, t=small) for now in range(2)]
    settled = limits.FETCH_SESSION_EVICTION_MS + 5
    opened(sessions, settled, t=fresh)

    def more(now_ms: int, topics: dict[int, int]) -> FetchSession | None:
        return sessions.open(asked_partitions(request(t=topics), False).values(), False, now_ms)

    for session in first:
        sessions.enter(request(session.key, 1), False, settled)
    assert more(settled, fresh) is None, "smaller than all that are settled"
    assert more(settled, small) is None, "as large as the smallest"
    assert more(settled, large) is not None, "larger than a settled one; the fresh one is smaller but may stay"
    assert len(sessions) == 3
    assert [len(session.partitions) for session in sessions._sessions.values()] == [1, 2, 3]
    assert more(3 * settled, fresh) is not None, "some are stale by now"


def test_the_epoch_wraps_to_one(sessions: FetchSessions) -> None:
    session = opened(sessions, t={0: 0})
    session.epoch = limits.INT32_MAX
    sessions.enter(request(session.key, limits.INT32_MAX), False, 0)
    assert session.epoch == 1


# Partitions of all sessions together


def test_no_session_where_all_hold_too_many_partitions(
    sessions: FetchSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FETCH_SESSIONS_PARTITIONS_MAX", 5)
    opened(sessions, t={0: 0, 1: 0})
    second = opened(sessions, u={0: 0, 1: 0})
    asks = asked_partitions(request(v={0: 0, 1: 0}), False)
    assert sessions.open(asks.values(), False, 0) is None
    sessions.drop(second.key)
    third = sessions.open(asks.values(), False, 0)
    assert third is not None
    with pytest.raises(ApiError) as refused:
        sessions.enter(request(third.key, 1, v={2: 0, 3: 0}), False, 0)
    assert refused.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "its client begins again"
    assert len(sessions) == 1, "nobody is left with a session that lacks partitions"
    opened(sessions, w={0: 0, 1: 0, 2: 0})


def test_idle_sessions_make_way_for_the_partitions_of_others(
    sessions: FetchSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FETCH_SESSIONS_PARTITIONS_MAX", 5)
    opened(sessions, t={0: 0, 1: 0, 2: 0})
    later_ms = limits.FETCH_SESSION_EVICTION_MS + 1
    opened(sessions, later_ms, u={0: 0, 1: 0, 2: 0})
    assert len(sessions) == 1


def test_a_follower_takes_the_place_of_consumers(sessions: FetchSessions, monkeypatch: pytest.MonkeyPatch) -> None:
    def follower(session_id: int, by_id: bool, now_ms: int) -> FetchSession:
        session = FetchSession(session_id, by_id, now_ms)
        session.is_privileged = True
        return session

    monkeypatch.setattr(limits, "FETCH_SESSIONS_PARTITIONS_MAX", 5)
    monkeypatch.setattr(limits, "FETCH_SESSION_PARTITIONS_MAX", 3)
    opened(sessions, t={0: 0, 1: 0, 2: 0})
    assert (
        sessions.open(asked_partitions(request(u=dict.fromkeys(range(4), 0)), False).values(), False, 0, follower)
        is not None
    )
    assert len(sessions) == 1
    assert (
        sessions.open(asked_partitions(request(v=dict.fromkeys(range(2), 0)), False).values(), False, 0, follower)
        is None
    )


@pytest.mark.parametrize("added", [2, 9])
def test_a_consumers_session_that_becomes_too_large_ends(
    sessions: FetchSessions, monkeypatch: pytest.MonkeyPatch, added: int
) -> None:
    monkeypatch.setattr(limits, "FETCH_SESSION_PARTITIONS_MAX", 3)
    assert sessions.open(asked_partitions(request(t=dict.fromkeys(range(4), 0)), False).values(), False, 0) is None
    session = opened(sessions, t={0: 0, 1: 0})
    with pytest.raises(ApiError):
        sessions.enter(request(session.key, 1, u=dict.fromkeys(range(added), 0)), False, 0)
    assert len(sessions) == 0


# Names that no topic can have

TOO_LONG, NOT_ASCII = "t" * (TOPIC_NAME_CHARS_MAX + 1), "t\N{GRINNING FACE}"


@pytest.mark.parametrize("name", [TOO_LONG, NOT_ASCII])
def test_a_session_that_is_given_such_a_name_ends(sessions: FetchSessions, name: str) -> None:
    session = opened(sessions, **{"t" * TOPIC_NAME_CHARS_MAX: {0: 0}})
    assert not is_too_large(request(session.key, 1, u={0: 0}))
    assert is_too_large(request(session.key, 1, **{name: {0: 0}}))
    with pytest.raises(ApiError) as caught:
        sessions.enter(request(session.key, 1, **{name: {0: 0}}), False, 0)
    assert caught.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(sessions) == 0


def test_topics_without_partitions_are_counted_in_slices() -> None:
    asked = request(**{str(number): {} for number in range(2 * limits.ELEMENTS_PER_STEP)})
    assert names_more_than(asked, limits.ELEMENTS_PER_STEP)
    assert len(list(asked_partitions_in_steps(asked, by_id=False))) == 2


def test_a_full_session_table_has_the_memory_that_its_limit_says(
    sessions: FetchSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """340 MB for 500,000 partitions, each of a topic with the longest name."""
    partitions = 2_000
    monkeypatch.setattr(limits, "FETCH_SESSIONS_PARTITIONS_MAX", partitions)
    named = {f"{number:06}" + "t" * (TOPIC_NAME_CHARS_MAX - 6): {0: 0} for number in range(partitions)}
    sent = bytes(compile.encode(request(**named), 12))
    tracemalloc.start()
    asked = compile.decode(FetchRequest, 12, memoryview(sent))
    assert sessions.open(asked_partitions(asked, False).values(), False, 0) is not None
    del asked
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < partitions * 680
