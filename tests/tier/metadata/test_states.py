"""The transitions of remote segments and of the deletion of partitions."""

import pytest

from ottla.tier.metadata.states import (
    InvalidTransition,
    PartitionDeleteState,
    SegmentState,
    check_deletion,
    check_segment,
)

SEGMENTS = {
    (None, "COPY_SEGMENT_STARTED"),
    ("COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED"),
    ("COPY_SEGMENT_STARTED", "DELETE_SEGMENT_STARTED"),
    ("COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED"),
    ("DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED"),
}
DELETIONS = {
    (None, "DELETE_PARTITION_MARKED"),
    ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED"),
    ("DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED"),
}


@pytest.mark.parametrize("after", SegmentState)
@pytest.mark.parametrize("before", [None, *SegmentState])
def test_segments(before: SegmentState | None, after: SegmentState) -> None:
    if before is after or (before.name if before is not None else None, after.name) in SEGMENTS:
        check_segment(before, after)
        return
    with pytest.raises(InvalidTransition, match=f"to {after.name}$"):
        check_segment(before, after)


@pytest.mark.parametrize("after", PartitionDeleteState)
@pytest.mark.parametrize("before", [None, *PartitionDeleteState])
def test_deletions(before: PartitionDeleteState | None, after: PartitionDeleteState) -> None:
    if before is after or (before.name if before is not None else None, after.name) in DELETIONS:
        check_deletion(before, after)
        return
    with pytest.raises(InvalidTransition, match=f"to {after.name}$"):
        check_deletion(before, after)
