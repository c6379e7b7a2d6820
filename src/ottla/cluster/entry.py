"""MetadataEntry: a journal record together with the version it is written in, and its bytes.

The bytes are Kafka's: frame version 1, then record type and record version as unsigned varints, then the body.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.cluster.state import JournalError
from ottla.wire import compile
from ottla.wire.journal import cluster_metadata as journal
from ottla.wire.message import Data

_FRAME_VERSION = 1
BODY_AT = 3  # after the frame version, the record type and the record version
_ONE_BYTE = 0x7F  # record types and versions are all below 128, so their varints are one byte each

_TYPES: dict[int, type[Data]] = {
    found.key: found
    for found in vars(journal).values()
    if isinstance(found, type) and issubclass(found, Data) and found.__module__ == journal.__name__
}


class MetadataEntry(NamedTuple):
    """A record that `decide` wants to append."""

    record: Any  # one of the types of the journal
    version: int = 0
    value: bytes | None = None  # the result of `encode`, if it is known already


def encode(entry: MetadataEntry) -> bytes:
    """Return the value of one record of the metadata log."""
    record, version, value = entry
    if value is not None:
        return value
    out = bytearray((_FRAME_VERSION, type(record).key, version))
    compile.encoder(type(record), version)(record, out, [])
    return bytes(out)


def decode(value: bytes | memoryview) -> MetadataEntry:
    """Decode the value of one record of the metadata log, written by Ottla or by Kafka."""
    if len(value) < 3 or value[0] != _FRAME_VERSION or value[1] > _ONE_BYTE or value[2] > _ONE_BYTE:
        raise JournalError(f"a metadata record starts with {bytes(value[:3]).hex()}")
    kind = _TYPES.get(value[1])
    if kind is None:
        raise JournalError(f"metadata record type {value[1]} is unknown")
    version = value[2]
    record, _ = compile.decoder(kind, version)(memoryview(value), BODY_AT)
    return MetadataEntry(record, version)
