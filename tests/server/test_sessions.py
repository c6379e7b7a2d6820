"""Fetch sessions (KIP-227): what is remembered, what is told, who is evicted."""

from __future__ import annotations

import random

import pytest

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.sessions import Sessions
from ottla.wire.messages.fetch import FetchRequest, FetchResponse

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


@pytest.fixture
def sessions() -> Sessions:
    return Sessions(3, random.Random(1))


def test_a_full_fetch_opens_a_session_and_increments_change_it(sessions: Sessions) -> None:
    session = sessions.open(request(t={0: 1, 1: 2}), False, 0)
    assert session is not None
    assert [wanted.ask.fetch_offset for wanted in session.wanted.values()] == [1, 2]
    again = sessions.open(request(session.id, 1, t={1: 9, 2: 3}, forget=(0,)), False, 1)
    assert again is session
    assert {key: wanted.ask.fetch_offset for key, wanted in session.wanted.items()} == {("t", 1): 9, ("t", 2): 3}
    assert sessions.open(request(session.id, 2), False, 2) is session


def test_without_topics_or_with_the_final_epoch_there_is_no_session(sessions: Sessions) -> None:
    assert sessions.open(request(), False, 0) is None
    assert sessions.open(request(epoch=-1, t={0: 0}), False, 0) is None
    session = sessions.open(request(t={0: 0}), False, 0)
    assert session is not None
    assert sessions.open(request(session.id, -1), False, 0) is None
    assert len(sessions) == 0


@pytest.mark.parametrize(
    ("session_offset", "epoch", "by_id", "code"),
    [
        (1, 1, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (0, 2, False, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (0, 1, True, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_mismatches_are_refused(
    sessions: Sessions, session_offset: int, epoch: int, by_id: bool, code: ErrorCode
) -> None:
    session = sessions.open(request(t={0: 0}), False, 0)
    assert session is not None
    with pytest.raises(ApiError) as refused:
        sessions.open(request(session.id + session_offset, epoch), by_id, 0)
    assert refused.value.code == code


def test_only_news_is_told(sessions: Sessions) -> None:
    session = sessions.open(request(t={0: 0}), False, 0)
    assert session is not None
    (wanted,) = session.wanted.values()
    assert wanted.news(data(5))
    assert not wanted.news(data(5))
    assert wanted.news(data(6))
    assert wanted.news(data(6, records=b"x"))
    assert wanted.news(data(error=3))
    assert wanted.news(data(6)), "after an error the next good answer is news"
    assert not wanted.news(data(6))


def test_who_got_data_goes_to_the_end_of_the_line(sessions: Sessions) -> None:
    session = sessions.open(request(t={0: 0, 1: 0, 2: 0}), False, 0)
    assert session is not None
    session.served(session.wanted["t", 0])
    assert [index for _, index in session.wanted] == [1, 2, 0]


def test_a_full_table_gives_way_only_to_the_stale_or_the_smaller(sessions: Sessions) -> None:
    opened = [sessions.open(request(t={0: 0, 1: 0}), False, now) for now in range(3)]
    assert all(opened)
    assert sessions.open(request(t={0: 0, 1: 0, 2: 0}), False, 10) is None, "all are fresh"
    settled = limits.FETCH_SESSION_EVICTION_MS + 5
    for session in opened:
        assert session is not None
        sessions.open(request(session.id, 1), False, settled)
    assert sessions.open(request(t={0: 0}), False, settled) is None, "smaller than all that are there"
    assert sessions.open(request(t={0: 0, 1: 0, 2: 0}), False, settled) is not None, "larger than a settled one"
    assert sessions.open(request(t={0: 0}), False, 3 * settled) is not None, "some are stale by now"
    assert len(sessions) == 3


def test_the_epoch_wraps_to_one(sessions: Sessions) -> None:
    session = sessions.open(request(t={0: 0}), False, 0)
    assert session is not None
    session.epoch = limits.INT32_MAX
    sessions.open(request(session.id, limits.INT32_MAX), False, 0)
    assert session.epoch == 1
