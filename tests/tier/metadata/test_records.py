"""Records of the metadata topic: there and back, what is refused. `test_kafka.py` compares with Kafka's serde."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.tier.metadata.making import ANY_EVENT, PARTITION, any_segment, deletion, segment, update, uuid

from ottla.tier.metadata.records import decode, decode_snapshot, encode, encode_snapshot
from ottla.tier.metadata.segment import RemoteLogEvent, RemoteSegmentMetadata
from ottla.tier.metadata.states import PartitionDeleteState, RemoteMetadataError, SegmentState

OWNER = "076f7264657273" + "11" * 16 + "00000003" + "00"  # orders, its id, partition 3, no tags


@given(ANY_EVENT)
def test_there_and_back(event: RemoteLogEvent) -> None:
    value = encode(event)
    assert decode(value) == event
    assert decode(memoryview(value)) == event


@given(any_segment())
def test_a_snapshot_there_and_back(found: RemoteSegmentMetadata) -> None:
    assert decode_snapshot(encode_snapshot(found), found.partition) == found


TOLD = "00000001" + "000000000000004d"  # broker 1, at 77
TIMES = ["00000001", f"{8:016x}", f"{77:016x}"]
EPOCHS = ["02", "00000002", f"{5:016x}", "00"]  # one entry, in the compact form
COPIED = ["01 00 00", OWNER, uuid("a").hex(), "00", f"{5:016x}", f"{9:016x}", *TIMES, *EPOCHS, f"{7:08x}"]


@pytest.mark.parametrize(
    ("event", "value"),
    [
        (deletion(PartitionDeleteState.DELETE_PARTITION_STARTED), ["01 02 00", OWNER, TOLD, "01 00"]),
        (update("a", SegmentState.COPY_SEGMENT_FINISHED), ["01 01 00", OWNER, uuid("a").hex(), "00", TOLD, "00 01 00"]),
        (
            segment("a", 5, 9, (2, 5), size=7, newest_ms=8, told_ms=77),
            [*COPIED, "00 00 00"],
        ),
        (
            segment("a", 5, 9, (2, 5), size=7, newest_ms=8, told_ms=77, txn_index_empty=True),
            [*COPIED, "00 00 01 00 01 01"],
        ),
    ],
    ids=["deletion", "update", "segment", "tagged"],
)
def test_bytes(event: RemoteLogEvent, value: list[str]) -> None:
    """A frame version, a type, a version; flexible fields, each struct with tags of its own."""
    assert encode(event) == bytes.fromhex("".join(value))


def test_epochs_come_in_any_order_and_share_the_segments_integer() -> None:
    """There are very many segments: most have one epoch, which begins where they do."""
    found = decode(encode(segment("a", 5_000_000, 6_000_000, (4, 5_000_000), (7, 5_500_000))))
    assert isinstance(found, RemoteSegmentMetadata)
    assert found.leader_epochs == ((4, 5_000_000), (7, 5_500_000))
    assert found.leader_epochs[0][1] is found.start_offset


WHOLE = encode(segment("a", 0, 9, (0, 0), (1, 4)))


@pytest.mark.parametrize("length", range(len(WHOLE)))
def test_a_part_of_a_record_is_refused(length: int) -> None:
    with pytest.raises(RemoteMetadataError):
        decode(WHOLE[:length])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"\0" + WHOLE[1:], "frame version 0"),
        (b"\2" + WHOLE[1:], "frame version 2"),
        (b"\1\4\0", "type 4"),
        (b"\1\0\1" + WHOLE[3:], "not 1"),
        (WHOLE + b"\0", "too many"),
        (encode_snapshot(segment("a", 0, 9)), "not a record of the metadata topic"),
        (encode(segment("a", 0, 9)).replace(b"\x64\0\0\0", b"\x64\0\4\0"), "unknown state 4"),
    ],
    ids=["frame 0", "frame 2", "type", "version", "longer", "snapshot", "state"],
)
def test_refused(value: bytes, words: str) -> None:
    with pytest.raises(RemoteMetadataError, match=words):
        decode(value)


def test_a_record_of_a_topic_is_no_snapshot() -> None:
    with pytest.raises(RemoteMetadataError, match="not a record of a snapshot"):
        decode_snapshot(WHOLE, PARTITION)


@pytest.mark.parametrize(
    ("start", "end", "starts"),
    [(-1, 5, ((0, 0),)), (6, 5, ((0, 6),)), (0, 5, ((2, 0), (1, 3))), (0, 5, ((1, 0), (1, 3)))],
)
def test_impossible_segments(start: int, end: int, starts: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(RemoteMetadataError):
        segment("a", start, end, *starts)
