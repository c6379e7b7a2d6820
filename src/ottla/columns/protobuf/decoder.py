"""Protobuf payloads → columns: what joins descriptors, tables, arena and loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from numpy.typing import NDArray

from ottla.columns.arena import Arena
from ottla.columns.codec import Decoded, UnsupportedSchema
from ottla.columns.payloads import Payloads
from ottla.columns.protobuf.ops import MERGE, REASONS
from ottla.columns.protobuf.plan import make_plan
from ottla.columns.protobuf.run import run
from ottla.columns.protobuf.types import message_type
from ottla.columns.push import undo
from ottla.columns.shape import columns_of
from ottla.schemas.protobuf import parse_protobuf
from ottla.schemas.schema import Source


class ProtobufDecoder:
    """Messages of one kind as columns. Fields are known by number, so what another version of the schema wrote is read
    as it is: fields that are not in this one are passed over, those that were not written are absent."""

    def __init__(self, message: Descriptor) -> None:
        self._message = message
        self._root = columns_of(message_type(message))
        self._plan = make_plan(message, self._root)

    @property
    def type(self) -> pa.DataType:
        """A struct."""
        return self._root.type

    def decode(self, values: pa.Array, begins: int | NDArray[Any] = 0) -> Decoded:
        """See `columns.codec`."""
        given = Payloads.of(values, begins)
        decoded, outcomes = self._decode(given)
        reasons = {int(row): REASONS[int(outcomes[row])] for row in np.flatnonzero(outcomes) if outcomes[row] != MERGE}
        merged = np.flatnonzero(outcomes == MERGE)
        if not len(merged):
            return Decoded(decoded, reasons)
        again: list[bytes | None] = []
        for row in merged.tolist():
            payload = given.data[given.begins[row] : given.ends[row]].tobytes()
            try:
                message = GetMessageClass(self._message)()
                message.ParseFromString(payload)
                again.append(message.SerializePartialToString())
            except (DecodeError, ValueError) as error:
                again.append(None)
                reasons[row] = str(error)
        second, outcomes = self._decode(Payloads.of(pa.array(again, pa.binary())))
        for place in np.flatnonzero(outcomes).tolist():
            reasons[int(merged[place])] = REASONS[int(outcomes[place])]
        order = np.arange(len(values))
        order[merged] = len(values) + np.arange(len(merged))
        return Decoded(pa.concat_arrays([decoded, second]).take(pa.array(order)), reasons)

    def _decode(self, given: Payloads) -> tuple[pa.Array, NDArray[Any]]:
        rows, plan = len(given.begins), self._plan
        arena = Arena(self._root, rows, given.size_bytes)
        frames = np.zeros((plan.depth + 1, 4), np.int64)
        places = np.zeros((plan.depth + 1) * plan.width + 1, np.int64)
        outcomes = np.zeros(rows, np.int64)
        row = 0
        while True:
            row = run(plan.tables, given, arena.out, frames, places, plan.width, row, outcomes)
            if row == rows:
                return arena.array(), outcomes
            arena.grow()
            undo(arena.out, row)


def decoder(
    writer: Source, reader: Source | None = None, message: str = "", indexes: tuple[int, ...] = ()
) -> ProtobufDecoder:
    """What `writer` wrote, as columns of a message of `reader` (the first one unless named). `indexes`: which message
    of the writer's file the values are, if they say so; it must be the same.

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
