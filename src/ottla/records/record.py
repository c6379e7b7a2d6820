"""The records inside a batch: varints, decoding, and a cheaper iteration over the records' frames only.

    length varint | attributes i8 | timestamp_delta varlong | offset_delta varint | key_length varint | key
    | value_length varint | value | header_count varint | (key_length varint | key | value_length varint | value)*

Varints are zigzag; a length of -1 is null. `_decode_some` is the one place that knows this layout when reading whole
records, `frames` the one that skips over key and value.

Rules: malformed bytes raise `ApiError(INVALID_RECORD)`. Every length is compared with the remaining bytes before it is
used, so time and memory are bounded by the size of the batch, or by `limit_bytes` if it is compressed.
"""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from struct import Struct
from typing import NamedTuple

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import (
    DECOMPRESSED_BATCH_BYTES_MAX,
    RECORDS_DECODED_AT_ONCE_MAX,
    VARINT_BYTES_MAX,
    VARLONG_BYTES_MAX,
)
from ottla.records.batch import HEADER_BYTES, BatchHeader, Buffer, read_header
from ottla.records.compress import decompress
from ottla.wire.varint import ZIGZAG_BYTES

Headers = tuple[tuple[str, bytes | None], ...]

# A Record with this offset gets the next offset when it is put into a batch.
NO_OFFSET = -1

_new = tuple.__new__
# The values of one- and two-byte varints, by their seven or fourteen bits.
_ZIGZAG = [0] * (1 << 14)
_ZIGZAG[::2] = range(1 << 13)
_ZIGZAG[1::2] = range(-1, -(1 << 13) - 1, -1)


