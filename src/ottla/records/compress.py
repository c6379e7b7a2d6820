"""The four codecs in Kafka's framings, with a bound on the decompressed size of a batch.

- gzip: one gzip member (more are read).
- snappy: xerial's framing (magic, version, then length-prefixed raw blocks of at most 32 KiB); raw snappy is read too.
- lz4: an LZ4 frame of independent 64 KiB blocks without checksums, which is all that Kafka's Java reader understands.
- zstd: one frame (more are read).

Rules: the limit holds during decompression, not afterwards. gzip stops at it; snappy declares its sizes; for lz4 and
zstd the block headers give an upper bound, and only if that is above the limit, the data is decompressed into a buffer
of the limit's size. Data that cannot be decompressed raises `ApiError(INVALID_RECORD)`, too much of it
MESSAGE_TOO_LARGE.
"""

import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import cache
from typing import Any

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.limits import PACKED_AT_ONCE_BYTES

Buffer = bytes | bytearray | memoryview


class Codec(IntEnum):
    """The codec id in the lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class _Codecs(dict[int, Codec]):
    def __missing__(self, codec_id: int) -> Codec:
        raise ApiError(ErrorCode.INVALID_RECORD, f"Unknown compression type id: {codec_id}")


CODEC_OF_ID: dict[int, Codec] = _Codecs({int(codec): codec for codec in Codec})

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
# Magic, version 1, minimum compatible version 1.
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_SNAPPY_BLOCK_BYTES = 32 * 1024

_LZ4_MAGIC = b"\x04\x22\x4d\x18"
# Magic, then: version 1, independent blocks, no checksums, 64 KiB blocks, and the checksum byte of the header.
_LZ4_HEADER = _LZ4_MAGIC + b"\x60\x40\x82"
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_END = bytes(4)
_LZ4_STORED_FLAG = 0x80000000
_LZ4_DEFAULT_LEVEL = 9
# The highest level of liblz4's high compression; lz4-java clamps in the same way.
_LZ4_LEVEL_MAX = 12

_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE_MAGIC = 0x184D2A50
_ZSTD_BLOCK_BYTES_MAX = 128 * 1024
_ZSTD_DEFAULT_LEVEL = 3


@cache
def _native() -> Any:
    """Import the native codec library: it is large, and a broker that never looks inside a batch does not need it."""
    import cramjam

    return cramjam


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Compress `data` in the codec's Kafka framing. `level` is the codec's own; None is Kafka's default."""
    if codec == Codec.NONE:
        return bytes(data)
    if codec == Codec.GZIP:
        packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
        return packer.compress(data) + packer.flush()
    if codec == Codec.SNAPPY:
        return _compress_snappy(data)
    if codec == Codec.LZ4:
        return _compress_lz4(data, _LZ4_DEFAULT_LEVEL if level is None else level)
    return bytes(_native().zstd.compress(data, level=_ZSTD_DEFAULT_LEVEL if level is None else level))


def compressing(codec: Codec, data: Buffer, level: int | None = None) -> Iterator[Buffer]:
    """Like `compress`, in pieces (some of them empty), with a bounded amount of work for each."""
    if codec == Codec.NONE or len(data) <= PACKED_AT_ONCE_BYTES:
        yield compress(codec, data, level)
        return
    packer: Any
    if codec == Codec.GZIP:
        packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
    elif codec == Codec.SNAPPY:
        packer = _Blocks(_XERIAL_HEADER, _snappy_blocks, b"")
    elif codec == Codec.LZ4 and level in (None, _LZ4_DEFAULT_LEVEL):
        packer = _Blocks(_LZ4_HEADER, _lz4_blocks, _LZ4_END)
    elif codec == Codec.LZ4:
        assert level is not None
        packer = _Whole(_lz4_compressor(level))
    else:
        packer = _Whole(_native().zstd.Compressor(level=_ZSTD_DEFAULT_LEVEL if level is None else level))
    view = memoryview(data)
    for start in range(0, len(view), PACKED_AT_ONCE_BYTES):
        yield packer.compress(view[start : start + PACKED_AT_ONCE_BYTES])
    yield packer.flush()


