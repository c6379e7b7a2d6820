"""Header reading, checks and stamping; the codes are what a real Kafka 4.3.1 answered to the same bytes."""

import struct

import pytest
from crc32c import crc32c
from tests.records import golden

from ottla.model.errors import ApiError, ErrorCode
from ottla.records.batch import (
    BatchHeader,
    check,
    check_client,
    check_length,
    check_request,
    headers,
    read_header,
    stamp,
    stamp_log_append_time,
)
from ottla.records.build import build_batch, values_batch
from ottla.records.compress import Codec
from ottla.records.record import records


def good(**options: object) -> bytearray:
    return build_batch([(b"k", b"v"), (b"k2", b"v2")], timestamp=1_700_000_000_000, **options)  # type: ignore[arg-type]


def changed(at: int, form: str, value: int, batch: bytearray | None = None) -> bytearray:
    """A good batch with one field changed and the CRC right again."""
    batch = good() if batch is None else batch
    struct.pack_into(form, batch, at, value)
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    return batch


def verdict(batch: bytes | bytearray, version: int = 9) -> str:
    """What a produce of these bytes would be told, in the order of the real path."""
    try:
        header = check_request(batch, version)
        check(batch, 0, header)
        check_client(header)
    except ApiError as error:
        return error.code.name
    return "NONE"


def test_reads_every_field_of_javas_batches() -> None:
    for codec, data in golden.BATCHES.items():
        header = read_header(data)
        assert header.codec is codec
        assert header.base_offset == 5
        assert header.last_offset == 7
        assert header.next_offset == 8
        assert header.leader_epoch == 9
        assert header.count == 3
        assert header.size_bytes == len(data)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (4000, 3, 17)
        assert header.last_sequence == 19
        assert (header.base_timestamp, header.max_timestamp) == (1_700_000_000_000, 1_700_000_000_500)
        assert header.is_transactional == (codec is Codec.GZIP)
        assert not header.is_control
        assert not header.is_log_append_time
        assert not header.has_delete_horizon
        assert header.delete_horizon_ms is None
        check(data, 0, header)


def test_headers_walks_complete_batches_and_stops_at_a_cut_one() -> None:
    data = golden.BATCHES[Codec.NONE] + golden.COMMIT + golden.EMPTY + golden.COMMIT[:70]
    found = list(headers(data))
    assert [header.base_offset for _, header in found] == [5, 77, 5]
    assert [position for position, _ in found] == [0, 200, 278]
    assert list(headers(data[:100])) == []
    assert list(headers(b"")) == []


def test_headers_raises_where_no_batch_can_be() -> None:
    with pytest.raises(ApiError):
        list(headers(golden.COMMIT + bytes(20)))
    with pytest.raises(ApiError):
        list(headers(golden.COMMIT + bytes(100)))


@pytest.mark.parametrize(
    ("batch", "answer"),
    [
        (good(), "NONE"),
        (changed(16, ">b", 0), "INVALID_RECORD"),
        (changed(16, ">b", 1), "INVALID_RECORD"),
        (changed(16, ">b", 3), "CORRUPT_MESSAGE"),
        (changed(16, ">b", -1), "CORRUPT_MESSAGE"),
        (changed(8, ">i", 5), "CORRUPT_MESSAGE"),
        (changed(8, ">i", 20), "CORRUPT_MESSAGE"),
        (changed(8, ">i", -1), "CORRUPT_MESSAGE"),
        (changed(8, ">i", 5000), "INVALID_RECORD"),
        (b"", "INVALID_RECORD"),
        (b"123", "INVALID_RECORD"),
        (good() + good(), "INVALID_RECORD"),
        (good() + b"12345", "NONE"),
        (good() + good()[:70], "NONE"),
        (good() + bytes(100), "CORRUPT_MESSAGE"),
        (good(base_offset=5), "INVALID_RECORD"),
        (changed(23, ">i", 5), "INVALID_RECORD"),
        (changed(23, ">i", -1), "INVALID_RECORD"),
        (changed(57, ">i", 0), "INVALID_RECORD"),
        (changed(57, ">i", -1), "INVALID_RECORD"),
        (good(control=True), "INVALID_RECORD"),
        (good(log_append_time=123), "INVALID_TIMESTAMP"),
        (good(delete_horizon_ms=5), "NONE"),
        (good(producer_id=5, producer_epoch=0), "INVALID_RECORD"),
        (good(producer_id=5, producer_epoch=0, base_sequence=0), "NONE"),
        (good(producer_id=-5), "NONE"),
        (changed(21, ">h", 5), "INVALID_RECORD"),
        (changed(21, ">h", 0x7F00), "NONE"),
        (changed(21, ">h", 0x80), "NONE"),
    ],
)
def test_client_batches_are_judged_as_by_kafka(batch: bytes, answer: str) -> None:
    assert verdict(batch) == answer


