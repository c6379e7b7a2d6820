"""Which local segments are copied next: a table."""

from __future__ import annotations

import pytest

from ottla.tier.metadata.copying import LocalSegment, local_only_bytes, segments_to_copy

# Three closed segments and the active one.
LOG = [LocalSegment(base, size, 0) for base, size in ((0, 100), (10, 200), (20, 300), (30, 50))]


@pytest.mark.parametrize(
    ("copied_through", "log_start", "last_stable", "copied"),
    [
        (-1, 0, 35, [(0, 9), (10, 19), (20, 29)]),  # never the active one
        (-1, 0, 30, [(0, 9), (10, 19), (20, 29)]),  # the last stable offset is the first that is not stable
        (-1, 0, 29, [(0, 9), (10, 19)]),
        (-1, 0, 9, []),
        (-1, 0, 0, []),
        (9, 0, 35, [(10, 19), (20, 29)]),
        (29, 0, 35, []),
        (14, 0, 35, [(10, 19), (20, 29)]),  # another leader's copy ended in the middle: the segment is copied whole
        (-1, 12, 35, [(10, 19), (20, 29)]),  # DeleteRecords: what is below is not copied
        (9, 25, 35, [(20, 29)]),
        (99, 0, 35, []),
    ],
)
def test_segments(copied_through: int, log_start: int, last_stable: int, copied: list[tuple[int, int]]) -> None:
    chosen = segments_to_copy(
        LOG, copied_through=copied_through, log_start_offset=log_start, last_stable_offset=last_stable
    )
    assert [(each.segment.base_offset, each.end_offset) for each in chosen] == copied


def test_a_log_with_one_segment_has_nothing_to_copy() -> None:
    assert segments_to_copy(LOG[:1], copied_through=-1, log_start_offset=0, last_stable_offset=9) == []
    assert segments_to_copy([], copied_through=-1, log_start_offset=0, last_stable_offset=9) == []


@pytest.mark.parametrize(("copied_through", "size"), [(-1, 650), (9, 550), (14, 350), (29, 50), (35, 0)])
def test_bytes_that_are_local_alone(copied_through: int, size: int) -> None:
    assert local_only_bytes(LOG, copied_through=copied_through) == size
