"""Keys and values typed by the registry: each is decoded by the schema that it names, as the subject's latest one.

JSON may also come plain, without a schema's id in front. A value that does not decode is null here: a quick look stops
at nothing. `format := 'raw'` shows the bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ottla.client.registry import NOT_FOUND, RegistryError, RegistryOptions, RegistryUnreachable, SchemaRegistry
from ottla.columns.codec import Decoder, UnsupportedSchema, decode_each
from ottla.columns.formats import decoder_of
from ottla.schemas.framing import BadFrame, unframe
from ottla.schemas.schema import InvalidSchema, SchemaSource, SchemaType
from ottla.sql.payloads import Payloads

log = logging.getLogger(__name__)


class _Mark(NamedTuple):
    """What a value says about its schema."""

    schema_id: int | None
    guid: Any
    indexes: tuple[int, ...] | None


_PLAIN = _Mark(None, None, None)


class RegistrySubjects:
    """A registry's subjects. One that cannot be reached knows none; `warn` is told why subjects are not typed."""

    def __init__(self, urls: str, warn: Callable[[str], None] = log.warning) -> None:
        self._warn = warn
        self._registry = SchemaRegistry(RegistryOptions.of(urls, attempts=1, timeout_s=3.0))
        self._is_away = False

    def payloads(self, subject: str) -> Payloads | None:
        """What decodes the subject; None if there is none, or nothing that could be columns."""
        if self._is_away:
            return None
        try:
            return Typed(self._registry, self._registry.latest(subject).source)
        except RegistryUnreachable as error:
            self._is_away = True
            self._warn(f"keys and values are shown as text: {error}")
        except RegistryError as error:
            if error.status != NOT_FOUND:
                self._warn(f"{subject} is shown as text: {error}")
        except (InvalidSchema, UnsupportedSchema, NotImplementedError) as error:
            self._warn(f"{subject} is shown as text: {error}")
        return None


class Typed:
    """Framed values as columns of one schema."""

    def __init__(self, registry: SchemaRegistry, reader: SchemaSource) -> None:
        self._registry = registry
        self._reader = reader
        self._decoders: dict[_Mark, Decoder | None] = {}
        own = decoder_of(reader, reader)
        self._decoders[_PLAIN] = own
        self.type: pa.DataType = own.type

    def decode(self, column: pa.Array) -> pa.Array:
        marks: dict[_Mark, int] = {}
        which = np.full(len(column), -1, np.int64)
        begins = np.zeros(len(column), np.int64)
        for row, value in enumerate(column):
            data = value.as_buffer()
            if data is None:
                continue
            try:
                framed = unframe(memoryview(data), with_indexes=self._reader.type is SchemaType.PROTOBUF)
                mark, begins[row] = _Mark(framed.schema_id, framed.guid, framed.message_indexes), framed.payload_begin
            except BadFrame:
                if self._reader.type is not SchemaType.JSON:
                    continue
                mark = _PLAIN
            which[row] = marks.setdefault(mark, len(marks))
        parts = [pa.nulls(1, self.type)]
        places = np.zeros(len(column), np.int64)  # where each row is among the parts; 0 is the null
        at = 1
        for mark, number in marks.items():
            rows = np.flatnonzero(which == number)
            decoder = self._decoder(mark)
            if decoder is None:
                continue
            decoded = decode_each(decoder, column.take(pa.array(rows)), begins[rows])
            parts.append(decoded.columns)
            places[rows] = np.arange(at, at + len(rows))
            at += len(rows)
        return pa.concat_arrays(parts).take(pa.array(places))

    def _decoder(self, mark: _Mark) -> Decoder | None:
        if mark not in self._decoders:
            try:
                writer = (
                    self._registry.by_guid(mark.guid)
                    if mark.schema_id is None
                    else self._registry.by_id(mark.schema_id)
                )
                self._decoders[mark] = decoder_of(writer, self._reader, indexes=mark.indexes or ())
            except (RegistryError, InvalidSchema, UnsupportedSchema, ValueError) as error:
                log.warning("values of schema %s are shown as null: %s", mark.schema_id or mark.guid, error)
                self._decoders[mark] = None
        return self._decoders[mark]
