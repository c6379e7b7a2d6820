"""Decode the keys, or the values, of a batch, each by the schema it was written with.

Rules:
- Without a registry the values are plain payloads of the schema in the options.
- Rows whose schema is not in the registry, or cannot be used to decode, are bad. A registry that does not answer, or
  gives an invalid answer, is an error, because it may answer later.
- If decoding a column fails, the bad rows are found one by one, so that a bad record does not affect other records.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ottla.client.registry import RegistryError, SchemaRegistry
from ottla.columns.codec import DecodedColumns, Decoder, UnsupportedSchema, decode_each
from ottla.columns.formats import decoder_of
from ottla.columns.framed import decode_framed
from ottla.columns.schema_ids import SchemaMark
from ottla.columns.text import TextDecoder
from ottla.model.limits import DECODERS_KEPT_MAX
from ottla.schemas.schema import InvalidSchema, SchemaSource


@dataclass
class Side:
    """How keys, or values, are decoded. `reader` is None for text."""

    name: str
    reader: SchemaSource | None
    registry: SchemaRegistry | None = None
    message: str = ""
    _decoders: OrderedDict[SchemaMark, Decoder | str] = field(default_factory=OrderedDict, repr=False)
    _reading: Decoder | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_decoders": OrderedDict(), "_reading": None}

    @property
    def type(self) -> pa.DataType:
        """The type of the decoded column."""
        return self._own().type

    def decode(self, values: pa.Array, headers: pa.Array | None) -> DecodedColumns:
        """Decode one column."""
        if self.registry is None or self.reader is None:
            return decode_each(self._own(), values, np.zeros(len(values), np.int64))
        of_key = self.name == "key"
        return decode_framed(values, headers, self.reader.type, self._own, self._decoder, of_key=of_key)

    def _own(self) -> Decoder:
        """The decoder of the reader's own schema. Raises InvalidSchema, UnsupportedSchema."""
        if self.reader is None:
            return TextDecoder()
        if self._reading is None:
            self._reading = decoder_of(self.reader, None, self.message)
        return self._reading

    def _decoder(self, mark: SchemaMark) -> Decoder | str:
        """The decoder for the schema of a mark, or the reason why there is none."""
        if mark not in self._decoders:
            self._decoders[mark] = self._made(mark)
            if len(self._decoders) > DECODERS_KEPT_MAX:
                self._decoders.popitem(last=False)
        return self._decoders[mark]

    def _made(self, mark: SchemaMark) -> Decoder | str:
        assert self.registry is not None and self.reader is not None
        try:
            writer = self.registry.by_id_or_guid(mark.schema)
        except RegistryError as error:
            if not error.is_not_found:
                raise
            return f"the registry has no schema {mark.schema}"
        except InvalidSchema as error:
            return f"schema {mark.schema} cannot be read by: {error}"
        if writer.type is not self.reader.type:
            return f"schema {mark.schema} is {writer.type.value}, not {self.reader.type.value}"
        try:
            return decoder_of(writer, self.reader, self.message, mark.message)
        except UnsupportedSchema as error:
            return str(error)
        except Exception as error:  # any client may register any schema
            return f"schema {mark.schema} cannot be read by: {type(error).__name__} {error}"
