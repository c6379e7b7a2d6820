"""Keys and values typed by the registry: each is decoded by its writer schema, to the subject's latest schema.

JSON may also be plain, without a schema id in front. A value that does not decode is null and does not fail the query.
`format := 'raw'` shows the bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa

from ottla.client.registry import NOT_FOUND, RegistryError, RegistryOptions, RegistryUnreachable, SchemaRegistry
from ottla.client.security.registry_settings import RegistrySecurity
from ottla.columns.codec import Decoder, UnsupportedSchema
from ottla.columns.formats import decoder_of
from ottla.columns.framed import decode_framed
from ottla.columns.schema_ids import SchemaMark
from ottla.schemas.schema import InvalidSchema, SchemaSource
from ottla.sql.payloads import PayloadColumns

log = logging.getLogger(__name__)


class RegistrySubjects:
    """The subjects of a registry. If it cannot be reached, no subject is typed; `warn` is called with the reason."""

    def __init__(
        self,
        urls: str | RegistryOptions,
        warn: Callable[[str], None] = log.warning,
        security: RegistrySecurity | Mapping[str, str] | None = None,
    ) -> None:
        self._warn = warn
        options = urls if isinstance(urls, RegistryOptions) else RegistryOptions.of(urls, security)
        self._registry = SchemaRegistry(replace(options, attempts=1, timeout_s=3.0))
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
        self._decoders: dict[SchemaMark, Decoder | str] = {}
        self._own = decoder_of(reader, reader)
        self.type: pa.DataType = self._own.type

    def decode(self, column: pa.Array) -> pa.Array:
        own = self._own
        return decode_framed(column, None, self._reader.type, lambda: own, self._decoder, of_key=False).columns

    def _decoder(self, mark: SchemaMark) -> Decoder | str:
        if mark not in self._decoders:
            try:
                writer = self._registry.by_id_or_guid(mark.schema)
                self._decoders[mark] = decoder_of(writer, self._reader, indexes=mark.message)
            except (RegistryError, InvalidSchema, UnsupportedSchema, ValueError) as error:
                log.warning("values of schema %s are shown as null: %s", mark.schema, error)
                self._decoders[mark] = ""
        return self._decoders[mark]
