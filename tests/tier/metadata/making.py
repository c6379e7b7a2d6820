"""Segments and records for tests, and the strategies that draw them."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from ottla.model.ids import LeaderEpoch
from ottla.tier.metadata.lineage import Lineage
from ottla.tier.metadata.remote_log import RemoteLog
from ottla.tier.metadata.segment import (
    EpochStarts,
    PartitionDeletion,
    RemoteLogEvent,
    RemoteSegmentMetadata,
    SegmentUpdate,
    TopicIdPartition,
)
from ottla.tier.metadata.states import PartitionDeleteState, SegmentState

STARTED = SegmentState.COPY_SEGMENT_STARTED
FINISHED = SegmentState.COPY_SEGMENT_FINISHED
DELETING = SegmentState.DELETE_SEGMENT_STARTED
DELETED = SegmentState.DELETE_SEGMENT_FINISHED

PARTITION = TopicIdPartition("orders", b"\x11" * 16, 3)


def uuid(name: str) -> bytes:
    """The UUID of the segment that a test calls by this name."""
    return name.encode().rjust(16, b"\x01")


def names(segments: Iterable[RemoteSegmentMetadata]) -> list[str]:
    """The names of segments, in their order."""
    return [segment.uuid.lstrip(b"\x01").decode() for segment in segments]


def epochs(pairs: Iterable[tuple[int, int]]) -> EpochStarts:
    return tuple((LeaderEpoch(epoch), start) for epoch, start in pairs)


def segment(
    name: str,
    start: int,
    end: int,
    *starts: tuple[int, int],
    state: SegmentState = STARTED,
    size: int = 100,
    newest_ms: int = 0,
    told_ms: int = 0,
    txn_index_empty: bool = False,
) -> RemoteSegmentMetadata:
    """A segment; its leader epochs are (epoch, start offset), and all of it is of epoch 0 if there are none."""
    return RemoteSegmentMetadata(
        partition=PARTITION,
        uuid=uuid(name),
        start_offset=start,
        end_offset=end,
        max_timestamp_ms=newest_ms,
        broker_id=1,
        event_timestamp_ms=told_ms,
        size_bytes=size,
        leader_epochs=epochs(starts or ((0, start),)),
        state=state,
        txn_index_empty=txn_index_empty,
    )


def update(name: str, state: SegmentState, broker_id: int = 1) -> SegmentUpdate:
    return SegmentUpdate(PARTITION, uuid(name), broker_id, 77, state)


def deletion(state: PartitionDeleteState) -> PartitionDeletion:
    return PartitionDeletion(PARTITION, 1, 77, state)


def remote_log(*segments: RemoteSegmentMetadata) -> RemoteLog:
    """The log of segments that came in this order, each with the states up to its own."""
    remote = RemoteLog(PARTITION)
    for each in segments:
        for event in history(each):
            remote.apply(event)
    return remote


def history(segment: RemoteSegmentMetadata) -> list[RemoteLogEvent]:
    """The records that lead to a segment of this state."""
    name = names([segment])[0]
    first = RemoteSegmentMetadata(
        **{field: getattr(segment, field) for field in segment.__slots__ if field != "state"}, state=STARTED
    )
    return [first, *(update(name, state) for state in SegmentState if STARTED < state <= segment.state)]


def copied(name: str, start: int, end: int, *starts: tuple[int, int], **fields: int) -> RemoteSegmentMetadata:
    """A segment whose copy is finished; `fields` are size, newest_ms and told_ms."""
    return segment(name, start, end, *starts, state=FINISHED, **fields)  # type: ignore[arg-type]


def lineage(*entries: tuple[int, int], end: int) -> Lineage:
    return Lineage(epochs(entries), end)


INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
OFFSET = st.integers(0, 2**63 - 1)
UUIDS = st.binary(min_size=16, max_size=16)
PARTITIONS = st.builds(TopicIdPartition, st.text(max_size=20), UUIDS, st.integers(0, 2**31 - 1))
CUSTOM = st.none() | st.binary(max_size=40)
EPOCHS = st.dictionaries(st.integers(0, 2**31 - 1), OFFSET, min_size=1, max_size=5)


@st.composite
def any_segment(draw: st.DrawFn, state: st.SearchStrategy[SegmentState] | None = None) -> RemoteSegmentMetadata:
    start = draw(OFFSET)
    return RemoteSegmentMetadata(
        partition=draw(PARTITIONS),
        uuid=draw(UUIDS),
        start_offset=start,
        end_offset=draw(st.integers(start, 2**63 - 1)),
        max_timestamp_ms=draw(INT64),
        broker_id=draw(INT32),
        event_timestamp_ms=draw(INT64),
        size_bytes=draw(INT32),
        leader_epochs=epochs(sorted(draw(EPOCHS).items())),
        state=draw(state or st.sampled_from(SegmentState)),
        custom_metadata=draw(CUSTOM),
        txn_index_empty=draw(st.booleans()),
    )


ANY_UPDATE = st.builds(SegmentUpdate, PARTITIONS, UUIDS, INT32, INT64, st.sampled_from(SegmentState), CUSTOM)
ANY_DELETION = st.builds(PartitionDeletion, PARTITIONS, INT32, INT64, st.sampled_from(PartitionDeleteState))
ANY_EVENT: st.SearchStrategy[RemoteLogEvent] = st.one_of(any_segment(), ANY_UPDATE, ANY_DELETION)
