"""Whether a payload is Avro of a schema: a walk over its bytes, which keeps nothing.

A schema is compiled, once, to a function per type that finds the end of a value; a payload is readable if there is one.

Rules:
- Readers can read every payload that is accepted here: Java's Avro, and typed columns, which have the same rules
  (`columns.avro.run`); tests/columns/avro/test_readers.py compares the three. Bytes that Java would read as another
  value than the written one (a boolean of 2 as false, a number beyond its 32 bits as another) are refused.
- Logical types are ignored: a timestamp out of any range is a long like any other.
- Time and depth are bounded by the payload's size: fields without bytes count as steps, and the number of items without
  bytes (a few bytes could claim billions of them) is bounded as in the readers.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.model.limits import AVRO_DEPTH_MAX, AVRO_STEPS_PER_BYTE_MAX, ITEMS_OF_NO_SIZE_MAX
from ottla.schemas.avro import parse_avro
from ottla.schemas.avro.types import Array, AvroRecord, AvroType, Enum, Fixed, Map, Primitive, Union, UnresolvedName
from ottla.schemas.schema import SchemaSource

# Returns where the value ends that begins at a position of a payload, given its depth.
Past = Callable[[bytes, int, int], int]

# The most bytes of a varint of 32 bits (as branches and symbols are, too) and of one of 64, with seven bits each.
_INT_BYTES, _LONG_BYTES = 5, 10


class _Unreadable(Exception):
    """The payload cannot be read; the message says why."""


class AvroPayloads:
    """Checks payloads of one schema. Raises InvalidSchema if the schema is invalid."""

    def __init__(self, source: SchemaSource) -> None:
        self._walk = _Walk()
        self._past = self._walk.past(parse_avro(source, strict=False).schema)

    def why_unreadable(self, payload: bytes) -> str | None:
        """Return why the payload cannot be read; None if it can."""
        self._walk.begin(len(payload))
        try:
            end = self._past(payload, 0, 0)
        except IndexError:
            end = len(payload) + 1
        except UnicodeDecodeError:
            return "a string is not UTF-8"
        except _Unreadable as error:
            return str(error)
        left = len(payload) - end
        if left < 0:
            return "the payload ends too early"
        return f"{left} bytes are left over behind the value" if left else None


class _Walk:
    """Makes the functions of a schema. They share the bounds of the current payload."""

    def __init__(self) -> None:
        self._steps_left = 0
        self._items_left = 0
        self._records: dict[int, Past] = {}  # by identity

    def begin(self, size: int) -> None:
        """Set the bounds for a payload of a size."""
        self._steps_left = (size + 1) * AVRO_STEPS_PER_BYTE_MAX
        self._items_left = ITEMS_OF_NO_SIZE_MAX

    def past(self, schema: AvroType) -> Past:
        match schema:
            case Primitive():
                return _PRIMITIVES[schema.type]
            case Fixed():
                return _over(schema.size)
            case Enum():
                return _enum(len(schema.symbols))
            case Array():
                return self._items(schema.items, None)
            case Map():
                return self._items(schema.values, _string)
            case Union():
                return self._union(schema)
            case AvroRecord():
                return self._records.get(id(schema)) or self._record(schema)
            case UnresolvedName():
                raise AssertionError("the parser leaves none behind")

    def _record(self, schema: AvroRecord) -> Past:
        fields: list[Past] = []
        steps = len(schema.fields) + 1

        def past(data: bytes, at: int, depth: int) -> int:
            if depth > AVRO_DEPTH_MAX:
                raise _Unreadable(f"the payload is nested more than {AVRO_DEPTH_MAX} deep")
            self._steps_left -= steps
            if self._steps_left < 0:
                raise _Unreadable("the payload has too many fields that take no bytes")
            depth += 1
            for each in fields:
                at = each(data, at, depth)
            return at

        self._records[id(schema)] = past  # before its fields, which may contain it
        fields.extend(self.past(field.type) for field in schema.fields)
        return past

    def _union(self, schema: Union) -> Past:
        branches = [self.past(branch) for branch in schema.branches]

        def past(data: bytes, at: int, depth: int) -> int:
            byte = data[at]
            if byte < 0x80 and not byte & 1:
                branch, at = byte >> 1, at + 1
            else:
                branch, at = _number(data, at, _INT_BYTES)
            if not 0 <= branch < len(branches):
                raise _Unreadable(f"there is no branch {branch} in a union of {len(branches)}")
            return branches[branch](data, at, depth + 1)

        return past

    def _items(self, schema: AvroType, key: Past | None) -> Past:
        weightless = key is None and _is_weightless(schema, {})
        item = self.past(schema)

        def past(data: bytes, at: int, depth: int) -> int:
            depth += 1
            while True:
                count, at = _number(data, at, _LONG_BYTES)
                if count == 0:
                    return at
                if count < 0:
                    count = -count
                    _, at = _number(data, at, _LONG_BYTES)  # the block's size, for readers that skip it
                if weightless:
                    self._items_left -= count
                    if self._items_left < 0:
                        raise _Unreadable(f"the payload has more than {ITEMS_OF_NO_SIZE_MAX} items that take no bytes")
                    continue
                for _ in range(count):
                    if key is not None:
                        at = key(data, at, depth)
                    at = item(data, at, depth)

        return past


def _number(data: bytes, at: int, bytes_max: int) -> tuple[int, int]:
    """Return a number and where it ends."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at
    number, shift = byte & 0x7F, 7
    while byte >= 0x80:
        if shift == 7 * bytes_max:
            raise _Unreadable("a number has too many bytes")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
    if shift == 70:
        number &= (1 << 64) - 1
    return (number >> 1) ^ -(number & 1), at


