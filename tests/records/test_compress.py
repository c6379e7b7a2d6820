"""Codecs: Kafka's framings both ways, and the bound on what a batch may unpack to."""

import gzip
import random

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.model.errors import ApiError, ErrorCode
from ottla.records.compress import Codec, compress, decompress

PACKED = [codec for codec in Codec if codec is not Codec.NONE]
MIB = 1024 * 1024
REFUSED = (ErrorCode.INVALID_RECORD, ErrorCode.MESSAGE_TOO_LARGE)


def outcome(codec: Codec, data: bytes | bytearray, limit_bytes: int) -> ErrorCode:
    try:
        assert len(decompress(codec, data, limit_bytes)) <= limit_bytes
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


@pytest.mark.parametrize("codec", list(Codec))
@given(data=st.one_of(st.binary(max_size=300), st.integers(0, 300_000).map(lambda n: b"abcd" * (n // 4))))
@settings(max_examples=40)
def test_round_trip(codec: Codec, data: bytes) -> None:
    packed = compress(codec, data)
    assert decompress(codec, packed, len(data)) == data
    assert decompress(codec, memoryview(bytearray(packed)), MIB) == data


@pytest.mark.parametrize("codec", list(Codec))
def test_data_that_does_not_compress(codec: Codec) -> None:
    data = random.Random(7).randbytes(200_000)
    assert decompress(codec, compress(codec, data), 200_000) == data


@pytest.mark.parametrize(
    ("codec", "levels"), [(Codec.GZIP, (1, 6, 9)), (Codec.LZ4, (1, 3, 9, 12, 17)), (Codec.ZSTD, (-5, 1, 3, 19))]
)
def test_levels(codec: Codec, levels: tuple[int, ...]) -> None:
    data = b"".join(b'{"id":%d,"name":"n%d"}' % (i, i * 7) for i in range(3_000))
    for level in levels:
        assert decompress(codec, compress(codec, data, level), MIB) == data


@pytest.mark.parametrize("codec", PACKED)
def test_a_bomb_is_refused(codec: Codec) -> None:
    bomb = compress(codec, bytes(4 * MIB))
    for limit_bytes in (0, 1_000, MIB, 4 * MIB - 1):
        with pytest.raises(ApiError) as error:
            decompress(codec, bomb, limit_bytes)
        assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE
    assert len(decompress(codec, bomb, 4 * MIB)) == 4 * MIB


def test_plain_data_obeys_the_limit_too() -> None:
    with pytest.raises(ApiError):
        decompress(Codec.NONE, b"123", 2)


@pytest.mark.parametrize("codec", PACKED)
def test_cut_and_damaged_data_is_refused(codec: Codec) -> None:
    packed = compress(codec, b"some words, some more words, and some words again" * 9)
    rng = random.Random(3)
    for size in range(len(packed)):
        # Only an xerial stream without blocks is whole when cut.
        assert outcome(codec, packed[:size], 10_000) in REFUSED or (codec is Codec.SNAPPY and size <= 16)
    for _ in range(300):
        damaged = bytearray(packed)
        damaged[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
        assert outcome(codec, damaged, 10_000) in (*REFUSED, ErrorCode.NONE)


@pytest.mark.parametrize("codec", PACKED)
@given(data=st.binary(max_size=200))
@settings(max_examples=60)
def test_noise_is_refused_or_unpacked_within_the_limit(codec: Codec, data: bytes) -> None:
    assert outcome(codec, data, 1_000) in (*REFUSED, ErrorCode.NONE)


def test_snappy_is_written_as_xerial_and_read_raw_too() -> None:
    packed = compress(Codec.SNAPPY, b"x" * 100_000)
    assert packed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    raw = bytes(cramjam.snappy.compress_raw(b"x" * 100_000))
    assert decompress(Codec.SNAPPY, raw, MIB) == b"x" * 100_000


def test_snappy_block_that_lies_about_its_size() -> None:
    packed = bytearray(compress(Codec.SNAPPY, b"x" * 100))
    packed[16:20] = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(ApiError, match="cut off"):
        decompress(Codec.SNAPPY, packed, MIB)


def test_lz4_is_kafkas_frame_at_the_default_level() -> None:
    packed = compress(Codec.LZ4, b"y" * 100_000)
    assert packed.startswith(bytes.fromhex("04224d18604082")), "64 KiB independent blocks, no checksums"
    assert packed.endswith(bytes(4))


@pytest.mark.parametrize("linked", [True, False])
@pytest.mark.parametrize("checksum", [True, False])
def test_lz4_frames_of_other_writers(linked: bool, checksum: bool) -> None:
    packer = cramjam.lz4.Compressor(content_checksum=checksum, block_linked=linked)
    packer.compress(b"words and words " * 20_000)
    packed = bytes(packer.finish())
    assert decompress(Codec.LZ4, packed, MIB) == b"words and words " * 20_000
    with pytest.raises(ApiError):
        decompress(Codec.LZ4, packed, 1_000)


def test_gzip_and_zstd_of_several_members() -> None:
    packed = gzip.compress(b"one") + gzip.compress(b"two")
    assert decompress(Codec.GZIP, packed, 6) == b"onetwo"
    with pytest.raises(ApiError):
        decompress(Codec.GZIP, packed, 5)
    packed = compress(Codec.ZSTD, b"one") + compress(Codec.ZSTD, b"two")
    assert decompress(Codec.ZSTD, packed, 6) == b"onetwo"
