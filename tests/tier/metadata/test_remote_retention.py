"""Which remote segments are deleted: tables."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from tests.tier.metadata.making import (
    DELETING,
    FINISHED,
    STARTED,
    copied,
    lineage,
    names,
    remote_log,
    segment,
    update,
    uuid,
)

from ottla.tier.metadata.lineage import Lineage
from ottla.tier.metadata.local_retention import UNLIMITED, TierLimits
from ottla.tier.metadata.remote_log import RemoteLog
from ottla.tier.metadata.remote_retention import ExpiryReason, abandoned_copies, expired_remote, size_within

NOW = 10_000
# Four segments of 100 bytes, from two leaders.
LOG = (
    copied("a", 0, 9, (0, 0), newest_ms=1_000),
    copied("b", 10, 19, (0, 10), newest_ms=2_000),
    copied("c", 20, 29, (0, 20), (1, 25), newest_ms=3_000),
    copied("d", 30, 39, (1, 30), newest_ms=4_000),
)
LEADER = lineage((0, 0), (1, 25), end=50)


def expired(
    remote: RemoteLog,
    leader: Lineage = LEADER,
    *,
    ms: int = UNLIMITED,
    size: int = UNLIMITED,
    start: int = 0,
    local: int = 0,
    copying: Collection[str] = (),
) -> tuple[dict[str, str], int | None]:
    """The segments that go, with the reason of each, and the new log start offset."""
    found = expired_remote(
        remote,
        leader,
        TierLimits(retention_ms=ms, retention_bytes=size),
        now_ms=NOW,
        log_start_offset=start,
        local_only_bytes=local,
        being_copied=[uuid(name) for name in copying],
    )
    return {names([each.segment])[0]: each.reason.name for each in found.segments}, found.log_start_offset


def because(reason: ExpiryReason, text: str) -> dict[str, str]:
    return dict.fromkeys(text, reason.name)


@pytest.mark.parametrize(
    ("settings", "gone", "start"),
    [
        ({}, "", None),
        ({"ms": 9_001}, "", None),
        ({"ms": 9_000}, "a", 10),
        ({"ms": 7_000}, "abc", 30),
        ({"ms": 6_000}, "abcd", 40),
        ({"ms": 0}, "abcd", 40),
        ({"ms": NOW + 1}, "", None),  # longer than time has been counted
    ],
)
def test_by_time(settings: dict[str, Any], gone: str, start: int | None) -> None:
    assert expired(remote_log(*LOG), **settings) == (because(ExpiryReason.RETENTION_MS, gone), start)


def test_a_segment_without_timestamps_counts_from_its_record() -> None:
    remote = remote_log(copied("a", 0, 9, newest_ms=-1, told_ms=77))
    assert expired(remote, ms=NOW - 76) == ({}, None)
    assert expired(remote, ms=NOW - 77) == (because(ExpiryReason.RETENTION_MS, "a"), 10)


@pytest.mark.parametrize(
    ("settings", "gone", "start"),
    [
        ({"size": 400}, "", None),
        ({"size": 301}, "", None),  # without the oldest one it would be less than is kept
        ({"size": 300}, "a", 10),
        ({"size": 150}, "ab", 20),
        ({"size": 0}, "abcd", 40),
        ({"size": 400, "local": 100}, "a", 10),
        ({"size": 400, "local": 99}, "", None),
        ({"size": 50, "local": 1_000}, "abcd", 40),
    ],
)
def test_by_size(settings: dict[str, Any], gone: str, start: int | None) -> None:
    assert expired(remote_log(*LOG), **settings) == (because(ExpiryReason.RETENTION_BYTES, gone), start)


def test_by_time_and_size() -> None:
    """What goes by time does not have to go by size, too."""
    assert expired(remote_log(*LOG), ms=9_000, size=300) == ({"a": "RETENTION_MS"}, 10)
    assert expired(remote_log(*LOG), ms=9_000, size=200) == ({"a": "RETENTION_MS", "b": "RETENTION_BYTES"}, 20)


def test_the_first_segment_that_stays_ends_it() -> None:
    """The records of a partition go from its beginning only."""
    later = remote_log(copied("a", 0, 9, newest_ms=9_000), *LOG[1:])
    assert expired(later, ms=5_000) == ({}, None)


def test_below_the_log_start() -> None:
    cut = lineage((0, 20), (1, 25), end=50)
    assert expired(remote_log(*LOG), cut, start=20) == (because(ExpiryReason.BELOW_LOG_START, "ab"), None)
    assert expired(remote_log(*LOG), cut, start=19) == (because(ExpiryReason.BELOW_LOG_START, "a"), None)
    # What is freed with that is not freed again by size.
    assert expired(remote_log(*LOG), cut, start=20, size=200) == (because(ExpiryReason.BELOW_LOG_START, "ab"), None)
    assert expired(remote_log(*LOG), cut, start=20, size=100) == (
        {**because(ExpiryReason.BELOW_LOG_START, "ab"), "c": "RETENTION_BYTES"},
        30,
    )


def test_an_old_history() -> None:
    """All epochs of the segments are below the leader's first one."""
    assert expired(remote_log(*LOG), lineage((1, 35), end=50)) == (because(ExpiryReason.LOST_LINEAGE, "ab"), None)
    assert expired(remote_log(*LOG), lineage((2, 40), end=50)) == (because(ExpiryReason.LOST_LINEAGE, "abcd"), None)
    begun = remote_log(*LOG, segment("e", 40, 49, (1, 40)))
    assert expired(begun, lineage((2, 40), end=50))[0] == because(ExpiryReason.LOST_LINEAGE, "abcde")
    assert expired(begun, lineage((2, 40), end=50), copying="e")[0] == because(ExpiryReason.LOST_LINEAGE, "abcd")


