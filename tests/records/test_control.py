"""Control records: markers byte for byte as Java writes them, and keys of every kind."""

import pytest
from tests.records import golden

from ottla.model.errors import ApiError
from ottla.records.batch import check, read_header
from ottla.records.build import build_batch
from ottla.records.control import (
    ControlType,
    EndTxnMarker,
    control_batch,
    control_key,
    control_type,
    end_txn_batch,
    end_txn_marker,
    read_marker,
)
from ottla.records.record import Record, records


def test_markers_are_javas_bytes() -> None:
    batch = end_txn_batch(
        EndTxnMarker(commit=True, coordinator_epoch=12),
        producer_id=4000,
        producer_epoch=3,
        timestamp=1_700_000_000_000,
        base_offset=77,
        leader_epoch=4,
    )
    assert batch == golden.COMMIT
    header = read_header(batch)
    assert header.is_control
    assert header.is_transactional
    assert read_marker(golden.COMMIT) == (True, 12)


def test_abort_marker_round_trip() -> None:
    batch = end_txn_batch(EndTxnMarker(False, 3), producer_id=1, producer_epoch=2, timestamp=5)
    assert read_marker(b"xxx" + batch, 3) == EndTxnMarker(False, 3)


def test_other_kinds_are_no_markers() -> None:
    batch = control_batch([(ControlType.LEADER_CHANGE, b"\x00\x00"), (ControlType.KRAFT_VERSION, b"v")], timestamp=9)
    header = read_header(batch)
    check(batch, 0, header)
    assert header.is_control
    assert not header.is_transactional
    assert [control_type(record.key) for record in records(batch)] == [
        ControlType.LEADER_CHANGE,
        ControlType.KRAFT_VERSION,
    ]
    assert read_marker(batch) is None
    assert read_marker(build_batch([], control=True, last_offset_delta=0)) is None


def test_keys() -> None:
    for kind in ControlType:
        assert control_type(control_key(kind)) is kind
    assert control_type(b"\x00\x01\x00\x63and more") is ControlType.UNKNOWN
    for key in (None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x00"):
        with pytest.raises(ApiError):
            control_type(key)


@pytest.mark.parametrize("value", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x00\x00\x01"])
def test_damaged_markers(value: bytes | None) -> None:
    with pytest.raises(ApiError):
        end_txn_marker(Record(0, 0, control_key(ControlType.ABORT), value))