class _Blocks:
    """A framing of independent blocks, with the interface of zlib's compressor."""

    def __init__(self, header: bytes, blocks: Callable[[bytearray, memoryview], None], end: bytes) -> None:
        self._header = header
        self._blocks = blocks
        self._end = end

    def compress(self, data: memoryview) -> Buffer:
        out, self._header = bytearray(self._header), b""
        self._blocks(out, data)
        return out

    def flush(self) -> bytes:
        return self._end


class _Whole:
    """A compressor of the native library, which returns its output only at the end."""

    def __init__(self, packer: Any) -> None:
        self._packer = packer

    def compress(self, data: memoryview) -> bytes:
        self._packer.compress(bytes(data))
        return b""

    def flush(self) -> bytes:
        return bytes(self._packer.finish())


def decompress(codec: Codec, data: Buffer, limit_bytes: int) -> bytes:
    """Decompress `data`; the result is never larger than `limit_bytes`."""
    if codec == Codec.NONE:
        if len(data) > limit_bytes:
            _refuse_size(limit_bytes)
        return bytes(data)
    try:
        return _DECOMPRESS[codec](data, limit_bytes)
    except (_native().DecompressionError, zlib.error, IndexError, ValueError, OSError) as error:
        raise ApiError(
            ErrorCode.INVALID_RECORD, f"Failed to decompress {codec.name.lower()} records: {error}"
        ) from None


def _refuse_size(limit_bytes: int) -> None:
    raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, f"The batch unpacks to more than {limit_bytes} bytes")


def _decompress_gzip(data: Buffer, limit_bytes: int) -> bytes:
    parts: list[bytes] = []
    left = limit_bytes
    rest: Buffer = data
    while rest or not parts:
        unpacker = zlib.decompressobj(31)
        part = unpacker.decompress(rest, left + 1)
        if len(part) > left:
            _refuse_size(limit_bytes)
        if not unpacker.eof:
            raise ValueError("the gzip stream is cut off")
        parts.append(part)
        left -= len(part)
        rest = unpacker.unused_data
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _compress_snappy(data: Buffer) -> bytes:
    out = bytearray(_XERIAL_HEADER)
    _snappy_blocks(out, memoryview(data))
    return bytes(out)


def _snappy_blocks(out: bytearray, view: memoryview) -> None:
    for start in range(0, len(view), _SNAPPY_BLOCK_BYTES):
        block = bytes(_native().snappy.compress_raw(view[start : start + _SNAPPY_BLOCK_BYTES]))
        out += len(block).to_bytes(4, "big")
        out += block


def _decompress_snappy(data: Buffer, limit_bytes: int) -> bytes:
    view = memoryview(data)
    if view[:8] != _XERIAL_MAGIC:
        return _decompress_snappy_block(view, limit_bytes, limit_bytes)
    out = bytearray()
    pos, end = len(_XERIAL_HEADER), len(view)
    while pos < end:
        size = int.from_bytes(view[pos : pos + 4], "big")
        pos += 4
        if size > end - pos:
            raise ValueError(f"a block of {size} bytes is cut off after {end - pos} bytes")
        out += _decompress_snappy_block(view[pos : pos + size], limit_bytes - len(out), limit_bytes)
        pos += size
    return bytes(out)


def _decompress_snappy_block(block: memoryview, left_bytes: int, limit_bytes: int) -> bytes:
    if _native().snappy.decompress_raw_len(block) > left_bytes:
        _refuse_size(limit_bytes)
    return bytes(_native().snappy.decompress_raw(block))


def _compress_lz4(data: Buffer, level: int) -> bytes:
    if level != _LZ4_DEFAULT_LEVEL:
        # As in Kafka, the default level is the fast algorithm and every other level the high compression one. The
        # library offers that only for whole frames, with a checksum per block, which all readers understand.
        packer = _lz4_compressor(level)
        packer.compress(data)
        return bytes(packer.finish())
    out = bytearray(_LZ4_HEADER)
    _lz4_blocks(out, memoryview(data))
    out += _LZ4_END
    return bytes(out)


