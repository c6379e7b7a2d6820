"""Keys and values typed by the registry: each is decoded by its writer schema, to the subject's latest schema.

JSON may also be plain, without a schema id in front. A value that does not decode is null and does not fail the query.
`format := 'raw'` shows the bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from ottla.client.registry import NOT_FOUND, RegistryError, RegistryOptions, RegistryUnreachable, SchemaRegistry
from ottla.columns.codec import Decoder, UnsupportedSchema, decode_each
from ottla.columns.formats import decoder_of
from ottla.columns.schema_ids import PLAIN, SchemaMark, frames
from ottla.schemas.schema import InvalidSchema, SchemaSource, SchemaType
from ottla.sql.payloads import PayloadColumns

log = logging.getLogger(__name__)


class RegistrySubjects:
    """The subjects of a registry. If it cannot be reached, no subject is typed; `warn` is called with the reason."""

    def __init__(self, urls: str, warn: Callable[[str], None] = log.warning) -> None:
        self._warn = warn
        self._registry = SchemaRegistry(RegistryOptions.of(urls, attempts=1, timeout_s=3.0))
        self._is_away = False

    def payloads(self, subject: str) -> PayloadColumns | None:
        """The decoder of the subject; None if the subject does not exist, or its schema cannot be columns."""
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
    """Decodes payloads with schema ids to columns of one schema."""

    def __init__(self, registry: SchemaRegistry, reader: SchemaSource) -> None:
        self._registry = registry
        self._reader = reader
        self._decoders: dict[SchemaMark, Decoder | None] = {}
        self._own = decoder_of(reader, reader)
        self.type: pa.DataType = self._own.type

    def decode(self, column: pa.Array) -> pa.Array:
        kind = self._reader.type
        found = frames(
            column,
            None,
            of_key=False,
            with_message=kind is SchemaType.PROTOBUF,
            plain=kind is SchemaType.JSON,
        )
        decoders = [(number, self._decoder(mark)) for number, mark in enumerate(found.marks)]
        parts = [pa.nulls(1, self.type)]
        places = np.zeros(len(column), np.int64)  # index of each row in the parts; 0 is the null
        at = 1
        for number, decoder in [*decoders, (PLAIN, self._own)]:
            rows = np.flatnonzero(found.which == number)
            if decoder is None or not len(rows):
                continue
            decoded = decode_each(decoder, column.take(pa.array(rows)), found.begins[rows])
            parts.append(decoded.columns)
            places[rows] = np.arange(at, at + len(rows))
            at += len(rows)
        return pa.concat_arrays(parts).take(pa.array(places))

    def _decoder(self, mark: SchemaMark) -> Decoder | None:
        if mark not in self._decoders:
            try:
                schema, registry = mark.schema, self._registry
                writer = registry.by_id(schema) if isinstance(schema, int) else registry.by_guid(schema)
                self._decoders[mark] = decoder_of(writer, self._reader, indexes=mark.message)
            except (RegistryError, InvalidSchema, UnsupportedSchema, ValueError) as error:
                log.warning("values of schema %s are shown as null: %s", mark.schema, error)
                self._decoders[mark] = None
        return self._decoders[mark]
