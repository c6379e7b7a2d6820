"""Typed columns of the reader: keys and values decoded by their schemas, as the options say.

`typed_columns(options, topics)` is called once, on the driver: it asks the registry for the schemas to read with, so
the Spark schema is known and stays the same for all batches. What it returns is pickled to the executors, which call
`apply` on every batch of raw columns; they ask the registry for the schemas that records name, once per id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ottla.client.registry import SchemaRegistry
from ottla.columns.codec import DecodedColumns
from ottla.schemas.schema import SchemaSource
from ottla.spark.typed.key_or_value import Side
from ottla.spark.typed.options import TYPES, of_side, registry_of

CORRUPT = "_corrupt"
# A bad record: the reason, and its raw key and value.
CORRUPT_TYPE = pa.struct([("reason", pa.string()), ("key", pa.binary()), ("value", pa.binary())])
_SIDES = ("key", "value")


class BadRecord(ValueError):
    """A record that does not decode, with `on.bad=fail`."""


class Applied(NamedTuple):
    """`batch` has the typed columns. `dead` has the raw rows for the dead-letter topic (with `on.bad=dlq`), if any: the
    raw columns of the batch, and `reason`.
    """

    batch: pa.RecordBatch
    dead: pa.RecordBatch | None


class TypedColumns:
    """Decodes columns `key` and/or `value` of raw batches. Picklable."""

    def __init__(self, sides: Mapping[str, Side], on_bad: str, flatten: bool, dlq_topic: str | None = None) -> None:
        self._sides = dict(sides)
        self._on_bad = on_bad
        self._flatten = flatten
        self.dlq_topic = dlq_topic

    @property
    def needs(self) -> frozenset[str]:
        """The raw columns that must be in every batch given to `apply`, whatever columns are chosen."""
        needed = set(self._sides)
        if any(side.registry is not None for side in self._sides.values()):
            needed.add("headers")  # the schema id may be in a header
        if self._on_bad in ("corrupt", "dlq"):
            needed |= {"key", "value"}
        if self._on_bad in ("fail", "dlq"):
            needed |= {"topic", "partition", "offset"}
        return frozenset(needed | ({"headers", "timestamp"} if self._on_bad == "dlq" else set()))

    def schema(self, raw: pa.Schema) -> pa.Schema:
        """The schema of the result of `apply` for batches of schema `raw`, which has Spark's columns (key, value:
        binary, ...).
        """
        fields: list[pa.Field] = []
        for column in raw:
            side = self._sides.get(column.name)
            if side is None:
                fields.append(column)
            elif self._flattens(side):
                fields.extend(each.with_nullable(True) for each in side.type)
            else:
                fields.append(pa.field(column.name, side.type))
        if self._on_bad == "corrupt":
            fields.append(pa.field(CORRUPT, CORRUPT_TYPE))
        names = [field.name.lower() for field in fields]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"columns.flatten: there would be two columns named {twice[0]!r}; choose others (columns)")
        return pa.schema(fields)

    def apply(self, batch: pa.RecordBatch, keep: Sequence[str] | None = None) -> Applied:
        """Decode a batch. `keep`: the raw columns that the result has (default: all); other columns are only used for
        decoding.

        Raises BadRecord (with topic, partition, offset and reason) with `on.bad=fail`.
        """
        headers = batch.column("headers") if "headers" in batch.schema.names else None
        decoded = {
            name: side.decode(batch.column(name), headers)
            for name, side in self._sides.items()
            if name in batch.schema.names
        }
        reasons = _reasons(decoded)
        if reasons and self._on_bad == "fail":
            raise BadRecord(_complaint(batch, *min(reasons.items())))
        arrays: list[pa.Array] = []
        kept = list(batch.schema.names if keep is None else keep)
        for name in kept:
            if name not in decoded:
                arrays.append(batch.column(name))
            elif self._flattens(self._sides[name]):
                arrays.extend(decoded[name].columns.flatten())
            else:
                arrays.append(decoded[name].columns)
        if self._on_bad == "corrupt":
            arrays.append(_corrupt(batch, reasons))
        made = pa.RecordBatch.from_arrays(
            arrays, schema=self.schema(pa.schema([batch.schema.field(name) for name in kept]))
        )
        if not reasons or self._on_bad != "dlq":
            return Applied(made, None)
        rows = np.array(sorted(reasons), np.int64)
        good = np.ones(batch.num_rows, np.bool_)
        good[rows] = False
        dead = batch.take(pa.array(rows)).append_column("reason", pa.array([reasons[int(row)] for row in rows]))
        return Applied(made.filter(pa.array(good)), dead)

    def _flattens(self, side: Side) -> bool:
        return self._flatten and side.name == "value" and pa.types.is_struct(side.type)


def typed_columns(options: Mapping[str, str], topics: Sequence[str]) -> TypedColumns | None:
    """The typed columns that the options ask for; None if neither `key.format` nor `value.format` is set. Raises
    ValueError for options that contradict each other, and the exceptions of `client.registry`. `topics`: the topics
    that are subscribed to by name; empty with a pattern.
    """
    given = {name.lower(): value for name, value in options.items()}
    formats = {name: given.get(f"{name}.format", "raw").strip().lower() for name in _SIDES}
    if all(each == "raw" for each in formats.values()):
        return None
    on_bad = given.get("on.bad", "fail").strip().lower()
    dlq_topic = given.get("dlq.topic", "").strip() or None
    if on_bad == "dlq" and not dlq_topic:
        raise ValueError("on.bad=dlq needs dlq.topic: where bad records go")
    registry = registry_of(given)
    sides = {name: _side(name, each, given, topics, registry) for name, each in formats.items() if each != "raw"}
    flatten = given.get("columns.flatten", "false").strip().lower() == "true"
    return TypedColumns(sides, on_bad, flatten, dlq_topic)


def _side(
    name: str, format: str, given: Mapping[str, str], topics: Sequence[str], registry: SchemaRegistry | None
) -> Side:
    if format == "string":
        return Side(name, None)
    settings = of_side(name, format, given, topics)
    if settings.schema is not None:
        side = Side(name, SchemaSource(settings.schema, TYPES[format]), registry, settings.message)
    else:
        if registry is None:
            raise ValueError(f"{name}.format={format} needs schema.registry.url or {name}.schema")
        found = settings.registered(registry)
        if found.source.type is not TYPES[format]:
            raise ValueError(f"{name}.format is {format}, but {found.subject} holds {found.source.type.value}")
        side = Side(name, found.source, registry, settings.message)
    _ = side.type  # so that a schema without columns is refused on the driver
    return side


def _reasons(decoded: Mapping[str, DecodedColumns]) -> dict[int, str]:
    reasons: dict[int, str] = {}
    for name, each in decoded.items():
        for row, why in each.reasons.items():
            reasons[row] = f"{reasons[row]}; {name}: {why}" if row in reasons else f"{name}: {why}"
    return reasons


def _complaint(batch: pa.RecordBatch, row: int, why: str) -> str:
    topic, partition, offset = (batch.column(name)[row].as_py() for name in ("topic", "partition", "offset"))
    return f"the record at offset {offset} of {topic}-{partition} does not decode: {why}"


def _corrupt(batch: pa.RecordBatch, reasons: Mapping[int, str]) -> pa.Array:
    if not reasons:
        return pa.nulls(batch.num_rows, CORRUPT_TYPE)
    rows = sorted(reasons)
    taken = pa.array(rows, pa.int64())
    raw: dict[str, Any] = {
        name: batch.column(name).take(taken) if name in batch.schema.names else pa.nulls(len(rows), pa.binary())
        for name in _SIDES
    }
    bad = pa.StructArray.from_arrays(
        [pa.array([reasons[row] for row in rows], pa.string()), raw["key"], raw["value"]], fields=list(CORRUPT_TYPE)
    )
    places: list[int | None] = [None] * batch.num_rows
    for place, row in enumerate(rows):
        places[row] = place
    return bad.take(pa.array(places, pa.int64()))
