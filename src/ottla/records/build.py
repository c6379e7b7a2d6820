"""Builds record batches: for our client, internal logs, recompression, and tests.

Rules:
- One call, one batch; the result is a `bytearray` that may be stamped in place.
- Offset deltas follow the records' own offsets if they have one, so a batch with gaps (from compaction) can be rebuilt.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.model.ids import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, LeaderEpoch, ProducerEpoch, ProducerId
from ottla.model.limits import INT32_MAX
from ottla.records.batch import (
    ATTRIBUTES_AT,
    CONTROL_FLAG,
    CRC_AT,
    DELETE_HORIZON_FLAG,
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    PREFIX_BYTES,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    pack_crc_into,
    pack_header_into,
)
from ottla.records.compress import Codec, compress
from ottla.records.crc import crc32c
from ottla.records.record import NO_OFFSET, Headers, Record
from ottla.wire.varint import zigzag_bytes

Pair = tuple[bytes | None, bytes | None]


class EncodedRecords(NamedTuple):
    """Encoded records in sequence, and the header fields that describe them."""

    data: bytearray | memoryview
    record_count: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int


def build_batch(
    records: Iterable[Record | Pair],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    timestamp: int = NO_TIMESTAMP,
    producer_id: ProducerId = NO_PRODUCER_ID,
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: LeaderEpoch = NO_LEADER_EPOCH,
    transactional: bool = False,
    control: bool = False,
    log_append_time: int | None = None,
    delete_horizon_ms: int | None = None,
    max_timestamp: int | None = None,
    last_offset_delta: int | None = None,
) -> bytearray:
    """Build one batch of `records`: `Record`s, or (key, value) pairs which get `timestamp` and the next offset.

    `log_append_time` gives all records that time. `last_offset_delta` and `max_timestamp` override the values of the
    records: compaction keeps a batch's last offset even when it removed the record of that offset.
    """
    encoded = encode_records(records, base_offset, timestamp, delete_horizon_ms)
    attributes = (
        codec
        | (TRANSACTIONAL_FLAG if transactional else 0)
        | (CONTROL_FLAG if control else 0)
        | (LOG_APPEND_TIME_FLAG if log_append_time is not None else 0)
        | (DELETE_HORIZON_FLAG if delete_horizon_ms is not None else 0)
    )
    if log_append_time is not None:
        max_timestamp = log_append_time
    elif max_timestamp is None:
        max_timestamp = encoded.max_timestamp
    return assemble(
        compress(codec, encoded.data, level) if codec else encoded.data,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=encoded.last_offset_delta if last_offset_delta is None else last_offset_delta,
        base_timestamp=encoded.base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=encoded.record_count,
    )


def values_batch(values: Iterable[bytes], *, base_offset: int, leader_epoch: LeaderEpoch, timestamp: int) -> bytearray:
    """Like `build_batch`, but faster, for very many records that have only a value."""
    encoded = encode_values(values, timestamp)
    return assemble(
        encoded.data,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=0,
        last_offset_delta=encoded.last_offset_delta,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        count=encoded.record_count,
    )


def assemble_like(header: BatchHeader, packed: bytes | bytearray | memoryview) -> bytearray:
    """Call `assemble` with the fields of another batch's header (`BatchHeader._replace` changes some)."""
    return assemble(
        packed,
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
        attributes=header.attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        count=header.count,
    )


def assemble(
    packed: bytes | bytearray | memoryview,
    *,
    base_offset: int,
    leader_epoch: LeaderEpoch,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
    base_sequence: int,
    count: int,
) -> bytearray:
    """Put a header with a CRC before records that are already encoded (and compressed, as `attributes` says)."""
    batch = bytearray(HEADER_BYTES)
    batch += packed
    pack_header_into(
        batch,
        0,
        base_offset,
        len(batch) - PREFIX_BYTES,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    pack_crc_into(batch, CRC_AT, crc32c(memoryview(batch)[ATTRIBUTES_AT:]))
    return batch


def encode_records(
    records: Iterable[Record | Pair], base_offset: int, timestamp: int, delete_horizon_ms: int | None
) -> EncodedRecords:
    """Encode records. Timestamps are relative to the first one, or to the delete horizon if there is one."""
    out = bytearray()
    count, delta = 0, -1
    base_timestamp = delete_horizon_ms
    max_timestamp = NO_TIMESTAMP
    for record in records:
        if isinstance(record, Record):
            offset, time_ms, key, value, headers = record
            delta = delta + 1 if offset == NO_OFFSET else offset - base_offset
        else:
            key, value = record
            time_ms, headers = timestamp, ()
            delta += 1
        if not 0 <= delta <= INT32_MAX:
            raise ValueError(f"offset delta {delta} does not fit a batch with base offset {base_offset}")
        if base_timestamp is None:
            base_timestamp = time_ms
        if time_ms > max_timestamp:
            max_timestamp = time_ms
        put_record(out, delta, time_ms - base_timestamp, key, value, headers)
        count += 1
    return EncodedRecords(out, count, delta, NO_TIMESTAMP if base_timestamp is None else base_timestamp, max_timestamp)


def encode_values(values: Iterable[bytes], timestamp: int) -> EncodedRecords:
    """Like `encode_records`, for very many records that have only a value, all with the same timestamp."""
    parts: list[bytes] = []
    # bytes before and after the delta, by the lengths of delta and value
    around: dict[tuple[int, int], tuple[bytes, bytes]] = {}
    delta = -1
    for delta, value in enumerate(values):
        offset = zigzag_bytes(delta)
        lengths = len(offset), len(value)
        known = around.get(lengths)
        if known is None:
            size = zigzag_bytes(len(value))
            # A record: attributes, time delta, offset delta, no key, the value with its length, no headers.
            before = zigzag_bytes(2 + len(offset) + 1 + len(size) + len(value) + 1) + bytes(2)
            known = around[lengths] = before, b"\x01" + size
        parts += known[0], offset, known[1], value, b"\x00"
    return EncodedRecords(bytearray().join(parts), delta + 1, delta, timestamp, timestamp)


def put_record(
    out: bytearray, delta: int, timestamp_delta: int, key: bytes | None, value: bytes | None, headers: Headers
) -> None:
    """Append one encoded record; time and offset are relative to those of the batch."""
    body = bytearray(1)  # attributes, which are unused
    body += zigzag_bytes(timestamp_delta)
    body += zigzag_bytes(delta)
    if key is None:
        body.append(1)
    else:
        body += zigzag_bytes(len(key))
        body += key
    if value is None:
        body.append(1)
    else:
        body += zigzag_bytes(len(value))
        body += value
    if headers:
        body += zigzag_bytes(len(headers))
        for name, content in headers:
            raw = name.encode()
            body += zigzag_bytes(len(raw))
            body += raw
            if content is None:
                body.append(1)
            else:
                body += zigzag_bytes(len(content))
                body += content
    else:
        body.append(0)
    out += zigzag_bytes(len(body))
    out += body
