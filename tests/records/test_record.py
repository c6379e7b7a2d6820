"""Records: round trips through every codec, Java's bytes, and hostile ones."""

import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.records import golden

from ottla.model.errors import ApiError, ErrorCode
from ottla.records.batch import check, check_client, read_header
from ottla.records.build import build_batch
from ottla.records.compress import Codec, compress
from ottla.records.record import NO_OFFSET, Record, frames, payload, records, varint, varlong
from ottla.wire.varint import zigzag_bytes

OPTIONAL_BYTES = st.none() | st.binary(max_size=80)
HEADERS = st.lists(st.tuples(st.text(max_size=8), OPTIONAL_BYTES), max_size=3).map(tuple)
RECORDS = st.lists(
    st.builds(
        Record,
        offset=st.just(NO_OFFSET),
        timestamp=st.integers(-1, 2**45),
        key=OPTIONAL_BYTES,
        value=OPTIONAL_BYTES,
        headers=HEADERS,
    ),
    min_size=1,
    max_size=12,
)


def test_java_batches_read_the_same_in_every_codec() -> None:
    for data in golden.BATCHES.values():
        assert list(records(data)) == golden.RECORDS
        assert list(records(b"??" + data, 2)) == golden.RECORDS


def test_we_write_javas_bytes() -> None:
    options: dict[str, Any] = {
        "base_offset": 5,
        "leader_epoch": 9,
        "producer_id": 4000,
        "producer_epoch": 3,
        "base_sequence": 17,
    }
    assert build_batch(golden.RECORDS, **options) == golden.BATCHES[Codec.NONE]
    # Compressed bytes depend on the library; lz4's framing and this little content leave no choice.
    assert build_batch(golden.RECORDS, codec=Codec.LZ4, **options) == golden.BATCHES[Codec.LZ4]


@pytest.mark.parametrize("codec", list(Codec))
@given(found=RECORDS, base_offset=st.integers(0, 2**50), data=st.data())
@settings(max_examples=40)
def test_round_trip(codec: Codec, found: list[Record], base_offset: int, data: st.DataObject) -> None:
    transactional = data.draw(st.booleans())
    batch = build_batch(
        found,
        base_offset=base_offset,
        codec=codec,
        producer_id=7,
        producer_epoch=1,
        base_sequence=3,
        leader_epoch=2,
        transactional=transactional,
    )
    header = read_header(batch)
    check(batch, 0, header)
    check_client(header._replace(base_offset=0))
    assert header.is_transactional == transactional
    assert header.max_timestamp == max(record.timestamp for record in found)
    expected = [record._replace(offset=base_offset + index) for index, record in enumerate(found)]
    assert list(records(batch)) == expected


@given(found=RECORDS, horizon=st.integers(0, 2**42))
@settings(max_examples=30)
def test_frames_say_what_records_say(found: list[Record], horizon: int) -> None:
    batch = build_batch(found, base_offset=10, delete_horizon_ms=horizon, codec=Codec.GZIP)
    header = read_header(batch)
    assert header.delete_horizon_ms == horizon
    data = payload(batch, 0, header)
    for frame, record in zip(frames(data, header), records(batch), strict=True):
        assert (frame.offset, frame.timestamp) == (record.offset, record.timestamp)
        assert (data[frame.key_start : frame.key_end] if frame.key_end >= 0 else None) == record.key
        assert frame.has_value == (record.value is not None)


def test_offsets_with_holes_and_a_kept_last_offset() -> None:
    kept = [Record(12, 5, b"a", b"1"), Record(17, 3, b"b", b"2")]
    batch = build_batch(kept, base_offset=10, last_offset_delta=9, max_timestamp=8)
    header = read_header(batch)
    assert (header.last_offset, header.count, header.max_timestamp) == (19, 2, 8)
    assert list(records(batch)) == kept


def test_an_offset_that_does_not_fit_is_our_bug() -> None:
    with pytest.raises(ValueError, match="offset delta"):
        build_batch([Record(9, 0, None, None)], base_offset=10)
    with pytest.raises(ValueError, match="offset delta"):
        build_batch([Record(2**31, 0, None, None)])