def _lz4_compressor(level: int) -> Any:
    return _native().lz4.Compressor(level=min(level, _LZ4_LEVEL_MAX), content_checksum=False, block_linked=False)


def _lz4_blocks(out: bytearray, view: memoryview) -> None:
    for start in range(0, len(view), _LZ4_BLOCK_BYTES):
        plain = view[start : start + _LZ4_BLOCK_BYTES]
        block = bytes(_native().lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            out += len(block).to_bytes(4, "little")
            out += block
        else:
            out += (len(plain) | _LZ4_STORED_FLAG).to_bytes(4, "little")
            out += plain


def _decompress_lz4(data: Buffer, limit_bytes: int) -> bytes:
    return _unpack_framed(_native().lz4, data, _lz4_size_max(data), limit_bytes)


def _lz4_size_max(data: Buffer) -> int:
    """Return an upper bound of the decompressed size of an LZ4 frame, from its block headers."""
    view = memoryview(data)
    if view[:4] != _LZ4_MAGIC:
        raise ValueError("not an LZ4 frame")
    flags, block_code = view[4], (view[5] >> 4) & 7
    if block_code < 4:
        raise ValueError(f"unknown LZ4 block size code {block_code}")
    block_bytes_max = 1 << (8 + 2 * block_code)
    pos = 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    checksum_bytes = 4 if flags & 0x10 else 0
    size_max, end = 0, len(view)
    while pos + 4 <= end:
        size = int.from_bytes(view[pos : pos + 4], "little")
        if size == 0:
            break
        stored = size & _LZ4_STORED_FLAG
        size &= ~_LZ4_STORED_FLAG
        size_max += size if stored else block_bytes_max
        pos += 4 + size + checksum_bytes
    return size_max


def _decompress_zstd(data: Buffer, limit_bytes: int) -> bytes:
    return _unpack_framed(_native().zstd, data, _zstd_size_max(data), limit_bytes)


def _zstd_size_max(data: Buffer) -> int:
    """Return an upper bound of the decompressed size of a sequence of zstd frames, from their block headers."""
    view = memoryview(data)
    size_max, pos, end = 0, 0, len(view)
    while pos < end:
        magic = int.from_bytes(view[pos : pos + 4], "little")
        if magic & 0xFFFFFFF0 == _ZSTD_SKIPPABLE_MAGIC:
            pos += 8 + int.from_bytes(view[pos + 4 : pos + 8], "little")
            continue
        if magic != _ZSTD_MAGIC:
            raise ValueError("not a zstd frame")
        descriptor = view[pos + 4]
        single_segment = descriptor & 0x20
        content_size_bytes = (1 if single_segment else 0, 2, 4, 8)[descriptor >> 6]
        pos += 5 + (0 if single_segment else 1) + (0, 1, 2, 4)[descriptor & 3] + content_size_bytes
        last = 0
        while not last:
            if pos + 3 > end:
                raise ValueError("the zstd frame is cut off")
            block = int.from_bytes(view[pos : pos + 3], "little")
            last, kind, size = block & 1, (block >> 1) & 3, block >> 3
            size_max += _ZSTD_BLOCK_BYTES_MAX if kind == 2 else size
            pos += 3 + (1 if kind == 1 else size)
        if descriptor & 0x04:
            pos += 4
    return size_max


def _unpack_framed(module: Any, data: Buffer, size_max: int, limit_bytes: int) -> bytes:
    if size_max <= limit_bytes:
        return bytes(module.decompress(data))
    buffer = bytearray(limit_bytes)
    try:
        size = module.decompress_into(data, buffer)
    except _native().DecompressionError as error:
        if "whole buffer" in str(error):
            _refuse_size(limit_bytes)
        raise
    del buffer[size:]
    return bytes(buffer)


_DECOMPRESS: dict[Codec, Callable[[Buffer, int], bytes]] = {
    Codec.GZIP: _decompress_gzip,
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _decompress_lz4,
    Codec.ZSTD: _decompress_zstd,
}
