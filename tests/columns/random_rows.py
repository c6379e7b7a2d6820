"""Random values of any type of column, the same for the same seed: rows that nobody thought of."""

from __future__ import annotations

import math
import random
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa

_DAY_NS = 86_400_000_000_000


def random_rows(of: pa.DataType, seed: str, count: int) -> pa.Array:
    """So many values of this type, some of them null."""
    rng = random.Random(seed)
    return _array(of, [_maybe(of, rng) for _ in range(count)])


def _maybe(of: pa.DataType, rng: random.Random) -> Any:
    return None if rng.random() < 0.1 else _value(of, rng)


def _value(of: pa.DataType, rng: random.Random) -> Any:
    kinds = pa.types
    if kinds.is_null(of):
        return None
    if kinds.is_boolean(of):
        return rng.random() < 0.5
    if kinds.is_time64(of):
        return rng.randrange(_DAY_NS)
    if kinds.is_floating(of):
        return _float(rng, of.bit_width)
    if kinds.is_decimal(of):
        return Decimal(_sign(rng) * rng.randrange(10 ** rng.randint(0, of.precision))).scaleb(-of.scale)
    if kinds.is_string(of):
        return _text(rng)
    if kinds.is_binary(of):
        return rng.randbytes(rng.choice([0, 1, 2, 12, 16, rng.randint(0, 40)]))
    if kinds.is_map(of):
        keys = {str(key): key for key in (_value(of.key_type, rng) for _ in range(rng.randint(0, 4)))}
        return [(key, _maybe(of.item_type, rng)) for key in keys.values()]
    if kinds.is_list(of):
        return [_maybe(of.value_type, rng) for _ in range(rng.randint(0, 5))]
    if kinds.is_struct(of):
        return {field.name: _maybe(field.type, rng) for field in of}
    return _whole(rng, of.bit_width)  # integers, dates, moments, intervals


def _sign(rng: random.Random) -> int:
    return rng.choice([1, -1])


def _whole(rng: random.Random, bits: int) -> int:
    """Of any length, so that small numbers come as often as large ones."""
    number = rng.getrandbits(rng.randint(0, bits - 1))
    return number if rng.random() < 0.5 else -number - 1


def _float(rng: random.Random, bits: int) -> float:
    least, most = (-149, 127) if bits == 32 else (-1074, 1023)
    return math.ldexp(rng.uniform(-1, 1), rng.randint(least, most))


def _text(rng: random.Random) -> str:
    if rng.random() < 0.2:
        return str(uuid.UUID(int=rng.getrandbits(128)))
    ranges = [(0x20, 0x7E), (0, 0x7FF), (0x800, 0xD7FF), (0xE000, 0x10FFFF)]
    return "".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(rng.choice([0, 1, 3, 20, 70])))


def _array(of: pa.DataType, values: list[Any]) -> pa.Array:
    """Moments by the number that is inside, which need not be one of Python's; also in lists, maps and structs."""
    return pa.array(values, _plain(of)).cast(of) if _plain(of) != of else pa.array(values, of)


def _plain(of: pa.DataType) -> pa.DataType:
    kinds = pa.types
    if kinds.is_date32(of):
        return pa.int32()
    if kinds.is_timestamp(of) or kinds.is_duration(of) or kinds.is_time64(of):
        return pa.int64()
    if kinds.is_map(of):
        return pa.map_(_plain(of.key_type), _plain(of.item_type))
    if kinds.is_list(of):
        return pa.list_(_plain(of.value_type))
    if kinds.is_struct(of):
        return pa.struct([(field.name, _plain(field.type)) for field in of])
    return of