def test_an_empty_batch_has_no_records() -> None:
    assert list(records(golden.EMPTY)) == []
    check(golden.EMPTY, 0, read_header(golden.EMPTY))
    batch = build_batch([], base_offset=5, last_offset_delta=2)
    assert read_header(batch).last_offset == 7


def test_log_append_time_overrides() -> None:
    batch = build_batch([Record(NO_OFFSET, 5, None, b""), Record(NO_OFFSET, 6, b"", None)], log_append_time=99)
    assert [record.timestamp for record in records(batch)] == [99, 99]


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints(value: int) -> None:
    data = zigzag_bytes(value)
    assert len(data) <= 10
    assert varlong(data, 0) == (value, len(data))
    if -(2**31) <= value < 2**31:
        assert varint(data, 0) == (value, len(data))


def test_endless_varints() -> None:
    for read, size in ((varint, 5), (varlong, 10)):
        with pytest.raises(ApiError, match="longer than"):
            read(b"\xff" * 20, 0)
        with pytest.raises(IndexError):
            read(b"\xff" * (size - 1), 0)


def test_a_header_key_that_is_no_utf8_is_still_readable() -> None:
    batch = build_batch([Record(NO_OFFSET, 0, None, None, (("abc", b"x"),))])
    at = batch.index(b"abc")
    batch[at] = 0xFF
    assert next(records(batch)).headers == (("�bc", b"x"),)


def outcome(read: Callable[[], Iterator[object]]) -> int | ErrorCode:
    """How many came, or why none did."""
    try:
        return len(list(read()))
    except ApiError as error:
        return error.code


def _with_count(batch: bytearray, count: int) -> bytearray:
    struct.pack_into(">i", batch, 57, count)
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    return batch


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("count", [1, 3, 2**31 - 1, -1])
def test_a_count_that_lies(codec: Codec, count: int) -> None:
    batch = _with_count(build_batch([(b"k", b"v"), (b"l", b"w")], codec=codec), count)
    for read in (
        lambda: list(records(batch)),
        lambda: list(frames(payload(batch, 0, read_header(batch)), read_header(batch))),
    ):
        with pytest.raises(ApiError) as error:
            read()
        assert error.value.code is ErrorCode.INVALID_RECORD


@given(st.binary(min_size=1, max_size=120), st.integers(1, 20))
@settings(max_examples=300)
def test_noise_in_place_of_records(noise: bytes, count: int) -> None:
    batch = build_batch([(b"k", b"v")])
    batch[61:] = noise
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    _with_count(batch, count)
    header = read_header(batch)
    whole = outcome(lambda: records(batch))
    assert whole == outcome(lambda: frames(payload(batch, 0, header), header)), "both must agree on what a record is"
    assert whole == ErrorCode.INVALID_RECORD or whole == count


def test_every_single_byte_change_is_read_or_refused() -> None:
    rng = random.Random(11)
    original = build_batch([Record(NO_OFFSET, i, b"k%d" % i, b"v" * i, (("h", b"x"),)) for i in range(5)])
    for _ in range(2_000):
        batch = bytearray(original)
        batch[rng.randrange(61, len(batch))] = rng.randrange(256)
        assert outcome(lambda: records(batch)) in (5, ErrorCode.INVALID_RECORD)  # noqa: B023  # called at once


def test_unpacking_is_bounded() -> None:
    batch = build_batch([(b"k", bytes(1_000_000))], codec=Codec.ZSTD)
    assert len(batch) < 500
    with pytest.raises(ApiError) as error:
        records(batch, limit_bytes=100_000)
    assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert compress(Codec.NONE, b"as it is") == b"as it is"


@pytest.mark.parametrize("count", [8_191, 8_193, 20_000])
def test_batches_of_many_records(count: int) -> None:
    """Offset deltas get a third byte on the way."""
    made = build_batch([(b"k", b"%d" % number) for number in range(count)], base_offset=5)
    found = [(record.offset, record.value) for record in records(made)]
    assert found == [(5 + number, b"%d" % number) for number in range(count)]