def test_without_a_history_nothing_goes() -> None:
    assert expired(remote_log(*LOG), lineage(end=0), ms=0, size=0, start=50) == ({}, None)


def test_lost_records_do_not_count() -> None:
    """Epoch 2 began at 30 for another leader, by an unclean election: `d` is lost, it counts for nothing."""
    leader = lineage((0, 0), (1, 25), (2, 30), end=60)
    remote = remote_log(*LOG, copied("e", 30, 44, (2, 30), newest_ms=1_500))
    assert size_within(remote, leader) == 400
    assert expired(remote, leader, size=400) == ({}, None)
    assert expired(remote, leader, ms=6_000)[0] == because(ExpiryReason.RETENTION_MS, "abce")


def test_unfinished_deletions_are_finished_wherever_they_are() -> None:
    remote = remote_log(*LOG)
    remote.apply(update("c", DELETING))
    assert expired(remote) == (because(ExpiryReason.DELETION_UNFINISHED, "c"), None)
    assert size_within(remote, LEADER) == 300


def test_copies_that_were_replaced() -> None:
    """They go at once, and do not count for the size."""
    remote = remote_log(*LOG, copied("e", 10, 29, (0, 10), (1, 25), size=200))
    assert names(remote.replaced()) == ["b", "c"]
    assert size_within(remote, LEADER) == 400
    assert expired(remote, size=400) == (because(ExpiryReason.REPLACED, "bc"), None)


def test_a_copy_that_is_being_made_ends_it() -> None:
    remote = remote_log(LOG[0], segment("e", 10, 19, (0, 10)), LOG[2])
    assert expired(remote, ms=0, copying="e") == (because(ExpiryReason.RETENTION_MS, "a"), 10)
    assert expired(remote, ms=0) == (because(ExpiryReason.RETENTION_MS, "ac"), 30), "the leader before it made that one"


def test_copies_that_were_abandoned() -> None:
    remote = remote_log(
        segment("a", 0, 9, told_ms=9_000),
        segment("b", 0, 9, told_ms=9_001),
        segment("c", 0, 9, told_ms=0, state=FINISHED),
        segment("d", 0, 9, told_ms=0),
        segment("e", 0, 9, told_ms=0, state=DELETING),
    )
    found = abandoned_copies(remote, now_ms=NOW, grace_ms=1_000, being_copied=[uuid("d")])
    assert [(names([each.segment])[0], each.reason) for each in found] == [("a", ExpiryReason.COPY_UNFINISHED)]
    assert found[0].segment.state is STARTED


def test_a_segment_of_several_epochs_goes_once() -> None:
    found = expired_remote(
        remote_log(*LOG),
        LEADER,
        TierLimits(retention_ms=0, retention_bytes=UNLIMITED),
        now_ms=NOW,
        log_start_offset=0,
        local_only_bytes=0,
    )
    assert names(each.segment for each in found.segments) == ["a", "b", "c", "d"]
