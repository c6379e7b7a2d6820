"""Random messages of any Protobuf type, as trees (tests/support/java/protobuf.py): the same for the same seed."""

from __future__ import annotations

import base64
import math
import random
import struct
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

_F = FieldDescriptor
_BITS = {
    **dict.fromkeys((_F.TYPE_INT32, _F.TYPE_SINT32, _F.TYPE_SFIXED32, _F.TYPE_UINT32, _F.TYPE_FIXED32), 32),
    **dict.fromkeys((_F.TYPE_INT64, _F.TYPE_SINT64, _F.TYPE_SFIXED64, _F.TYPE_UINT64, _F.TYPE_FIXED64), 64),
}
_UNSIGNED = (_F.TYPE_UINT32, _F.TYPE_FIXED32, _F.TYPE_UINT64, _F.TYPE_FIXED64)


def random_trees(message: Descriptor, seed: str, count: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [_tree(rng, message) for _ in range(count)]


def _tree(rng: random.Random, message: Descriptor) -> dict[str, Any]:
    made: dict[str, Any] = {}
    chosen: set[str] = set()  # one field of each oneof
    for field in rng.sample(list(message.fields), len(message.fields)):
        oneof = field.containing_oneof
        if (rng.random() < 0.2 and not field.is_required) or (oneof is not None and oneof.name in chosen):
            continue
        chosen |= set() if oneof is None else {oneof.name}
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            entries = [_tree(rng, field.message_type) for _ in range(rng.randint(0, 4))]
            made[field.name] = list({str(entry.get("key")): entry for entry in entries}.values())
        elif field.is_repeated:
            made[field.name] = [_leaf(rng, field) for _ in range(rng.randint(0, 4))]
        else:
            made[field.name] = _leaf(rng, field)
    return made


def _leaf(rng: random.Random, field: FieldDescriptor) -> Any:
    if field.message_type is not None:
        of = field.message_type
        return _time(rng) if of.name in ("Timestamp", "Duration") else _tree(rng, of)
    if field.type in _BITS:
        bits = _BITS[field.type] - (field.type not in _UNSIGNED)
        number = rng.getrandbits(rng.randint(0, bits))
        return str(number if field.type in _UNSIGNED or rng.random() < 0.5 else -number - 1)
    if field.type == _F.TYPE_ENUM:
        known = [each.number for each in field.enum_type.values]
        return str(rng.choice(known if field.enum_type.is_closed else [*known, 77, -(2**31)]))
    if field.type in (_F.TYPE_FLOAT, _F.TYPE_DOUBLE):
        return _bits(rng, field.type == _F.TYPE_FLOAT)
    if field.type == _F.TYPE_BOOL:
        return rng.random() < 0.5
    if field.type == _F.TYPE_BYTES:
        return base64.b64encode(rng.randbytes(rng.randint(0, 20))).decode()
    ranges = [(0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0x10000, 0x10FFFF)]
    return "".join(chr(rng.randint(*rng.choice(ranges))) for _ in range(rng.choice([0, 1, 5, 50])))


def _bits(rng: random.Random, is_float: bool) -> str:
    least, most = (-149, 127) if is_float else (-1074, 1023)
    some = math.ldexp(rng.uniform(-1, 1), rng.randint(least, most))
    value = rng.choice([0.0, -0.0, math.inf, -math.inf, math.nan, some, some, some])
    if is_float:
        (value,) = struct.unpack("<f", struct.pack("<f", value))
    (bits,) = struct.unpack("<q", struct.pack("<d", value))
    return str(bits)


def _time(rng: random.Random) -> dict[str, Any]:
    """Most of the calendar; of either sign, also where its definition allows only one."""
    seconds = rng.choice([1, -1]) * rng.getrandbits(rng.randint(0, 44))
    nanos = rng.choice([0, rng.randrange(10**9), rng.randrange(10**6) * 1000, -rng.randrange(10**9)])
    return {name: str(value) for name, value in (("seconds", seconds), ("nanos", nanos)) if rng.random() < 0.9}