class Record(NamedTuple):
    """One record with its absolute offset and timestamp."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Columns(NamedTuple):
    """Some records of a batch, field by field."""

    offsets: list[int]
    timestamps: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[Headers]


class Frame(NamedTuple):
    """The position of one record in its (decompressed) payload, and the fields that can be read without copying."""

    start: int
    end: int
    body: int  # the first byte after the timestamp delta; the bytes from there on can be copied with another timestamp
    attributes: int
    timestamp: int
    offset: int
    key_start: int
    key_end: int  # -1 if the key is null
    has_value: bool


_record = partial(_new, Record)


def varint(data: bytes, pos: int) -> tuple[int, int]:
    """Read a zigzag varint of at most 32 bits: (value, position after it). Raises IndexError at the end of the data."""
    return _varint(data, pos, VARINT_BYTES_MAX)


def varlong(data: bytes, pos: int) -> tuple[int, int]:
    """Read a zigzag varint of at most 64 bits: (value, position after it). Raises IndexError at the end of the data."""
    return _varint(data, pos, VARLONG_BYTES_MAX)


def _varint(data: bytes, pos: int, bytes_max: int) -> tuple[int, int]:
    byte = data[pos]
    value = byte & 0x7F
    shift, end = 7, pos + bytes_max
    while byte & 0x80:
        pos += 1
        if pos == end:
            raise invalid(f"Varint is longer than {bytes_max} bytes")
        byte = data[pos]
        value |= (byte & 0x7F) << shift
        shift += 7
    return (value >> 1) ^ -(value & 1), pos + 1


# How often neighbours of equal length may turn out to have different layouts before `_decode_alike` is not tried any
# more.
_FAILURES_MAX = 4


def invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, message)


def payload(view: Buffer, pos: int, header: BatchHeader, limit_bytes: int = DECOMPRESSED_BATCH_BYTES_MAX) -> bytes:
    """Return the decompressed records of the batch at `pos`; the record count is checked against their size."""
    packed = memoryview(view)[pos + HEADER_BYTES : pos + header.size_bytes]
    data = decompress(header.codec, packed, limit_bytes)
    # A record has at least 7 bytes: its length and six fields of one byte.
    if header.count < 0 or header.count * 7 > len(data):
        raise invalid(f"Found invalid record count {header.count} in {len(data)} bytes of records")
    return data


def records(view: Buffer, pos: int = 0, *, limit_bytes: int = DECOMPRESSED_BATCH_BYTES_MAX) -> Iterator[Record]:
    """Return the records of the one batch at `pos`, in order. The CRC is not checked here: see `batch.check`."""
    return chain.from_iterable(map(rows, columns(view, pos, limit_bytes=limit_bytes)))


def columns(view: Buffer, pos: int = 0, *, limit_bytes: int = DECOMPRESSED_BATCH_BYTES_MAX) -> "Iterator[Columns]":
    """Like `records`, but return columns, in portions: for readers that want many records at once."""
    header = read_header(view, pos)
    if header.count == 0:
        return iter(())
    return decode(payload(view, pos, header, limit_bytes), header)


def rows(found: Columns) -> Iterator[Record]:
    return map(_record, zip(*found, strict=True))


def decode(data: bytes, header: BatchHeader) -> Iterator[Columns]:
    """Decode the records of a decompressed payload (see `payload`), in portions."""
    pos = done = 0
    while done < header.count:
        count = min(header.count - done, RECORDS_DECODED_AT_ONCE_MAX)
        # Most offsets have no gaps and most records no headers: only exceptions are written below.
        first = header.base_offset + done
        found = Columns(list(range(first, first + count)), [], [], [], [()] * count)
        expected = ZIGZAG_BYTES[done : done + count]
        expected += [b""] * (count - len(expected))  # longer deltas are decoded one by one
        try:
            pos = _decode_some(data, pos, expected, header, found)
        except IndexError:
            raise invalid("Incorrect declared batch size, premature end of the records") from None
        if header.is_log_append_time:
            found.timestamps[:] = [header.max_timestamp] * count
        yield found
        done += count
    if pos != len(data):
        raise invalid("Incorrect declared batch size, records still remaining")


def _decode_some(data: bytes, pos: int, expected: list[bytes], header: BatchHeader, found: Columns) -> int:
    """Decode records from `pos` on, one for each expected offset delta; return the position after them.

    Nearly all varints have one or two bytes: those are decoded without a call.
    """
    base_offset, base_timestamp, zigzag = header.base_offset, header.base_timestamp, _ZIGZAG
    add_timestamp, add_key_and_value = found.timestamps.append, (found.keys.append, found.values.append)
    index, last_length, failures = 0, -1, 0
    while index < len(expected):
        start = pos
        byte = data[pos]
        if byte < 0x80:
            length, pos = zigzag[byte], pos + 1
        elif (more := data[pos + 1]) < 0x80:
            length, pos = zigzag[byte & 0x7F | more << 7], pos + 2
        else:
            length, pos = _varint(data, pos, 5)
        end, record_length = pos + length, length
        byte = data[pos + 1]  # the byte before holds attributes, which are unused
        if byte < 0x80:
            delta, pos = zigzag[byte], pos + 2
        elif (more := data[pos + 2]) < 0x80:
            delta, pos = zigzag[byte & 0x7F | more << 7], pos + 3
        else:
            delta, pos = _varint(data, pos + 1, 10)
        add_timestamp(base_timestamp + delta)
        delta_bytes = expected[index]
        if delta_bytes and data.startswith(delta_bytes, pos):
            pos += len(delta_bytes)
        else:
            delta, pos = _varint(data, pos, 5)
            found.offsets[index] = base_offset + delta
        for add in add_key_and_value:
            byte = data[pos]
            if byte < 0x80:
                length, pos = zigzag[byte], pos + 1
            elif (more := data[pos + 1]) < 0x80:
                length, pos = zigzag[byte & 0x7F | more << 7], pos + 2
            else:
                length, pos = _varint(data, pos, 5)
            add(data[pos : pos + length] if length >= 0 else None)
            pos += length if length > 0 else 0
        if data[pos]:
            found.headers[index], pos = _headers(data, pos, end)
        else:
            pos += 1
        # This one check proves every length above: positions only move forward, and the byte before was there.
        if pos != end:
            raise invalid("Invalid record size: the fields do not fill the record exactly")
        index += 1
        if record_length == last_length and failures < _FAILURES_MAX:
            alike = _decode_alike(data, start, end, expected[index:], base_timestamp, found)
            index, pos = index + alike, pos + alike * (end - start)
            failures += alike == 0
        last_length = record_length
    return pos


def _decode_alike(data: bytes, start: int, end: int, expected: list[bytes], base_timestamp: int, found: Columns) -> int:
    """Decode the records that follow the one between `start` and `end` and have its layout: the same lengths, no
    headers.

    A struct splits each of them at once. Returns how many there were.
    """
    _, body = varint(data, start)
    _, delta_at = varlong(data, body + 1)
    _, key_length_at = varint(data, delta_at)
    key_length, key_at = varint(data, key_length_at)
    value_length_at = key_at + max(key_length, 0)
    value_length, value_at = varint(data, value_length_at)
    value_end = value_at + max(value_length, 0)
    layout = Struct(
        f"{body - start}sx{delta_at - body - 1}s{key_length_at - delta_at}s{key_at - key_length_at}s"
        f"{value_length_at - key_at}s{value_at - value_length_at}s{value_end - value_at}sB"
    )
    if layout.size != end - start:  # the first record has headers itself
        return 0
    room = memoryview(data)[end : len(data) - (len(data) - end) % layout.size]
    same_length, same_key_length = data[start:body], data[key_length_at:key_at]
    same_value_length = data[value_length_at:value_at]
    count, timestamp_bytes, timestamp = 0, b"", 0
    add_timestamp, add_key, add_value = found.timestamps.append, found.keys.append, found.values.append
    for delta_bytes, fields in zip(expected, layout.iter_unpack(room), strict=False):
        length, time_bytes, delta, key_length_bytes, key, value_length_bytes, value, headers = fields
        if length != same_length or delta != delta_bytes or headers:
            break
        if key_length_bytes != same_key_length or value_length_bytes != same_value_length:
            break
        if time_bytes != timestamp_bytes:
            if time_bytes[-1] >= 0x80 or (time := varlong(time_bytes, 0))[1] != len(time_bytes):
                break  # the varint has another length
            timestamp_bytes, timestamp = time_bytes, base_timestamp + time[0]
        add_timestamp(timestamp)
        add_key(key)
        add_value(value)
        count += 1
    if key_length < 0:
        found.keys[len(found.keys) - count :] = [None] * count
    if value_length < 0:
        found.values[len(found.values) - count :] = [None] * count
    return count


def _headers(data: bytes, pos: int, end: int) -> tuple[Headers, int]:
    count, pos = _varint(data, pos, VARINT_BYTES_MAX)
    # A header has at least two bytes.
    if count < 0 or count * 2 > end - pos:
        raise invalid(f"Found invalid number of record headers {count}")
    found: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length, pos = _varint(data, pos, VARINT_BYTES_MAX)
        if length < 0:
            raise invalid(f"Invalid negative header key size {length}")
        # Java decodes leniently, so a key that is no UTF-8 must not make the record unreadable here either.
        key = data[pos : pos + length].decode("utf-8", "replace")
        pos += length
        length, pos = _varint(data, pos, VARINT_BYTES_MAX)
        value = None
        if length >= 0:
            value = data[pos : pos + length]
            pos += length
        found.append((key, value))
    return tuple(found), pos


def frames(data: bytes, header: BatchHeader) -> Iterator[Frame]:
    """Yield the frames of all records in a decompressed payload (see `payload`); skip key, value and headers."""
    append_time = header.max_timestamp if header.is_log_append_time else None
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    pos, size = 0, len(data)
    try:
        for _ in range(header.count):
            start = pos
            byte = data[pos]
            length, pos = ((byte >> 1) ^ -(byte & 1), pos + 1) if byte < 0x80 else _varint(data, pos, 5)
            end = pos + length
            if length < 0 or end > size:
                raise invalid(f"Invalid record size: expected {length} bytes, {size - pos} remain")
            attributes = data[pos]
            byte = data[pos + 1]
            timestamp, body = ((byte >> 1) ^ -(byte & 1), pos + 2) if byte < 0x80 else _varint(data, pos + 1, 10)
            byte = data[body]
            offset, pos = ((byte >> 1) ^ -(byte & 1), body + 1) if byte < 0x80 else _varint(data, body, 5)
            byte = data[pos]
            length, pos = ((byte >> 1) ^ -(byte & 1), pos + 1) if byte < 0x80 else _varint(data, pos, 5)
            key_start, key_end = pos, -1
            if length >= 0:
                pos = key_end = pos + length
            byte = data[pos]
            length, pos = ((byte >> 1) ^ -(byte & 1), pos + 1) if byte < 0x80 else _varint(data, pos, 5)
            has_value = length >= 0
            if has_value:
                pos += length
            pos = pos + 1 if not data[pos] else _skip_headers(data, pos, end)
            if pos != end:
                raise invalid("Invalid record size: the fields do not fill the record exactly")
            timestamp = timestamp + base_timestamp if append_time is None else append_time
            offset += base_offset
            yield _new(Frame, (start, end, body, attributes, timestamp, offset, key_start, key_end, has_value))
    except IndexError:
        raise invalid("Incorrect declared batch size, premature end of the records") from None
    if pos != size:
        raise invalid("Incorrect declared batch size, records still remaining")


def _skip_headers(data: bytes, pos: int, end: int) -> int:
    count, pos = _varint(data, pos, VARINT_BYTES_MAX)
    if count < 0 or count * 2 > end - pos:
        raise invalid(f"Found invalid number of record headers {count}")
    for _ in range(count):
        length, pos = _varint(data, pos, VARINT_BYTES_MAX)
        if length < 0:
            raise invalid(f"Invalid negative header key size {length}")
        length, pos = _varint(data, pos + length, VARINT_BYTES_MAX)
        if length > 0:
            pos += length
    return pos
