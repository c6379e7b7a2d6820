"""The JSON that Kafka's JsonConverter classes read and write, for the messages of Ottla.

Everything here follows Kafka's definitions, not Ottla's declarations: values are drawn from the definitions, so a
mistake in a declaration shows up as a difference instead of being made twice.
"""

import base64
from typing import Any

from hypothesis import strategies as st
from tests.support.messages.declared import snake
from tests.support.messages.definitions import STRUCT_DEFAULT, Field, within

from ottla.model.ids import uuid_bytes, uuid_text
from ottla.wire.message import Struct, fields

Json = Any

_INTEGERS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
_TEXT = st.one_of(st.text(max_size=6), st.text("ab", min_size=126, max_size=130))  # around the one-byte length limit
_BYTES = st.one_of(st.binary(max_size=6), st.binary(min_size=126, max_size=130))
_LEAVES: dict[str, st.SearchStrategy[Json]] = {
    **{name: st.integers(low, high) for name, (low, high) in _INTEGERS.items()},
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False, allow_infinity=False),  # JSON has no NaN and infinity
    "string": _TEXT,
    "bytes": _BYTES.map(lambda value: base64.b64encode(value).decode()),
    "records": _BYTES.map(lambda value: base64.b64encode(value).decode()),
    "uuid": st.binary(min_size=16, max_size=16).map(uuid_text),
}


def json_values(declaration: tuple[Field, ...], version: int) -> st.SearchStrategy[dict[str, Json]]:
    """Any value of the message in this version, as Kafka writes it: tagged fields with their default are left out."""
    required, tagged = {}, {}
    for field in declaration:
        if within(version, field.versions):
            group = tagged if within(version, field.tagged) else required
            group[field.json_name] = _field_values(field, version)
    values = st.fixed_dictionaries(required, optional=tagged)
    return values.map(lambda value: _without_defaults(value, declaration, version)) if tagged else values


def _field_values(field: Field, version: int) -> st.SearchStrategy[Json]:
    if field.fields is not None:
        one = json_values(field.fields, version)
    else:
        one = _LEAVES[field.type]
    values = st.lists(one, max_size=2) if field.array else one
    return st.none() | values if within(version, field.nullable) else values


def _without_defaults(value: dict[str, Json], declaration: tuple[Field, ...], version: int) -> dict[str, Json]:
    for field in declaration:
        name = field.json_name
        if within(version, field.tagged) and name in value and value[name] == default_json(field, version):
            del value[name]
    return value


def default_json(field: Field, version: int) -> Json:
    if field.default is None:
        return None
    if field.default is STRUCT_DEFAULT:
        assert field.fields is not None
        return {
            inner.json_name: default_json(inner, version)
            for inner in field.fields
            if within(version, inner.versions) and not within(version, inner.tagged)
        }
    if field.type == "uuid" and not field.array:
        return uuid_text(field.default)
    if isinstance(field.default, bytes):
        return base64.b64encode(field.default).decode()
    return field.default


def message_of(cls: type[Struct], declaration: tuple[Field, ...], value: dict[str, Json]) -> Struct:
    """A message of Ottla with the values of the JSON; fields that the JSON leaves out get Ottla's default."""
    ours = {field.name: field for field in fields(cls)}
    given = {}
    for field in declaration:
        name = snake(field.name)
        if field.json_name in value:
            given[name] = _ours(field, ours[name].type, value[field.json_name])
        elif name in ours:
            given[name] = _our_default(field, ours[name].type)
    return cls(**given)


def _our_default(field: Field, kind: Any) -> Any:
    if field.default is STRUCT_DEFAULT:
        return message_of(kind, field.fields or (), {})
    return list(field.default) if field.array and field.default is not None else field.default


def _ours(field: Field, kind: Any, value: Json) -> Any:
    if value is None:
        return None
    if field.array:
        return [_our_item(field, kind, each) for each in value]
    return _our_item(field, kind, value)


def _our_item(field: Field, kind: Any, value: Json) -> Any:
    if field.fields is not None:
        return message_of(kind, field.fields, value)
    if field.type in ("bytes", "records"):
        return base64.b64decode(value)
    if field.type == "uuid":
        return uuid_bytes(value)
    return value


def blank_records(value: Json, declaration: tuple[Field, ...]) -> Json:
    """The same JSON with every records field empty, which is how Kafka's converters print them."""
    if not isinstance(value, dict):
        return value
    known = {field.json_name: field for field in declaration}
    return {name: _blank(known[name], inner) for name, inner in value.items()}


def _blank(field: Field, value: Json) -> Json:
    if value is None:
        return None
    if field.type == "records":
        return ""
    if field.fields is None:
        return value
    return [blank_records(each, field.fields) for each in value] if field.array else blank_records(value, field.fields)
