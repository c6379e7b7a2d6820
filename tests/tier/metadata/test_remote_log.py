"""The segments of one partition: which are read, which are kept for their deletion, what is refused; and their size in
memory.
"""

from __future__ import annotations

import tracemalloc

import pytest
from tests.tier.metadata.making import (
    DELETED,
    DELETING,
    FINISHED,
    PARTITION,
    STARTED,
    copied,
    deletion,
    names,
    remote_log,
    segment,
    update,
    uuid,
)

from ottla.model.ids import LeaderEpoch
from ottla.tier.metadata.records import decode, encode
from ottla.tier.metadata.remote_log import RemoteLog, UnknownRemoteSegment
from ottla.tier.metadata.states import InvalidTransition, PartitionDeleteState, RemoteMetadataError

ZERO, ONE = LeaderEpoch(0), LeaderEpoch(1)
SEGMENTS = 5_000
BYTES_PER_SEGMENT_MAX = 700


def read(remote: RemoteLog, *offsets: int, epoch: LeaderEpoch = ZERO) -> str:
    """The names of the segments that are read for offsets; a dot where there is none."""
    found = [remote.segment_at(epoch, offset) for offset in offsets]
    return "".join(names([it])[0] if it else "." for it in found)


@pytest.mark.parametrize(
    ("state", "is_read", "listed", "highest"),
    [(STARTED, ".", "a", None), (FINISHED, "a", "a", 9), (DELETING, ".", "a", 9), (DELETED, ".", "", 9)],
)
def test_each_state(state: object, is_read: str, listed: str, highest: int | None) -> None:
    remote = remote_log(segment("a", 0, 9))
    for each in (FINISHED, DELETING, DELETED):
        if state is not STARTED and each <= state:  # type: ignore[operator]
            remote.apply(update("a", each))
    assert read(remote, 5) == is_read
    assert "".join(names(remote.segments())) == "".join(names(remote.segments_of(ZERO))) == listed
    assert remote.highest_offset(ZERO) == highest
    assert remote.finished_bytes == (100 if state is FINISHED else 0)
    assert (uuid("a") in remote) is bool(listed) is bool(len(remote))


@pytest.mark.parametrize(
    ("segments", "by_offset", "replaced"),
    [
        # One after the other.
        ([(0, 9), (10, 19), (20, 29)], {0: "a", 9: "a", 10: "b", 29: "c", 30: "."}, ""),
        ([(20, 29), (0, 9)], {0: "b", 10: ".", 25: "a"}, ""),
        # The next leader copied the same offsets in larger segments (Kafka's cases).
        ([(0, 100), (0, 200)], {0: "b", 150: "b"}, "a"),
        ([(10, 90), (5, 100), (101, 200)], {9: "b", 95: "b", 150: "c"}, "a"),
        ([(0, 9), (10, 19), (20, 29), (0, 29)], {0: "d", 15: "d", 29: "d"}, "abc"),
        # The same again: the later one.
        ([(0, 9), (0, 9)], {0: "b"}, "a"),
        # A copy of an earlier leader is finished late and ends lower. Kafka loses what only the larger one has.
        ([(0, 200), (0, 100)], {50: "a", 150: "a"}, "b"),
        ([(0, 200), (50, 100)], {50: "a", 70: "a", 150: "a"}, "b"),
        ([(0, 200), (50, 200)], {0: "a", 50: "b", 150: "b"}, ""),
        # Each has offsets that the other has not.
        ([(0, 100), (50, 150)], {0: "a", 50: "b", 150: "b"}, ""),
        ([(50, 150), (0, 100)], {0: "b", 50: "a", 101: "a"}, ""),
        ([(0, 100), (101, 200), (0, 150)], {0: "c", 120: "b", 180: "b"}, "a"),
    ],
)
def test_copies_of_the_same_offsets(segments: list[tuple[int, int]], by_offset: dict[int, str], replaced: str) -> None:
    remote = remote_log(*(copied(name, *range_) for name, range_ in zip("abcd", segments, strict=False)))
    assert {offset: read(remote, offset) for offset in by_offset} == by_offset
    assert "".join(names(remote.replaced())) == replaced
    listed = list(remote.segments_of(ZERO))
    assert sorted(names(listed)) == names(remote.segments())
    assert [it.start_offset for it in listed] == sorted(it.start_offset for it in listed)


