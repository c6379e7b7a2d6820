"""The 61-byte header of a record batch: reading, checking, stamping in place.

Layout (big endian), Kafka's message format v2; the CRC-32C covers everything from `attributes` on, so that the broker
may stamp base offset and leader epoch without computing the CRC again:

    base_offset i64 | length i32 | leader_epoch i32 | magic i8 | crc u32 | attributes i16 | last_offset_delta i32
    | base_timestamp i64 | max_timestamp i64 | producer_id i64 | producer_epoch i16 | base_sequence i32 | count i32

Rules:
- `check` checks the structure of every batch that enters the log; `check_client` adds the rules for batches of clients.
  Sequence and time rules live in `log`; the handler calls the rules of one request version (`check_request`).
- Nothing here allocates in proportion to the batch; a view is never copied.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import NO_PRODUCER_ID, LeaderEpoch, ProducerEpoch, ProducerId
from ottla.model.limits import DECOMPRESSED_BATCH_BYTES_MAX, INT32_MAX, RECORD_BYTES_MIN, UNPACKED_RATIO_MAX
from ottla.records.compress import CODEC_OF_ID, Codec
from ottla.records.crc import crc32c

Buffer = bytes | bytearray | memoryview

MAGIC = 2
HEADER_BYTES = 61
# The bytes of base_offset and length, which `length` does not count.
PREFIX_BYTES = 12
# Enough bytes of a batch of any format version to read its size and magic.
PREFIX_TO_MAGIC_BYTES = 17

LENGTH_AT = 8
LEADER_EPOCH_AT = 12
MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21
LAST_OFFSET_DELTA_AT = 23
BASE_TIMESTAMP_AT = 27
MAX_TIMESTAMP_AT = 35
PRODUCER_ID_AT = 43
PRODUCER_EPOCH_AT = 51
BASE_SEQUENCE_AT = 53
COUNT_AT = 57

CODEC_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40

NO_TIMESTAMP = -1
NO_SEQUENCE = -1

# The smallest payload of the oldest format (magic 0); below it the length field itself is garbage.
_LENGTH_MIN_ANY_MAGIC = 14

_HEADER = Struct(">qiibIhiqqqhii")
_BASE_OFFSET = Struct(">q")
_INT32 = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_TIMESTAMP = Struct(">q")
assert _HEADER.size == HEADER_BYTES

pack_header_into = _HEADER.pack_into
pack_crc_into = _CRC.pack_into
_unpack_header = _HEADER.unpack_from
_pack_base_offset = _BASE_OFFSET.pack_into
_pack_int32 = _INT32.pack_into
_unpack_int32 = _INT32.unpack_from
_new = tuple.__new__


class BatchHeader(NamedTuple):
    """The fields of a header, unchecked."""

    base_offset: int
    length: int
    leader_epoch: LeaderEpoch
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_sequence: int
    count: int  # type: ignore[assignment]  # Kafka's word for it; `tuple.count` is not used

    @property
    def size_bytes(self) -> int:
        return self.length + PREFIX_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; sequences wrap from 2^31-1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & INT32_MAX

    @property
    def codec(self) -> Codec:
        """The codec; raises `ApiError` if the id in the attributes is unknown."""
        return CODEC_OF_ID[self.attributes & CODEC_MASK]

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_FLAG != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Whether `base_timestamp` is a delete horizon (KIP-534): the time after which tombstones may be removed."""
        return self.attributes & DELETE_HORIZON_FLAG != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None


def read_header(view: Buffer, pos: int = 0) -> BatchHeader:
    """Return the header at `pos`. Raises `struct.error` if there are fewer than 61 bytes: see `check_length`."""
    return _new(BatchHeader, _unpack_header(view, pos))


