"""Avro payloads as JSON values and back, as they are written on a command line.

Rules:
- Logical types are ignored: a timestamp is its number, a decimal its bytes.
- Bytes are a string with a character of U+0000 to U+00FF per byte, as in Avro's own JSON encoding.
- A union of null and one other type is written without a tag. A value of any other union has the tag of Avro's JSON
  encoding, `{"string": "x"}`. When JSON is read, both forms are accepted everywhere; without a tag the first type that
  the value fits counts.
- A field that is left out has its default. A field that the record does not have is an error.
"""

from __future__ import annotations

import math
import struct

from ottla.schemas.avro import parse_avro
from ottla.schemas.avro.types import Array, AvroRecord, AvroType, Enum, Fixed, Map, Primitive, Union, full_name
from ottla.schemas.jackson import Json
from ottla.schemas.readable_avro import AvroPayloads
from ottla.schemas.schema import SchemaSource
from ottla.wire.varint import zigzag_bytes

_INT_MIN, _INT_MAX, _LONG_MIN, _LONG_MAX = -(1 << 31), (1 << 31) - 1, -(1 << 63), (1 << 63) - 1
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_SHOWN_CHARS_MAX = 60


class AvroValues:
    """Converts values of one schema. Raises InvalidSchema if the schema is invalid."""

    def __init__(self, source: SchemaSource) -> None:
        self._schema = parse_avro(source, strict=False).schema
        self._payloads = AvroPayloads(source)

    def to_payload(self, value: Json) -> bytes:
        """Return a JSON value as a payload. Raises ValueError, which says where the value does not fit the schema."""
        out = bytearray()
        try:
            _encode(self._schema, value, out, "$")
        except RecursionError:
            raise ValueError("the value is nested too deeply") from None
        return bytes(out)

    def to_json(self, payload: bytes) -> Json:
        """Return a payload as a JSON value. Raises ValueError, which says why the payload cannot be read."""
        why = self._payloads.why_unreadable(payload)
        if why is not None:
            raise ValueError(why)
        return _decode(self._schema, payload, 0)[0]


# --- to Avro ----------------------------------------------------------------------------------------------------------


def _encode(schema: AvroType, value: Json, out: bytearray, path: str) -> None:
    match schema:
        case Primitive():
            _encode_primitive(schema.type, value, out, path)
        case Enum():
            if value not in schema.symbols:
                raise ValueError(f"{path}: {_shown(value)} is none of {', '.join(schema.symbols)}")
            out += zigzag_bytes(schema.symbols.index(value))
        case Fixed():
            data = _bytes_of(value, path)
            if len(data) != schema.size:
                raise ValueError(f"{path}: {len(data)} bytes, and {schema.name.full} has {schema.size}")
            out += data
        case Array():
            for number, item in enumerate(_begin_block(value, list, "an array", out, path)):
                _encode(schema.items, item, out, f"{path}[{number}]")
            if value:
                out.append(0)
        case Map():
            for key, item in _begin_block(value, dict, "an object", out, path).items():
                _encode_primitive("string", key, out, path)
                _encode(schema.values, item, out, f"{path}.{key}")
            if value:
                out.append(0)
        case Union():
            _encode_union(schema, value, out, path)
        case AvroRecord():
            _encode_record(schema, value, out, path)
        case _:
            raise AssertionError("the parser leaves no other node behind")


def _encode_record(schema: AvroRecord, value: Json, out: bytearray, path: str) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"{path}: {_shown(value)} is no object, as {schema.name.full} needs")
    strange = [name for name in value if name not in schema.by_name]
    if strange:
        raise ValueError(f"{path}: {schema.name.full} has no field {strange[0]!r}, only {', '.join(schema.by_name)}")
    for field in schema.fields:
        if field.name in value:
            _encode(field.type, value[field.name], out, f"{path}.{field.name}")
        elif field.has_default:
            _encode(field.type, field.default, out, f"{path}.{field.name}")
        else:
            raise ValueError(f"{path}: the field {field.name!r} of {schema.name.full} is missing, and has no default")


def _encode_union(schema: Union, value: Json, out: bytearray, path: str) -> None:
    names = [full_name(branch) for branch in schema.branches]
    choices = [(number, value) for number in range(len(names))]
    if isinstance(value, dict) and len(value) == 1 and (tag := next(iter(value))) in names:
        choices.insert(0, (names.index(tag), value[tag]))
    reasons: list[str] = []
    for number, content in choices:
        trial = bytearray()
        try:
            _encode(schema.branches[number], content, trial, path)
        except ValueError as error:
            if names[number] != "null":
                reasons.append(str(error))
            continue
        out += zigzag_bytes(number)
        out += trial
        return
    # The first reason is that of the type with the tag, or of the only type.
    is_clear = len(choices) > len(names) or (len(reasons) == 1 and value is not None)
    raise ValueError(reasons[0] if is_clear else f"{path}: {_shown(value)} is none of {', '.join(names)}")