def test_epochs_are_kept_apart() -> None:
    remote = remote_log(copied("a", 0, 29, (0, 0), (1, 20)), copied("b", 10, 39, (1, 10)))
    assert read(remote, 0, 19, 20) == "aa."
    assert read(remote, 9, 10, 25, 39, epoch=ONE) == ".bbb"
    assert (remote.highest_offset(ZERO), remote.highest_offset(ONE), remote.highest_offset(LeaderEpoch(2))) == (
        19,
        39,
        None,
    )
    assert names(remote.segments_of(ONE)) == ["a", "b"]
    assert names(remote.replaced()) == [], "`a` is read for epoch 0"
    assert names(remote.unread()) == []


def test_an_epoch_without_records() -> None:
    remote = remote_log(copied("a", 0, 29, (0, 0), (1, 20), (2, 20)))
    assert read(remote, 19, 20, epoch=ONE) == ".."
    assert remote.highest_offset(ONE) == 19, "as in Kafka"
    assert names(remote.segments_of(ONE)) == ["a"]
    remote.apply(update("a", DELETING))
    remote.apply(update("a", DELETED))
    assert not len(remote) and not list(remote.segments_of(ONE))


def test_what_replaced_a_segment_may_be_deleted_before_it() -> None:
    remote = remote_log(copied("a", 0, 9), copied("b", 0, 19))
    for state in (DELETING, DELETED):
        remote.apply(update("b", state))
        assert read(remote, 5) == ".", "`a` may be deleted at any time"
    assert names(remote.replaced()) == ["a"]


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (segment("b", 0, 9, state=FINISHED), InvalidTransition),
        (segment("a", 0, 9), InvalidTransition),  # it is finished
        (update("a", STARTED), InvalidTransition),
        (update("a", DELETED), InvalidTransition),
        (update("c", FINISHED), InvalidTransition),  # its deletion has begun
        (update("z", FINISHED), UnknownRemoteSegment),
        (deletion(PartitionDeleteState.DELETE_PARTITION_STARTED), InvalidTransition),
        (update("a", DELETING)._replace(partition=PARTITION._replace(partition=9)), RemoteMetadataError),
    ],
)
def test_refused(event: object, error: type[Exception]) -> None:
    remote = remote_log(copied("a", 0, 9), segment("c", 10, 19, state=DELETING))
    before = [*remote.segments()], read(remote, 0, 10), remote.finished_bytes, remote.deletion
    with pytest.raises(error):
        remote.apply(event)  # type: ignore[arg-type]
    assert before == ([*remote.segments()], read(remote, 0, 10), remote.finished_bytes, remote.deletion)


def test_told_twice() -> None:
    """A broker that does not know whether its record was written writes it again."""
    remote = remote_log(segment("a", 0, 9, (0, 0)))
    remote.apply(segment("a", 0, 9, (1, 0)))
    assert names(remote.segments_of(ZERO)) == [] and names(remote.segments_of(ONE)) == ["a"]
    for _ in range(2):
        remote.apply(update("a", FINISHED, broker_id=7))
        assert read(remote, 5, epoch=ONE) == "a" and remote.finished_bytes == 100
    assert remote[uuid("a")].broker_id == 7 and remote[uuid("a")].event_timestamp_ms == 77
    for _ in range(2):
        remote.apply(update("a", DELETING))
    remote.apply(update("a", DELETED))
    with pytest.raises(UnknownRemoteSegment):
        remote.apply(update("a", DELETED))


def test_the_deletion_of_the_partition() -> None:
    remote = remote_log(copied("a", 0, 9))
    for state in PartitionDeleteState:
        remote.apply(deletion(state))
        assert remote.deletion is state
    assert names(remote.segments()) == ["a"], "each segment has its own records"


def test_memory() -> None:
    """Measured with records as they are read from the topic: what they share is shared."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        remote = RemoteLog(PARTITION)
        for number in range(SEGMENTS):
            start = 1_000_000 * number
            name = f"{number:x}"
            told = segment(
                name, start, start + 999_999, (7, start), size=1 << 30, newest_ms=10**12 + number, told_ms=10**12
            )
            for event in (told, update(name, FINISHED)):
                remote.apply(decode(encode(event)))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    per_segment = (after - before) / SEGMENTS
    print(f"{per_segment:.0f} bytes per segment")
    assert len(remote) == SEGMENTS
    assert per_segment < BYTES_PER_SEGMENT_MAX