def _null(_: bytes, at: int, __: int) -> int:
    return at


def _boolean(data: bytes, at: int, _: int) -> int:
    if data[at] > 1:
        raise _Unreadable("a boolean is neither 0 nor 1")
    return at + 1


def _int(data: bytes, at: int, _: int) -> int:
    if data[at] < 0x80:
        return at + 1
    number, at = _number(data, at, _INT_BYTES)
    if not -(1 << 31) <= number < 1 << 31:
        raise _Unreadable(f"{number} is no int: it has more than 32 bits")
    return at


def _long(data: bytes, at: int, _: int) -> int:
    return at + 1 if data[at] < 0x80 else _number(data, at, _LONG_BYTES)[1]


def _content(data: bytes, at: int) -> tuple[int, int]:
    """Return where a string or bytes begin, after their size, and where they end."""
    size, at = _number(data, at, _LONG_BYTES)
    if size < 0:
        raise _Unreadable(f"a size of {size}")
    if size > len(data) - at:
        raise IndexError
    return at, at + size


def _bytes(data: bytes, at: int, _: int) -> int:
    return _content(data, at)[1]


def _string(data: bytes, at: int, _: int) -> int:
    size = data[at]
    if size < 0x80 and not size & 1:  # a short one, as most are
        begin = at + 1
        end = begin + (size >> 1)
        if end > len(data):
            raise IndexError
    else:
        begin, end = _content(data, at)
    str(data[begin:end], "utf-8")
    return end


def _over(size: int) -> Past:
    def past(data: bytes, at: int, _: int) -> int:
        if size > len(data) - at:
            raise IndexError
        return at + size

    return past


def _enum(symbols: int) -> Past:
    def past(data: bytes, at: int, _: int) -> int:
        symbol, at = _number(data, at, _INT_BYTES)
        if not 0 <= symbol < symbols:
            raise _Unreadable(f"there is no symbol {symbol} in an enum of {symbols}")
        return at

    return past


_PRIMITIVES: dict[str, Past] = {
    "null": _null,
    "boolean": _boolean,
    "int": _int,
    "long": _long,
    "float": _over(4),
    "double": _over(8),
    "bytes": _bytes,
    "string": _string,
}


def _is_weightless(schema: AvroType, known: dict[int, bool]) -> bool:
    """Return whether all values of a type take no bytes."""
    if isinstance(schema, AvroRecord):
        if id(schema) not in known:
            known[id(schema)] = False  # a type that contains itself takes bytes, or can never be written
            known[id(schema)] = all(_is_weightless(field.type, known) for field in schema.fields)
        return known[id(schema)]
    if isinstance(schema, Fixed):
        return schema.size == 0
    return isinstance(schema, Primitive) and schema.type == "null"