def _encode_primitive(name: str, value: Json, out: bytearray, path: str) -> None:
    if name == "null" and value is None:
        return
    if name == "boolean" and isinstance(value, bool):
        out.append(value)
    elif name in ("int", "long") and isinstance(value, int) and not isinstance(value, bool):
        low, high = (_INT_MIN, _INT_MAX) if name == "int" else (_LONG_MIN, _LONG_MAX)
        if not low <= value <= high:
            raise ValueError(f"{path}: {value} is no {name}: it has more bits")
        out += zigzag_bytes(value)
    elif name in ("float", "double") and (number := _float_of(value)) is not None:
        try:
            out += struct.pack("<f" if name == "float" else "<d", number)
        except OverflowError:
            raise ValueError(f"{path}: {value} is no {name}: it is too large") from None
    elif name == "string" and isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        out += zigzag_bytes(len(data))
        out += data
    elif name == "bytes":
        data = _bytes_of(value, path)
        out += zigzag_bytes(len(data))
        out += data
    else:
        raise ValueError(f"{path}: {_shown(value)} is no {name}")


def _float_of(value: Json) -> float | None:
    if isinstance(value, str):
        return _NOT_FINITE.get(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _bytes_of(value: Json, path: str) -> bytes:
    try:
        if isinstance(value, str):
            return value.encode("latin-1")
    except UnicodeEncodeError:
        pass
    raise ValueError(f"{path}: {_shown(value)} is no string of U+0000 to U+00FF, as bytes are written")


def _begin_block(
    value: Json, kind: type[list[Json]] | type[dict[str, Json]], noun: str, out: bytearray, path: str
) -> Json:
    """Write the count of the only block. It is 0 without items, which also ends the list."""
    if not isinstance(value, kind):
        raise ValueError(f"{path}: {_shown(value)} is not {noun}")
    out += zigzag_bytes(len(value))
    return value


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS_MAX else text[:_SHOWN_CHARS_MAX] + "…"


# --- to JSON: of a payload that `AvroPayloads` has found readable -----------------------------------------------------


def _decode(schema: AvroType, data: bytes, at: int) -> tuple[Json, int]:
    match schema:
        case Primitive():
            return _decode_primitive(schema.type, data, at)
        case Enum():
            number, at = _long(data, at)
            return schema.symbols[number], at
        case Fixed():
            return data[at : at + schema.size].decode("latin-1"), at + schema.size
        case AvroRecord():
            found: dict[str, Json] = {}
            for field in schema.fields:
                found[field.name], at = _decode(field.type, data, at)
            return found, at
        case Union():
            number, at = _long(data, at)
            branch = schema.branches[number]
            value, at = _decode(branch, data, at)
            is_tagged = value is not None and sum(full_name(each) != "null" for each in schema.branches) > 1
            return {full_name(branch): value} if is_tagged else value, at
        case Array():
            items: list[Json] = []
            count, at = _block(data, at)
            while count:
                for _ in range(count):
                    item, at = _decode(schema.items, data, at)
                    items.append(item)
                count, at = _block(data, at)
            return items, at
        case Map():
            entries: dict[str, Json] = {}
            count, at = _block(data, at)
            while count:
                for _ in range(count):
                    key, at = _decode_primitive("string", data, at)
                    entries[key], at = _decode(schema.values, data, at)
                count, at = _block(data, at)
            return entries, at
        case _:
            raise AssertionError("the parser leaves no other node behind")


def _decode_primitive(name: str, data: bytes, at: int) -> tuple[Json, int]:
    if name == "null":
        return None, at
    if name == "boolean":
        return data[at] == 1, at + 1
    if name in ("int", "long"):
        return _long(data, at)
    if name in ("float", "double"):
        size = 4 if name == "float" else 8
        number = struct.unpack_from("<f" if size == 4 else "<d", data, at)[0]
        return number if math.isfinite(number) else _not_finite_text(number), at + size
    size, at = _long(data, at)
    content = data[at : at + size]
    return content.decode("utf-8" if name == "string" else "latin-1"), at + size


def _not_finite_text(number: float) -> str:
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _block(data: bytes, at: int) -> tuple[int, int]:
    """Return how many items a block has (0 at the end), and the position after its header."""
    count, at = _long(data, at)
    if count < 0:
        _, at = _long(data, at)
        count = -count
    return count, at


def _long(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    number &= (1 << 64) - 1
    return (number >> 1) ^ -(number & 1), at
