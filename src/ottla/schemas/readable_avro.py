"""Whether a payload is Avro of a schema: `fastavro` reads it, after a look at what it would have to do.

Rules:
- fastavro recurses on the machine's stack, as deep as the payload says if the schema is recursive, and reads fields
  that take no bytes for nothing. So where a schema allows one of both, a walk with bounds goes first.
- Logical types are left aside: a time that Python cannot hold (the end of all times, say) is a long like any other.
- An array whose items take no bytes (a few bytes could claim billions of them) is nothing that can be checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any

from ottla.model.limits import (
    AVRO_DEPTH_MAX,
    AVRO_STEPS_PER_BYTE_MAX,
    AVRO_WEIGHTLESS_MAX,
    SCHEMA_NAME_CHARS_MAX,
)
from ottla.schemas import jackson
from ottla.schemas.schema import InvalidSchema, Source

_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_RECORDS = ("record", "error")
_MANY = AVRO_WEIGHTLESS_MAX + 1
_LONG_BYTES_MAX = 10  # 64 bits, seven in a byte


class _TooMuch(Exception):
    """The payload asks for more work than its size allows."""


class AvroPayloads:
    """Payloads of one schema. Raises InvalidSchema if nothing can be checked by it."""

    def __init__(self, source: Source) -> None:
        import fastavro
        from fastavro.schema import SchemaParseException

        self._read = fastavro.schemaless_reader
        named: dict[str, Any] = {}
        try:
            for text in source.resolved.values():
                fastavro.parse_schema(_plain(jackson.read(text, comments=True)), named)
            self._schema = fastavro.parse_schema(_plain(jackson.read(source.text, comments=True)), named)
        except (SchemaParseException, ValueError, TypeError, RecursionError) as error:
            raise InvalidSchema(str(error)) from error
        if _has_weightless_items(self._schema, named, {}):
            raise InvalidSchema("it has arrays or maps of items that take no bytes")
        self._named = named
        # Recursion counts as too much, too.
        self._walk_first = _weightless(self._schema, named, {}) > AVRO_WEIGHTLESS_MAX

    def why_unreadable(self, payload: bytes) -> str | None:
        """None when the payload can be read."""
        stream = BytesIO(payload)
        try:
            if self._walk_first:
                _Walk(self._named, payload).past(self._schema, 0, 0)
            self._read(stream, self._schema)
        except EOFError:
            return "the payload ends too early"
        except _TooMuch as error:
            return str(error)
        except Exception as error:  # a payload can be wrong in many ways, and fastavro has an exception for each
            return f"the payload is not Avro of this schema: {type(error).__name__} {error}"
        left = len(payload) - stream.tell()
        return f"{left} bytes are left over behind the value" if left else None


def _plain(schema: Any) -> Any:
    """Without logical types. Long names are refused: each type of a namespace is known by all of it."""
    if isinstance(schema, dict):
        if any(len(str(schema.get(each, ""))) > SCHEMA_NAME_CHARS_MAX for each in ("name", "namespace")):
            raise InvalidSchema(f"a name has more than {SCHEMA_NAME_CHARS_MAX} characters")
        return {name: _plain(each) for name, each in schema.items() if name != "logicalType"}
    return [_plain(each) for each in schema] if isinstance(schema, list) else schema


class _Walk:
    """Goes through a payload as a reader would, and keeps nothing."""

    def __init__(self, named: Mapping[str, Any], data: bytes) -> None:
        self._named = named
        self._data = data
        self._steps_left = (len(data) + 1) * AVRO_STEPS_PER_BYTE_MAX

    def past(self, schema: Any, at: int, depth: int) -> int:
        """Where the value that begins at `at` ends."""
        self._steps_left -= 1
        if self._steps_left < 0:
            raise _TooMuch("the payload has too many fields that take no bytes")
        if depth > AVRO_DEPTH_MAX:
            raise _TooMuch(f"the payload is nested more than {AVRO_DEPTH_MAX} deep")
        if isinstance(schema, list):
            branch, at = self._number(at)
            if not 0 <= branch < len(schema):
                raise ValueError(f"there is no branch {branch} in a union of {len(schema)}")
            return self.past(schema[branch], at, depth + 1)
        kind = schema if isinstance(schema, str) else schema["type"]
        if isinstance(kind, dict | list):
            return self.past(kind, at, depth + 1)
        if isinstance(schema, dict) and kind in _RECORDS:
            for field in schema["fields"]:
                at = self.past(field["type"], at, depth + 1)
            return at
        if kind in ("array", "map"):
            return self._items(schema, kind == "map", at, depth)
        if kind in self._named:
            return self.past(self._named[kind], at, depth + 1)
        return self._leaf(schema, kind, at)

    def _leaf(self, schema: Any, kind: str, at: int) -> int:
        if kind in ("int", "long", "enum"):
            return self._number(at)[1]
        if kind in ("bytes", "string"):
            size, at = self._number(at)
            if size < 0:
                raise ValueError(f"a size of {size}")
        else:
            size = schema["size"] if kind == "fixed" else _SIZES[kind]
        if at + size > len(self._data):
            raise EOFError
        return at + int(size)

    def _items(self, schema: Any, with_keys: bool, at: int, depth: int) -> int:
        items = schema["values" if with_keys else "items"]
        while True:
            count, at = self._number(at)
            if count == 0:
                return at
            if count < 0:
                _, at = self._number(at)  # the block's size, for those who skip it
            for _ in range(abs(count)):
                if with_keys:
                    at = self._leaf("string", "string", at)
                at = self.past(items, at, depth + 1)

    def _number(self, at: int) -> tuple[int, int]:
        number = 0
        for shift in range(0, 7 * _LONG_BYTES_MAX, 7):
            if at >= len(self._data):
                raise EOFError
            byte = self._data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1), at
        raise ValueError("a number has more than 64 bits")


def _weightless(schema: Any, named: Mapping[str, Any], known: dict[str, int]) -> int:
    """How many fields that take no bytes are read for a value at most, if each array has one item; `_MANY` for more,
    and for schemas that contain themselves."""
    if isinstance(schema, list):
        parts = [each for each in schema if each != "null"]  # which one it is takes a byte
    elif isinstance(schema, str):
        if schema == "null":
            return 1
        if schema not in named:
            return 0
        if schema not in known:
            known[schema] = _MANY  # until it is counted: who asks meanwhile is inside of it
            known[schema] = _counted(named[schema], named, known)
        return known[schema]
    elif schema.get("type") in (*_RECORDS, "fixed"):
        name = schema.get("name")
        return _weightless(name, named, known) if name in named else _counted(schema, named, known)
    else:
        return _counted(schema, named, known)
    return min(sum(_weightless(each, named, known) for each in parts), _MANY)


def _counted(schema: Any, named: Mapping[str, Any], known: dict[str, int]) -> int:
    """The same of a definition, by what it is made of."""
    kind = schema.get("type")
    if kind in _RECORDS:
        total = 0 if schema["fields"] else 1
        for field in schema["fields"]:
            total += _weightless(field["type"], named, known)
        return min(total, _MANY)
    if kind in ("array", "map"):
        return _weightless(schema["items" if kind == "array" else "values"], named, known)
    if kind == "fixed":
        return int(schema["size"] == 0)
    return _weightless(kind, named, known)


def _has_weightless_items(schema: Any, named: Mapping[str, Any], seen: dict[str, None]) -> bool:
    """Whether some array (or map: those have keys, so never) holds items that are written as nothing."""
    if isinstance(schema, list):
        return any(_has_weightless_items(each, named, seen) for each in schema)
    if isinstance(schema, str):
        if schema not in named or schema in seen:
            return False
        seen[schema] = None
        return _has_weightless_items(named[schema], named, seen)
    kind = schema.get("type")
    if kind == "array":
        items = schema["items"]
        return _is_weightless(items, named, {}) or _has_weightless_items(items, named, seen)
    if kind == "map":
        return _has_weightless_items(schema["values"], named, seen)
    if kind in _RECORDS:
        return any(_has_weightless_items(field["type"], named, seen) for field in schema["fields"])
    return kind != "enum" and kind != "fixed" and _has_weightless_items(kind, named, seen)


def _is_weightless(schema: Any, named: Mapping[str, Any], known: dict[str, bool]) -> bool:
    if isinstance(schema, list):
        return False  # the branch takes a byte
    if isinstance(schema, str):
        if schema == "null" or schema not in named:
            return schema == "null"
        if schema not in known:
            known[schema] = False  # what contains itself takes bytes, or can never be written
            known[schema] = _is_weightless(named[schema], named, known)
        return known[schema]
    kind = schema.get("type")
    if kind == "fixed":
        return bool(schema["size"] == 0)
    if kind in _RECORDS:
        return all(_is_weightless(field["type"], named, known) for field in schema["fields"])
    return _is_weightless(kind, named, known) if kind not in ("array", "map", "enum") else False
