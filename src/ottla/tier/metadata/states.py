"""The states of a remote segment and of the deletion of a partition, and the transitions between them (KIP-405).

    (none) ──▶ COPY_SEGMENT_STARTED ──▶ COPY_SEGMENT_FINISHED ──▶ DELETE_SEGMENT_STARTED ──▶ DELETE_SEGMENT_FINISHED
                        └──────────────────────────────────────────────▲

    (none) ──▶ DELETE_PARTITION_MARKED ──▶ DELETE_PARTITION_STARTED ──▶ DELETE_PARTITION_FINISHED

A transition from a state to itself is valid: a broker that does not know whether its record was written, or the next
leader, writes it again. Everything else is refused with `InvalidTransition`, as Kafka drops such a record. So a copy
whose deletion has begun never becomes readable, whatever the broker that made it writes afterwards.
"""

from __future__ import annotations

from enum import IntEnum


class RemoteMetadataError(ValueError):
    """A record about remote segments cannot be read, or contradicts what is known."""


class InvalidTransition(RemoteMetadataError):
    """A record asks for a state that cannot follow the present one."""


class SegmentState(IntEnum):
    """The states of a remote segment by their numbers in records."""

    COPY_SEGMENT_STARTED = 0
    COPY_SEGMENT_FINISHED = 1
    DELETE_SEGMENT_STARTED = 2
    DELETE_SEGMENT_FINISHED = 3


class PartitionDeleteState(IntEnum):
    """The states of the deletion of a partition's remote segments by their numbers in records."""

    DELETE_PARTITION_MARKED = 0
    DELETE_PARTITION_STARTED = 1
    DELETE_PARTITION_FINISHED = 2


# The states that may follow, beside the state itself. None stands for a segment or a deletion that is not known.
NEXT_OF_SEGMENT: dict[SegmentState | None, tuple[SegmentState, ...]] = {
    None: (SegmentState.COPY_SEGMENT_STARTED,),
    SegmentState.COPY_SEGMENT_STARTED: (SegmentState.COPY_SEGMENT_FINISHED, SegmentState.DELETE_SEGMENT_STARTED),
    SegmentState.COPY_SEGMENT_FINISHED: (SegmentState.DELETE_SEGMENT_STARTED,),
    SegmentState.DELETE_SEGMENT_STARTED: (SegmentState.DELETE_SEGMENT_FINISHED,),
    SegmentState.DELETE_SEGMENT_FINISHED: (),
}
NEXT_OF_DELETION: dict[PartitionDeleteState | None, tuple[PartitionDeleteState, ...]] = {
    None: (PartitionDeleteState.DELETE_PARTITION_MARKED,),
    PartitionDeleteState.DELETE_PARTITION_MARKED: (PartitionDeleteState.DELETE_PARTITION_STARTED,),
    PartitionDeleteState.DELETE_PARTITION_STARTED: (PartitionDeleteState.DELETE_PARTITION_FINISHED,),
    PartitionDeleteState.DELETE_PARTITION_FINISHED: (),
}


def check_segment(before: SegmentState | None, after: SegmentState) -> None:
    """Raise InvalidTransition if a segment in the state `before` cannot get the state `after`."""
    if after is not before and after not in NEXT_OF_SEGMENT[before]:
        raise InvalidTransition(f"a remote segment cannot go from {_name(before)} to {after.name}")


def check_deletion(before: PartitionDeleteState | None, after: PartitionDeleteState) -> None:
    """Raise InvalidTransition if the deletion of a partition cannot go from `before` to `after`."""
    if after is not before and after not in NEXT_OF_DELETION[before]:
        raise InvalidTransition(f"the deletion of a remote partition cannot go from {_name(before)} to {after.name}")


def _name(state: SegmentState | PartitionDeleteState | None) -> str:
    return "nothing" if state is None else state.name
