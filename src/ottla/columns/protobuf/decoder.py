"""Protobuf payloads → columns: combines descriptors, tables, arena and loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from numpy.typing import NDArray

from ottla.columns.arena import Arena
from ottla.columns.codec import DecodedColumns, UnsupportedSchema
from ottla.columns.payloads import Payloads
from ottla.columns.protobuf.ops import ASK_LIBRARY, MISSING, PASSING, REASONS, MessagePlan, ProtobufScratch
from ottla.columns.protobuf.plan import make_plan
from ottla.columns.protobuf.run import run
from ottla.columns.protobuf.types import message_type, outline_of
from ottla.columns.push import undo
from ottla.columns.shape import columns_of
from ottla.model.limits import PROTOBUF_PAYLOAD_DEPTH_MAX
from ottla.schemas.protobuf import parse_protobuf
from ottla.schemas.schema import SchemaSource


class ProtobufDecoder:
    """Decodes messages of one type to columns. Fields are matched by number, so payloads of other versions of the
    schema are read as they are: fields that are not in this version are skipped, fields that were not written are
    absent.
    """

    def __init__(self, message: Descriptor) -> None:
        self._class = GetMessageClass(message)
        outline = outline_of(message)
        self._root = columns_of(message_type(message, outline))
        self._plan = make_plan(message, self._root, outline)

    @property
    def type(self) -> pa.DataType:
        """A struct."""
        return self._root.type

    def decode(self, values: pa.Array, begins: int | NDArray[Any] = 0) -> DecodedColumns:
        """See `columns.codec`."""
        given = Payloads.of(values, begins)
        decoded, outcomes = self._decode(given, plain=False)
        asks_library = outcomes == ASK_LIBRARY
        if self._plan.maps:
            asks_library |= np.isin(outcomes, PASSING)
        reasons = {int(row): REASONS[int(outcomes[row])] for row in np.flatnonzero((outcomes != 0) & ~asks_library)}
        asked = np.flatnonzero(asks_library)
        if not len(asked):
            return DecodedColumns(decoded, reasons)
        again: list[bytes | None] = []
        for row in asked.tolist():
            try:
                again.append(self._written_anew(given.data[given.begins[row] : given.ends[row]].tobytes()))
            except (DecodeError, ValueError) as error:
                again.append(None)
                reasons[row] = str(error)
        second, outcomes = self._decode(Payloads.of(pa.array(again, pa.binary())), plain=True)
        for place in np.flatnonzero(outcomes).tolist():
            reasons[int(asked[place])] = REASONS[int(outcomes[place])]
        order = np.arange(len(values))
        order[asked] = len(values) + np.arange(len(asked))
        return DecodedColumns(pa.concat_arrays([decoded, second]).take(pa.array(order)), reasons)

    def _written_anew(self, payload: bytes) -> bytes:
        """Parse a value and serialise it again in the library's plain form: messages merged, keys unique, nothing
        unknown.
        """
        message = self._class()
        message.ParseFromString(payload)
        if not message.IsInitialized():
            raise ValueError(REASONS[MISSING])
        message.DiscardUnknownFields()
        plain: bytes = message.SerializePartialToString()
        return plain

    def _decode(self, given: Payloads, *, plain: bool) -> tuple[pa.Array, NDArray[Any]]:
        rows, plan = len(given.begins), self._plan
        arena = Arena(self._root, rows, given.size_bytes)
        scratch = _scratch(plan, given)
        outcomes = np.zeros(rows, np.int64)
        row = 0
        while True:
            row = run(plan.tables, given, arena.out, scratch, plan.width, row, plain, outcomes)
            if row == rows:
                return arena.array(), outcomes
            arena.grow()
            undo(arena.out, row)


def _scratch(plan: MessagePlan, given: Payloads) -> ProtobufScratch:
    # An entry of a map takes at least two bytes, and a table of keys has room for twice as many.
    keys = int((given.ends - given.begins).max(initial=0)) if plan.maps else 0
    return ProtobufScratch(
        np.zeros((plan.depth + 1, 4), np.int64),
        np.zeros((plan.depth + 1) * plan.width + 1, np.int64),
        np.zeros(PROTOBUF_PAYLOAD_DEPTH_MAX + 1, np.int64),
        np.empty(2 * max(keys, 64), np.int64),
    )


def decoder(
    writer: SchemaSource, reader: SchemaSource | None = None, message: str = "", indexes: tuple[int, ...] = ()
) -> ProtobufDecoder:
    """Return a decoder of payloads of the schema `writer` to columns of a message of `reader` (default: the first
    one). `indexes`: the message of the writer's file that the frames name, if they do; it must be the same.

    Raises InvalidSchema, UnsupportedSchema.
    """
    parsed = parse_protobuf(reader or writer)
    try:
        wanted = parsed.message_descriptor(message or None)
        written = parse_protobuf(writer).message_name(indexes) if indexes else wanted.full_name
    except KeyError as error:
        raise UnsupportedSchema(str(error.args[0])) from error
    if written != wanted.full_name:
        raise UnsupportedSchema(f"these are messages {written}, not {wanted.full_name}")
    return ProtobufDecoder(wanted)
