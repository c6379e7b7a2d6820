"""XXH3 with 64 bits and the default secret: the hash that Kafka stores of the topics a group reads.

A group's records contain it, so a coordinator that loads them (Ottla, or a Kafka on Ottla's directory) can tell whether
the topics changed in the meantime; both must compute the same hash.
"""

from __future__ import annotations

from struct import unpack_from

_MASK = 0xFFFFFFFFFFFFFFFF
_P32_1, _P32_2, _P32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_P64_1, _P64_2, _P64_3, _P64_4, _P64_5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_PRIME_MX1, _PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE, _LANES = 64, 8
_STRIPES_PER_BLOCK = (len(_SECRET) - _STRIPE) // 8
_MIDSIZE_MAX = 240


def xxh3_64(data: bytes) -> int:
    """Return the hash as an unsigned number."""
    length = len(data)
    if length <= 16:
        return _short(data, length)
    if length <= 128:
        return _up_to_128(data, length)
    if length <= _MIDSIZE_MAX:
        return _up_to_240(data, length)
    return _long(data, length)


def _u32(data: bytes, at: int) -> int:
    value: int = unpack_from("<I", data, at)[0]
    return value


def _u64(data: bytes, at: int) -> int:
    value: int = unpack_from("<Q", data, at)[0]
    return value


def _fold(one: int, other: int) -> int:
    """Multiply, and XOR the two halves of the product."""
    product = one * other
    return (product & _MASK) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * _PRIME_MX1 & _MASK
    return value ^ (value >> 32)


def _avalanche_64(value: int) -> int:
    value ^= value >> 33
    value = value * _P64_2 & _MASK
    value ^= value >> 29
    value = value * _P64_3 & _MASK
    return value ^ (value >> 32)


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _short(data: bytes, length: int) -> int:
    if length > 8:
        low = _u64(data, 0) ^ _u64(_SECRET, 24) ^ _u64(_SECRET, 32)
        high = _u64(data, length - 8) ^ _u64(_SECRET, 40) ^ _u64(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche((length + swapped + high + _fold(low, high)) & _MASK)
    if length >= 4:
        value = (_u32(data, length - 4) + (_u32(data, 0) << 32)) ^ _u64(_SECRET, 8) ^ _u64(_SECRET, 16)
        value ^= _rotated(value, 49) ^ _rotated(value, 24)
        value = value * _PRIME_MX2 & _MASK
        value ^= (value >> 35) + length
        value = value * _PRIME_MX2 & _MASK
        return value ^ (value >> 28)
    if length:
        combined = data[0] << 16 | data[length >> 1] << 24 | data[-1] | length << 8
        return _avalanche_64(combined ^ _u32(_SECRET, 0) ^ _u32(_SECRET, 4))
    return _avalanche_64(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))


def _mix16(data: bytes, at: int, secret_at: int) -> int:
    return _fold(_u64(data, at) ^ _u64(_SECRET, secret_at), _u64(data, at + 8) ^ _u64(_SECRET, secret_at + 8))


def _up_to_128(data: bytes, length: int) -> int:
    total = length * _P64_1
    for pair in range((length - 1) // 32 + 1):
        total += _mix16(data, 16 * pair, 32 * pair) + _mix16(data, length - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche(total & _MASK)


def _up_to_240(data: bytes, length: int) -> int:
    total = length * _P64_1
    for at in range(8):
        total += _mix16(data, 16 * at, 16 * at)
    total = _avalanche(total & _MASK)
    for at in range(8, length // 16):
        total += _mix16(data, 16 * at, 16 * (at - 8) + 3)
    total += _mix16(data, length - 16, 136 - 17)
    return _avalanche(total & _MASK)


def _long(data: bytes, length: int) -> int:
    lanes = [_P32_3, _P64_1, _P64_2, _P64_3, _P64_4, _P32_2, _P64_5, _P32_1]
    block = _STRIPE * _STRIPES_PER_BLOCK
    blocks = (length - 1) // block
    for at in range(blocks):
        for stripe in range(_STRIPES_PER_BLOCK):
            _accumulate(lanes, data, at * block + stripe * _STRIPE, 8 * stripe)
        _scramble(lanes)
    for stripe in range((length - 1 - block * blocks) // _STRIPE):
        _accumulate(lanes, data, blocks * block + stripe * _STRIPE, 8 * stripe)
    _accumulate(lanes, data, length - _STRIPE, len(_SECRET) - _STRIPE - 7)
    total = length * _P64_1
    for at in range(0, _LANES, 2):
        total += _fold(lanes[at] ^ _u64(_SECRET, 11 + 8 * at), lanes[at + 1] ^ _u64(_SECRET, 19 + 8 * at))
    return _avalanche(total & _MASK)


def _accumulate(lanes: list[int], data: bytes, at: int, secret_at: int) -> None:
    for lane in range(_LANES):
        value = _u64(data, at + 8 * lane)
        keyed = value ^ _u64(_SECRET, secret_at + 8 * lane)
        lanes[lane ^ 1] = lanes[lane ^ 1] + value & _MASK
        lanes[lane] = lanes[lane] + (keyed & 0xFFFFFFFF) * (keyed >> 32) & _MASK


def _scramble(lanes: list[int]) -> None:
    for lane in range(_LANES):
        value = lanes[lane]
        value ^= value >> 47 ^ _u64(_SECRET, len(_SECRET) - _STRIPE + 8 * lane)
        lanes[lane] = value * _P32_1 & _MASK