def test_a_flipped_bit_anywhere_under_the_crc_is_found() -> None:
    for at in range(17, len(good())):
        batch = good()
        batch[at] ^= 0x10
        with pytest.raises(ApiError) as error:
            check(batch, 0, read_header(batch))
        assert error.value.code is ErrorCode.CORRUPT_MESSAGE


def test_zstd_needs_produce_v7() -> None:
    assert verdict(good(codec=Codec.ZSTD), 6) == "UNSUPPORTED_COMPRESSION_TYPE"
    assert verdict(good(codec=Codec.ZSTD), 7) == "NONE"
    assert verdict(good(codec=Codec.GZIP), 3) == "NONE"


def test_unknown_codec_is_named() -> None:
    with pytest.raises(ApiError, match="Unknown compression type id: 6"):
        _ = read_header(changed(21, ">h", 6)).codec


def test_check_length() -> None:
    assert check_length(good()[:16]) is None
    assert check_length(good()) == len(good())
    assert check_length(b"xx" + good(), 2) == len(good())


def test_stamp_changes_offset_and_epoch_only() -> None:
    data = bytearray(b"??" + good())
    stamp(data, 2, 1 << 40, 77)
    header = read_header(data, 2)
    assert (header.base_offset, header.leader_epoch) == (1 << 40, 77)
    check(data, 2, header)
    assert header._replace(base_offset=0, leader_epoch=-1) == read_header(good())


def test_stamp_log_append_time_makes_all_records_that_old() -> None:
    data = bytearray(b"??") + build_batch([(b"a", b"b"), (b"c", None)], timestamp=5, codec=Codec.LZ4)
    view = memoryview(data)
    stamp_log_append_time(view, 2, 9_000)
    header = read_header(view, 2)
    check(view, 2, header)
    assert header.is_log_append_time
    assert header.max_timestamp == 9_000
    assert header.base_timestamp == 5
    assert [record.timestamp for record in records(view, 2)] == [9_000, 9_000]


def test_sequences_wrap() -> None:
    header = read_header(good(producer_id=1, producer_epoch=0, base_sequence=2**31 - 1))
    assert header.last_sequence == 0
    assert read_header(good()).last_sequence == -1


def test_check_works_on_views_of_any_kind() -> None:
    for view in (bytes(good()), good(), memoryview(good()), memoryview(bytes(good()))):
        header = read_header(view)
        assert isinstance(header, BatchHeader)
        check(view, 0, header)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 9_000])
def test_values_are_laid_out_as_records(count: int) -> None:
    values = [bytes(number % 200) for number in range(count)]
    plain = build_batch([(None, value) for value in values], base_offset=5, leader_epoch=2, timestamp=77)
    quick = values_batch(values, base_offset=5, leader_epoch=2, timestamp=77)
    assert bytes(quick) == bytes(plain) or not count


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_holds_no_more_records_than_there_is_room_for(codec: Codec) -> None:
    """Offsets are given by the count in the header: one that lies would use them up, and a new segment each time."""
    batch = build_batch([(None, None)] * 1_000, timestamp=0, codec=codec)
    header = read_header(batch)
    check_client(header)
    lie = header._replace(count=2**31 - 1, last_offset_delta=2**31 - 2)
    with pytest.raises(ApiError, match="no room for") as refused:
        check_client(lie)
    assert refused.value.code == ErrorCode.INVALID_RECORD
