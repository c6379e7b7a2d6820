"""Typed columns of the writer: keys and values encoded by their schemas, which are found or registered.

`typed_output(options, schema, topic)` is called once, on the driver (it registers); what it returns is pickled to the
executors, which call `apply` on every batch.

Rules:
- The schema is, in this order: the one in the options; the version of the subject in the options; one derived from the
  columns. The first and the last are registered, if there is a registry.
- With a registry, payloads begin with the schema's id, as Confluent's serializers write them; without, they are plain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ottla.client.registry import SchemaRegistry
from ottla.columns.codec import Encoder, UnsupportedSchema
from ottla.columns.formats import derive, encoder_of, indexes_of
from ottla.columns.text import TextEncoder
from ottla.schemas.framing import schema_mark
from ottla.schemas.schema import SchemaSource
from ottla.spark.typed.options import TYPES, SideSettings, of_side, registry_of

_SIDES = ("key", "value")


@dataclass
class ColumnEncoding:
    """How a column is encoded. `schema` is None for text."""

    name: str
    schema: SchemaSource | None
    prefix: bytes = b""
    message: str = ""
    _encoder: Encoder | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_encoder": None}

    def encode(self, column: pa.Array) -> pa.Array:
        """Encode a column to a binary array."""
        if self._encoder is None:
            self._encoder = TextEncoder() if self.schema is None else encoder_of(self.schema, self.message)
        return self._encoder.encode(column, self.prefix)


class TypedOutput:
    """Encodes typed columns to `key` and/or `value`. Picklable."""

    def __init__(self, schema: pa.Schema, sides: Mapping[str, ColumnEncoding], topic: str | None) -> None:
        self._sides = dict(sides)
        self._gathers = "value" in sides and "value" not in schema.names
        self._fields = [each.name for each in _value_fields(schema, topic)] if self._gathers else []
        others = [each for each in schema if each.name not in self._fields]
        made = [each.with_type(pa.binary()) if each.name in sides else each for each in others]
        self._schema = pa.schema([*made, pa.field("value", pa.binary())] if self._gathers else made)

    def schema(self) -> pa.Schema:
        """The schema of the result of `apply`: `key` and `value` binary, other columns unchanged."""
        return self._schema

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Encode a batch. Raises ValueError for rows that the schema cannot hold."""
        arrays = []
        for name in self._schema.names:
            if name == "value" and self._gathers:
                # Use the batch's own types, because Spark may name the time zone differently than in the schema.
                fields = [batch.schema.field(each) for each in self._fields]
                columns = [batch.column(each.name) for each in fields]
                arrays.append(self._sides[name].encode(pa.StructArray.from_arrays(columns, fields=fields)))
            else:
                column = batch.column(name)
                arrays.append(self._sides[name].encode(column) if name in self._sides else column)
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def typed_output(options: Mapping[str, str], schema: pa.Schema, topic: str | None) -> TypedOutput | None:
    """The encoder that the options ask for; None if neither `key.format` nor `value.format` is set.

    `schema` is that of the DataFrame in Arrow. The value is the column `value`; without one, all columns that the
    writer does not use itself (see `_value_fields`) are the fields of the value. `topic`: the topic that is written to,
    if the options have it (the default subjects are named after it).
    """
    given = {name.lower(): value for name, value in options.items()}
    formats = {name: given.get(f"{name}.format", "raw").strip().lower() for name in _SIDES}
    if all(each == "raw" for each in formats.values()):
        return None
    registry = registry_of(given)
    sides = {}
    for name, format in formats.items():
        if format == "raw":
            continue
        of = _type_of(name, schema, topic)
        if format == "string":
            _check_text(name, of)
            sides[name] = ColumnEncoding(name, None)
            continue
        settings = of_side(name, format, given, [topic] if topic else [])
        sides[name] = _written(settings, of, registry)
    return TypedOutput(schema, sides, topic)


def unwritable(options: Mapping[str, str], schema: pa.Schema, topic: str) -> list[str]:
    """The reasons why columns could not be written, each a sentence. Writes and registers nothing."""
    given = {name.lower(): value for name, value in options.items()}
    registry = registry_of(given)
    found: list[str] = []
    for name in _SIDES:
        format = given.get(f"{name}.format", "raw").strip().lower()
        if format == "raw":
            continue
        of = _type_of(name, schema, topic)
        if format == "string":
            _check_text(name, of)
            continue
        settings = of_side(name, format, given, [topic])
        if settings.schema is None and not settings.version_given:
            source = derive(TYPES[format], of, settings.record_name)
            if registry is not None and settings.subject is not None:
                found += registry.incompatibilities(settings.subject, source)
        else:
            source = _fixed(settings, registry)[0]
        encoder_of(source, settings.message).fits(of)
    return found


def _check_text(name: str, of: pa.DataType) -> None:
    try:
        TextEncoder().fits(of)
    except UnsupportedSchema as error:
        raise UnsupportedSchema(f"{name}.format=string: {error}") from None


def _written(settings: SideSettings, of: pa.DataType, registry: SchemaRegistry | None) -> ColumnEncoding:
    source, schema_id = _schema(settings, of, registry)
    encoder = encoder_of(source, settings.message)
    encoder.fits(of)
    if schema_id is None:
        return ColumnEncoding(settings.name, source, b"", settings.message)
    prefix = schema_mark(schema_id, indexes_of(source, settings.message))
    return ColumnEncoding(settings.name, source, prefix, settings.message)


def _schema(
    settings: SideSettings, of: pa.DataType, registry: SchemaRegistry | None
) -> tuple[SchemaSource, int | None]:
    if settings.schema is None and settings.version_given:
        return _fixed(settings, registry)
    kind = TYPES[settings.format]
    source = derive(kind, of, settings.record_name) if settings.schema is None else _fixed(settings, registry)[0]
    if registry is None:
        return source, None
    if settings.subject is None:
        raise ValueError(f"{settings.name}.subject is needed: the option topic does not say one")
    return source, registry.register(settings.subject, source)


def _fixed(settings: SideSettings, registry: SchemaRegistry | None) -> tuple[SchemaSource, int | None]:
    """The schema in the options: its text, or a version of a subject."""
    kind = TYPES[settings.format]
    if settings.schema is not None:
        return SchemaSource(settings.schema, kind), None
    if registry is None:
        raise ValueError(f"{settings.name}.version needs schema.registry.url")
    found = settings.registered(registry)
    if found.source.type is not kind:
        raise ValueError(f"{settings.name}.format is {settings.format}, not that of {found.subject}")
    return found.source, found.schema_id


def _type_of(name: str, schema: pa.Schema, topic: str | None) -> pa.DataType:
    if name in schema.names:
        return schema.field(name).type
    if name == "value":
        fields = _value_fields(schema, topic)
        if fields:
            return pa.struct(fields)
    raise ValueError(f"{name}.format is set, but there is no column for the {name}")


def _value_fields(schema: pa.Schema, topic: str | None) -> list[pa.Field]:
    """The fields of a value that has no column of its own: all columns that are not another part of the record. (The
    column `topic` is a field of the value if the option `topic` is given.)
    """
    own = ("key", "headers", "partition") if topic is not None else ("key", "headers", "partition", "topic")
    return [each for each in schema if each.name not in own]
