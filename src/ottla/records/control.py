"""Control records: records that brokers and controllers write between the data of a log, and that consumers never see.

The key names the kind (version i16, type i16); the value is one message of that kind. End-of-transaction markers are
read on the hot path of followers and recovery, so their few bytes are decoded here; the other kinds are `wire` messages
(`wire.journal.control`), where their fields are declared.

Rules: a transaction marker is alone in its batch, and control batches are never compressed.
"""

from enum import IntEnum
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from ottla.model.ids import NO_LEADER_EPOCH, LeaderEpoch, ProducerEpoch, ProducerId
from ottla.records.batch import NO_SEQUENCE, Buffer
from ottla.records.build import build_batch
from ottla.records.record import NO_OFFSET, Record, invalid, records


class ControlType(IntEnum):
    """Kinds of control records; an unknown number becomes UNKNOWN and must be ignored."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_KEY = Struct(">hh")
_END_TXN = Struct(">hi")
_KINDS = {int(kind): kind for kind in ControlType}


class EndTxnMarker(NamedTuple):
    """The marker that ends one producer's transaction in this partition."""

    commit: bool
    coordinator_epoch: int


def control_key(kind: ControlType, version: int = 0) -> bytes:
    return _KEY.pack(version, kind)


def control_type(key: bytes | None) -> ControlType:
    """Return the kind that a control record's key names. Raises `ApiError` if it is no control record's key."""
    if key is None or len(key) < _KEY.size:
        raise invalid(f"A control record's key has {_KEY.size} bytes, not {0 if key is None else len(key)}")
    version, kind = _KEY.unpack_from(key)
    if version < 0:
        raise invalid(f"Invalid version {version} of a control record's key")
    return _KINDS.get(kind, ControlType.UNKNOWN)


def control_batch(
    entries: list[tuple[ControlType, bytes]],
    *,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: LeaderEpoch = NO_LEADER_EPOCH,
) -> bytearray:
    """Build a control batch of the controllers' kinds: each entry is a kind and its encoded message."""
    found = [Record(NO_OFFSET, timestamp, control_key(kind), value) for kind, value in entries]
    return build_batch(found, base_offset=base_offset, leader_epoch=leader_epoch, control=True)


def end_txn_batch(
    marker: EndTxnMarker,
    *,
    producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: LeaderEpoch = NO_LEADER_EPOCH,
) -> bytearray:
    """Build the batch that ends a transaction; it has no sequence number."""
    key = control_key(ControlType.COMMIT if marker.commit else ControlType.ABORT)
    value = _END_TXN.pack(0, marker.coordinator_epoch)
    return build_batch(
        [Record(NO_OFFSET, timestamp, key, value)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE,
        transactional=True,
        control=True,
    )


def end_txn_marker(record: Record) -> EndTxnMarker | None:
    """Return the marker of a control record, or None if the record is of another kind."""
    kind = control_type(record.key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    try:
        version, coordinator_epoch = _END_TXN.unpack_from(record.value or b"")
    except StructError:
        raise invalid("The value of an end-of-transaction marker is cut off") from None
    if version < 0:
        raise invalid(f"Invalid version {version} of an end-of-transaction marker")
    return EndTxnMarker(kind is ControlType.COMMIT, coordinator_epoch)


def read_marker(view: Buffer, pos: int = 0) -> EndTxnMarker | None:
    """Return the marker in the control batch at `pos`; None for other kinds and for a batch that compaction emptied."""
    for record in records(view, pos):
        return end_txn_marker(record)
    return None
