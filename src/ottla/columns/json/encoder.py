"""Columns → JSON payloads: writes the text of each column, for all rows at once, then joins the columns.

Rules:
- Null fields are left out; a null row has no payload. Required fields must not be null, and items may be null only
  where the schema says so.
- Times are text of RFC 3339, in UTC if they have a zone; bytes are base64; decimals are numbers with all their digits.
  A key of a map is the text of a value of its type.
- A column is written as its own type: a number into a field of numbers, a time into one of times. Nothing is converted
  to another unit: a time is not written as an integer, nor an integer as a time.
- Equal values give equal text, whatever the other rows are: keys rely on it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ottla.columns.json.derive import is_leaf, schema_of
from ottla.model.limits import INT64_MAX
from ottla.schemas.json.fit import Unfit, check_of
from ottla.schemas.json.shapes import JsonShape, ShapeKind, shape_of
from ottla.schemas.schema import SchemaSource, SchemaType

# Returns the JSON text of each entry; null where the entry is null.
Write = Callable[[pa.Array], pa.Array]

_CONTROL = r"[\x00-\x1f]"
_TIME = "%Y-%m-%dT%H:%M:%S"
_YEAR = "^(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-"
_NULL = pa.scalar("null")
_LONG_DIGITS = 18  # that always fit 64 bits


class JsonMismatch(ValueError):
    """The schema has no field for a column, or cannot hold a value."""


class _Unwritable(Exception):
    """The entry at an index of an array cannot be written."""

    def __init__(self, at: int, path: str, why: str) -> None:
        super().__init__(at, path, why)
        self.at, self.path, self.why = at, path, why


class JsonEncoder:
    """Encodes columns as JSON of one schema."""

    def __init__(self, schema: SchemaSource) -> None:
        self._shape = shape_of(schema)
        self._made: tuple[pa.DataType, Write] | None = None

    def fits(self, of: pa.DataType) -> None:
        """Raise JsonMismatch, UnsupportedSchema if columns of a type cannot be written by this schema."""
        self._write(of)

    def _write(self, of: pa.DataType) -> Write:
        if self._made is None or self._made[0] != of:
            schema_of(of)
            self._made = of, _writer(self._shape, of, "")
        return self._made[1]

    def encode(self, columns: pa.Array, prefix: bytes = b"") -> pa.Array:
        """See `columns.codec`."""
        try:
            made = self._write(columns.type)(columns).cast(pa.binary())
        except _Unwritable as error:
            raise JsonMismatch(f"row {error.at}: {error.path or 'the value'} {error.why}") from None
        return pc.binary_join_element_wise(pa.scalar(prefix, pa.binary()), made, pa.scalar(b"", pa.binary()))


def _writer(shape: JsonShape, of: pa.DataType, path: str) -> Write:
    """Return the function that writes columns of a type as values of a shape. Raises JsonMismatch if they do not
    match.
    """
    if pa.types.is_null(of):
        return lambda array: array.cast(pa.string())
    if shape.kind is ShapeKind.ANY:
        shape = shape_of(SchemaSource(json.dumps(schema_of(of)), SchemaType.JSON))
    kinds = pa.types
    if kinds.is_struct(of) and shape.kind is ShapeKind.STRUCT:
        return _objects(shape, of, path)
    if kinds.is_map(of) and shape.kind is ShapeKind.MAP:
        return _maps(shape, of, path)
    if (kinds.is_list(of) or kinds.is_large_list(of)) and shape.kind is ShapeKind.LIST:
        return _lists(shape, of, path)
    if not is_leaf(of) or not _takes(shape.kind, of):
        kind = shape.kind.name.lower()
        raise JsonMismatch(f"{path or 'the value'} is {of}, but the schema says {kind}: cast it to what is meant")
    if (kinds.is_string(of) or kinds.is_large_string(of)) and shape.kind is not ShapeKind.STRING:
        return _checked(shape, path)
    if kinds.is_decimal(of) and shape.kind is ShapeKind.LONG and of.precision > _LONG_DIGITS:
        return _bounded(of, path)
    return lambda array: _leaf(array, path)


def _takes(kind: ShapeKind, of: pa.DataType) -> bool:
    kinds = pa.types
    if kind is ShapeKind.LONG:
        return bool(kinds.is_integer(of) or (kinds.is_decimal(of) and of.scale == 0))
    if kind is ShapeKind.DOUBLE:
        return bool(kinds.is_integer(of) or kinds.is_floating(of) or kinds.is_decimal(of))
    if kind is ShapeKind.BOOLEAN:
        return bool(kinds.is_boolean(of))
    is_text = kinds.is_string(of) or kinds.is_large_string(of)
    is_time, is_day = kinds.is_timestamp(of), kinds.is_date(of)
    is_bytes = kinds.is_binary(of) or kinds.is_large_binary(of)
    wanted = {
        ShapeKind.MOMENT: is_time,
        ShapeKind.DAY: is_day,
        ShapeKind.BYTES: is_bytes,
        ShapeKind.STRING: is_time or is_day or is_bytes,
    }
    return bool(is_text or wanted[kind]) if kind in wanted else False


# --- values with parts --------------------------------------------------------------------------------------------


def _objects(shape: JsonShape, of: pa.DataType, path: str) -> Write:
    known = dict(shape.fields)
    unknown = [field.name for field in of if field.name not in known]
    missing = [name for name in shape.required if of.get_field_index(name) < 0]
    if unknown:
        raise JsonMismatch(f"the schema has no {_below(path, unknown[0])}")
    if missing:
        raise JsonMismatch(f"the schema needs {_below(path, missing[0])}, which the columns do not have")
    fields = [
        (
            pa.scalar("," + json.dumps(field.name, ensure_ascii=False) + ":"),
            _writer(known[field.name], field.type, _below(path, field.name)),
            field.name in shape.required,
            _below(path, field.name),
        )
        for field in of
    ]

    def write(array: pa.Array) -> pa.Array:
        parts = [pa.array([""] * len(array), pa.string())]
        for index, (name, inner, is_required, below) in enumerate(fields):
            values = array.field(index)
            if is_required and values.null_count:
                _refuse(pc.and_(values.is_null(), array.is_valid()), below, "is null, which the schema does not allow")
            parts.append(pc.fill_null(pc.binary_join_element_wise(name, inner(values), ""), ""))
        begun = pc.binary_replace_slice(pc.binary_join_element_wise(*parts, ""), 0, 1, "{")  # replaces the first comma
        return _valid(array, pc.binary_join_element_wise(begun, "}", ""))

    return write


def _lists(shape: JsonShape, of: pa.DataType, path: str) -> Write:
    inner = _items(shape, of.value_type, path)

    def write(array: pa.Array) -> pa.Array:
        ends = _ends(array)
        items = _of_parents(inner, array.flatten(), ends)
        return _valid(array, _joined("[", items, ends, "]"))

    return write


def _maps(shape: JsonShape, of: pa.DataType, path: str) -> Write:
    inner = _items(shape, of.item_type, path)

    def names(keys: pa.Array) -> pa.Array:
        made = _leaf(keys, f"a key of {path or 'the value'}")
        return made if pc.all(pc.starts_with(made, '"'), min_count=0).as_py() else _quoted(made)

    def write(array: pa.Array) -> pa.Array:
        entries = array.cast(pa.list_(pa.struct([pa.field("key", of.key_type), pa.field("value", of.item_type)])))
        ends = _ends(entries)
        flat = entries.flatten()
        made = _of_parents(inner, flat.field(1), ends)
        keys = _of_parents(names, flat.field(0), ends)
        return _valid(array, _joined("{", pc.binary_join_element_wise(keys, ":", made, ""), ends, "}"))

    return write


def _items(shape: JsonShape, of: pa.DataType, path: str) -> Write:
    below = f"{path}[]"
    inner = _writer(shape.item, of, below)

    def write(values: pa.Array) -> pa.Array:
        if values.null_count and not shape.item.nullable:
            _refuse(values.is_null(), below, "is null, which the schema does not allow")
        return pc.fill_null(inner(values), _NULL)

    return write


def _ends(array: pa.Array) -> Any:
    """Return where the items of each list end, among the items of all lists that are not null."""
    return np.cumsum(pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64))


def _of_parents(inner: Write, values: pa.Array, ends: Any) -> pa.Array:
    try:
        return inner(values)
    except _Unwritable as error:
        raise _Unwritable(int(np.searchsorted(ends, error.at, side="right")), error.path, error.why) from None


def _joined(begin: str, items: pa.Array, ends: Any, end: str) -> pa.Array:
    offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
    return pc.binary_join_element_wise(begin, pc.binary_join(pa.ListArray.from_arrays(offsets, items), ","), end, "")


def _valid(array: pa.Array, made: pa.Array) -> pa.Array:
    return made if not array.null_count else pc.if_else(array.is_valid(), made, pa.scalar(None, pa.string()))


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


# --- values without parts -----------------------------------------------------------------------------------------


def _leaf(array: pa.Array, path: str) -> pa.Array:
    of, kinds = array.type, pa.types
    if kinds.is_string(of) or kinds.is_large_string(of):
        return _strings(array.cast(pa.string()))
    if kinds.is_binary(of) or kinds.is_large_binary(of):
        texts = [None if each is None else base64.b64encode(each).decode() for each in array.to_pylist()]
        return _quoted(pa.array(texts, pa.string()))
    if kinds.is_timestamp(of):
        utc = array if of.tz is None else array.cast(pa.timestamp(of.unit, tz="UTC"))
        return _quoted(_years(pc.strftime(utc, format=_TIME if of.tz is None else _TIME + "Z"), path))
    if kinds.is_date(of):
        return _quoted(_years(array.cast(pa.string()), path))
    if kinds.is_floating(of) and not pc.all(pc.is_finite(array), min_count=0).as_py():
        _refuse(pc.invert(pc.is_finite(array)), path, "is NaN or infinite, which JSON has no word for")
    return array.cast(pa.string())


def _years(texts: pa.Array, path: str) -> pa.Array:
    fine = pc.match_substring_regex(texts, _YEAR)
    if not pc.all(fine, min_count=0).as_py():
        _refuse(pc.invert(fine), path, "lies outside of the years 1 to 9999, which times in JSON have")
    return texts


def _strings(array: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring_regex(array, _CONTROL), min_count=0).as_py():
        texts = [None if each is None else json.dumps(each, ensure_ascii=False) for each in array.to_pylist()]
        return pa.array(texts, pa.string())
    for special in ("\\", '"'):
        if pc.any(pc.match_substring(array, special), min_count=0).as_py():
            array = pc.replace_substring(array, special, "\\" + special)
    return _quoted(array)


def _quoted(array: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', array, '"', "")


def _checked(shape: JsonShape, path: str) -> Write:
    """Return a function for text that must already be a time, or base64."""
    check = check_of(JsonShape(shape.kind))

    def write(array: pa.Array) -> pa.Array:
        for at, each in enumerate(array.to_pylist()):
            try:
                check(each)
            except Unfit as error:
                raise _Unwritable(at, path, str(error).removeprefix("the value ")) from None
        return _strings(array.cast(pa.string()))

    return write


def _bounded(of: pa.DataType, path: str) -> Write:
    """Return a function for decimals that must be integers of 64 bits."""
    most, least = (pa.scalar(Decimal(each), of) for each in (INT64_MAX, -INT64_MAX - 1))

    def write(array: pa.Array) -> pa.Array:
        _refuse(pc.or_(pc.greater(array, most), pc.less(array, least)), path, "does not fit 64 bits")
        return _leaf(array, path)

    return write


def _refuse(bad: pa.Array, path: str, why: str) -> None:
    """Raise for the first entry that is bad, if there is one."""
    at = pc.index(pc.fill_null(bad, False), True).as_py()
    if at >= 0:
        raise _Unwritable(at, path, why)


def encoder(schema: SchemaSource) -> JsonEncoder:
    """Return a `JsonEncoder`. Raises InvalidSchema, UnsupportedSchema."""
    return JsonEncoder(schema)
