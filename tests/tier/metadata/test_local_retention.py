"""Which local segments may go: a table."""

from __future__ import annotations

import pytest

from ottla.tier.metadata.copying import LocalSegment, newest_of
from ottla.tier.metadata.local_retention import AS_TOPIC, UNLIMITED, LocalOffsets, TierLimits, expired_local

NOW = 10_000
# Three closed segments and the active one: (base offset, bytes, newest timestamp).
LOG = [
    LocalSegment(0, 100, 1_000),
    LocalSegment(10, 100, 2_000),
    LocalSegment(20, 100, 3_000),
    LocalSegment(30, 50, 9_000),
]


def limits(ms: int = AS_TOPIC, size: int = AS_TOPIC, **others: int) -> TierLimits:
    return TierLimits(
        **{"retention_ms": UNLIMITED, "retention_bytes": UNLIMITED, **others},  # type: ignore[arg-type]
        local_retention_ms=ms,
        local_retention_bytes=size,
    )


def offsets(copied: int, high_watermark: int = 35, start: int = 0, local_start: int = 0) -> LocalOffsets:
    return LocalOffsets(start, local_start, copied, high_watermark, 35)


@pytest.mark.parametrize(
    ("limits", "offsets", "count", "closes"),
    [
        # By time: the segment's newest record is older than the retention.
        (limits(ms=9_000), offsets(29), 0, False),
        (limits(ms=8_999), offsets(29), 1, False),
        (limits(ms=5_000), offsets(29), 3, False),
        (limits(ms=5_000), offsets(19), 2, False),  # not copied yet: it stays
        (limits(ms=5_000), offsets(18), 1, False),  # ... also if one record is missing
        (limits(ms=5_000), offsets(-1), 0, False),
        (limits(ms=0), offsets(29), 3, True),  # the active one is closed, to be copied
        (limits(ms=0), offsets(29, high_watermark=34), 3, False),
        (limits(ms=0), offsets(29, high_watermark=29), 2, False),
        (limits(ms=UNLIMITED), offsets(29), 0, False),
        # By size, 350 in all.
        (limits(size=350), offsets(29), 0, False),
        (limits(size=251), offsets(29), 0, False),  # without the oldest one it would be less than is kept
        (limits(size=250), offsets(29), 1, False),
        (limits(size=60), offsets(29), 2, False),
        (limits(size=60), offsets(9), 1, False),
        (limits(size=0), offsets(29), 3, True),
        # -2: what holds for the topic.
        (limits(retention_ms=5_000), offsets(29), 3, False),
        (limits(retention_bytes=250), offsets(29), 1, False),
        (limits(ms=UNLIMITED, retention_ms=5_000), offsets(29), 0, False),
        (limits(), offsets(29), 0, False),
        # Nothing is copied any more: the topic's retention, without copies.
        (limits(ms=0, copies=False, retention_ms=7_500), offsets(-1), 2, False),
        (limits(size=0, copies=False, retention_bytes=250), offsets(-1), 1, False),
        # Below the log start offset nothing has to be copied, and no retention is asked for.
        (limits(), offsets(-1, start=20, local_start=20), 2, False),
        (limits(), offsets(-1, start=19, local_start=19), 1, False),
        (limits(), offsets(9, start=0, local_start=10), 1, False),
        (limits(), offsets(8, start=0, local_start=10), 0, False),
        (limits(deletes=False, ms=0, size=0), offsets(29, start=10, local_start=10), 1, False),
    ],
)
def test_segments(limits: TierLimits, offsets: LocalOffsets, count: int, closes: bool) -> None:
    assert expired_local(LOG, limits, offsets, now_ms=NOW) == (count, closes)


def test_an_empty_active_segment_is_left_alone() -> None:
    log = [*LOG[:3], LocalSegment(30, 0, 3_000)]
    assert expired_local(log, limits(ms=0), LocalOffsets(0, 0, 29, 30, 30), now_ms=NOW) == (3, False)
    assert expired_local([], limits(ms=0), LocalOffsets(0, 0, -1, 0, 0), now_ms=NOW) == (0, False)


@pytest.mark.parametrize(("created_ms", "count"), [(4_999, 1), (5_000, 0)])
def test_a_segment_without_timestamps_counts_from_its_creation(created_ms: int, count: int) -> None:
    log = [LocalSegment(0, 100, newest_of(-1, created_ms)), *LOG[1:]]
    assert expired_local(log, limits(ms=5_000), offsets(9), now_ms=NOW) == (count, False)
    assert newest_of(0, created_ms) == 0, "0 is a timestamp"