def headers(view: Buffer, pos: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of every complete batch, in order.

    Stops at an incomplete batch without an error (the end of a fetch answer is often cut); raises `ApiError` if the
    bytes cannot be a batch of magic 2.
    """
    end = len(view)
    while end - pos >= HEADER_BYTES:
        header: BatchHeader = _new(BatchHeader, _unpack_header(view, pos))
        if header.magic != MAGIC or header.length < HEADER_BYTES - PREFIX_BYTES:
            _refuse_shape(header.length, header.magic)
        size_bytes = header.length + PREFIX_BYTES
        if end - pos < size_bytes:
            return
        yield pos, header
        pos += size_bytes
    if end - pos >= PREFIX_TO_MAGIC_BYTES:
        check_length(view, pos)


def check_length(view: Buffer, pos: int = 0) -> int | None:
    """Return the size of the batch at `pos` from its first 17 bytes; None if there are fewer.

    Raises if it cannot be a batch.
    """
    if len(view) - pos < PREFIX_TO_MAGIC_BYTES:
        return None
    length: int = _unpack_int32(view, pos + LENGTH_AT)[0]
    magic = view[pos + MAGIC_AT]
    if magic != MAGIC or length < HEADER_BYTES - PREFIX_BYTES:
        _refuse_shape(length, magic if magic < 128 else magic - 256)
    return length + PREFIX_BYTES


def _refuse_shape(length: int, magic: int) -> None:
    if length < _LENGTH_MIN_ANY_MAGIC:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record size {length} is less than the minimum record overhead ({_LENGTH_MIN_ANY_MAGIC})",
        )
    if magic < 0 or magic > MAGIC:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
    if magic != MAGIC:
        # Kafka 4 does not convert the old formats any more, and answers with the same error.
        raise ApiError(ErrorCode.INVALID_RECORD, f"Only record batches with magic version 2 are accepted, not {magic}")
    raise ApiError(
        ErrorCode.CORRUPT_MESSAGE,
        f"Record batch is corrupt (the size {length + PREFIX_BYTES} is smaller than the minimum allowed overhead "
        f"{HEADER_BYTES})",
    )


def check(view: Buffer, pos: int, header: BatchHeader) -> None:
    """Check structure and CRC of one batch. Raises `ApiError`; CORRUPT_MESSAGE if bytes were damaged in transit."""
    length = header.length
    if header.magic != MAGIC or length < HEADER_BYTES - PREFIX_BYTES:
        _refuse_shape(length, header.magic)
    end = pos + PREFIX_BYTES + length
    if end > len(view):
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record batch of {length + PREFIX_BYTES} bytes is cut off after {len(view) - pos} bytes",
        )
    computed = crc32c(memoryview(view)[pos + ATTRIBUTES_AT : end])
    if computed != header.crc:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt (stored crc = {header.crc}, computed crc = {computed})"
        )


# One mask covers the usual case. A delete horizon is accepted, as in Kafka: mirrors copy batches as they are.
_CLIENT_ATTRIBUTES_REFUSED = CONTROL_FLAG | LOG_APPEND_TIME_FLAG


def check_client(header: BatchHeader) -> None:
    """Check the rules for a client's batch beyond `check`, by the header only; errors come in Kafka's order."""
    count = header.count
    if (
        header.base_offset == 0
        and count > 0
        and header.last_offset_delta == count - 1
        and header.attributes & _CLIENT_ATTRIBUTES_REFUSED == 0
        and header.attributes & CODEC_MASK <= 4
        and (count * RECORD_BYTES_MIN < header.length or _has_room(header))
        and (header.base_sequence >= 0 or header.producer_id < 0)
    ):
        return
    _refuse_client(header)


def _has_room(header: BatchHeader) -> bool:
    """Whether this number of records fits the batch: the batch gets offsets by this count, without a look inside."""
    room_bytes = header.size_bytes - HEADER_BYTES
    if header.attributes & CODEC_MASK:
        room_bytes = min(room_bytes * UNPACKED_RATIO_MAX, DECOMPRESSED_BATCH_BYTES_MAX)
    return header.count * RECORD_BYTES_MIN <= room_bytes


def _refuse_client(header: BatchHeader) -> None:
    count, first, last = header.count, header.base_offset, header.last_offset
    if first != 0:
        message = f"The baseOffset of the record batch should be 0, but it is {first}"
    elif last < first:
        message = f"Batch has an invalid offset range: [{first}, {last}]"
    elif count <= 0:
        message = f"Invalid reported count for record batch: {count}"
    elif last - first + 1 != count:
        message = f"Inconsistent batch offset range [{first}, {last}] and count of records {count}"
    elif header.is_control:
        message = "Clients are not allowed to write control records"
    elif header.has_producer_id and header.base_sequence < 0:
        message = f"Invalid sequence number {header.base_sequence} in record batch with producerId {header.producer_id}"
    elif header.attributes & CODEC_MASK > 4:
        message = f"Unknown compression type id: {header.attributes & CODEC_MASK}"
    elif not _has_room(header):
        message = f"Found invalid number of records in the batch: its header says {count}, which it has no room for"
    else:
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP,
            "Invalid timestamp type in message. Producer should not set timestamp type to LogAppendTime.",
        )
    raise ApiError(ErrorCode.INVALID_RECORD, message)


def check_request(view: Buffer, version: int) -> BatchHeader:
    """Check one partition of a Produce request of this version: exactly one batch, its magic, zstd only from v7."""
    size_bytes = check_length(view)
    if size_bytes is None or size_bytes > len(view):
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} must have at least one record batch per partition",
        )
    header = read_header(view)
    if version < 7 and header.attributes & CODEC_MASK == Codec.ZSTD:
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {version} are not allowed to use ZStandard compression",
        )
    if len(view) > size_bytes:
        next_size_bytes = check_length(view, size_bytes)
        # Kafka does not count an incomplete second batch: the log cuts it off.
        if next_size_bytes is not None and len(view) - size_bytes >= next_size_bytes:
            raise ApiError(
                ErrorCode.INVALID_RECORD,
                f"Produce requests with version {version} are only allowed to contain exactly one record batch per "
                "partition",
            )
    return header


def stamp(view: bytearray | memoryview, pos: int, base_offset: int, leader_epoch: LeaderEpoch) -> None:
    """Write base offset and leader epoch in place; both lie before the CRC."""
    _pack_base_offset(view, pos, base_offset)
    _pack_int32(view, pos + LEADER_EPOCH_AT, leader_epoch)


def stamp_log_append_time(view: bytearray | memoryview, pos: int, timestamp: int) -> None:
    """Set the LogAppendTime `timestamp` for all records: write the flag, the max timestamp and a new CRC."""
    (attributes,) = _ATTRIBUTES.unpack_from(view, pos + ATTRIBUTES_AT)
    _ATTRIBUTES.pack_into(view, pos + ATTRIBUTES_AT, attributes | LOG_APPEND_TIME_FLAG)
    stamp_max_timestamp(view, pos, timestamp)


def stamp_max_timestamp(view: bytearray | memoryview, pos: int, timestamp: int) -> None:
    """Write the max timestamp in place, and a new CRC."""
    _TIMESTAMP.pack_into(view, pos + MAX_TIMESTAMP_AT, timestamp)
    end = pos + PREFIX_BYTES + _unpack_int32(view, pos + LENGTH_AT)[0]
    pack_crc_into(view, pos + CRC_AT, crc32c(memoryview(view)[pos + ATTRIBUTES_AT : end]))
