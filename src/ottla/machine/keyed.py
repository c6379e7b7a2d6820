"""Journal entries with keys: the records of the coordinators' compacted topics, and their encoding.

The encoding is Kafka's: a key begins with its type as an int16, a value with its version as an int16. An entry without
a value is a tombstone. An entry may belong to a producer's transaction; a machine keeps such an entry apart and counts
it only when the `Marker` of that producer commits the transaction.

An entry's key identifies its subject, so a journal may be compacted: applying only the last entry of each key gives the
same state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from struct import Struct
from types import ModuleType
from typing import Any, NamedTuple

from ottla.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerEpoch, ProducerId, ProducerIdentity
from ottla.records.batch import BatchHeader
from ottla.records.build import build_batch
from ottla.records.control import read_marker
from ottla.records.record import records
from ottla.wire import compile
from ottla.wire.message import Data
from ottla.wire.types import WireError

_PREFIX = Struct(">h")


class Entry(NamedTuple):
    """A record that `decide` wants appended and that `apply` is given; `version` is the version of the value.

    `offset` is the offset at which the entry was read; None if it was not read from the journal.
    """

    key: Any
    value: Any | None
    version: int = 0
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    offset: int | None = None


class Marker(NamedTuple):
    """The commit or abort marker that ends a producer's transaction in this journal."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    commit: bool


# The record type at the beginning of a key → the classes of key and value.
Types = Mapping[int, tuple[type[Data], type[Data]]]


def types_of(*modules: ModuleType) -> Types:
    """Return the pairs of classes `XKey` and `XValue` that journal modules declare, by type."""
    found: dict[int, tuple[type[Data], type[Data]]] = {}
    for module in modules:
        for name, key in vars(module).items():
            if name.endswith("Key") and isinstance(key, type) and issubclass(key, Data) and key is not Data:
                found[key.key] = (key, getattr(module, name.removesuffix("Key") + "Value"))
    return found


def encode(entry: Entry) -> tuple[bytes, bytes | None]:
    """Encode an entry as the key and the value of a record."""
    kind = type(entry.key)
    key = bytearray(_PREFIX.pack(kind.key))
    compile.encoder(kind, 0)(entry.key, key, [])
    if entry.value is None:
        return bytes(key), None
    value = bytearray(_PREFIX.pack(entry.version))
    compile.encoder(type(entry.value), entry.version)(entry.value, value, [])
    return bytes(key), bytes(value)


def batch_of(entries: Sequence[Entry], now_ms: int) -> bytearray:
    """Build one batch with all of the entries; either all belong to the same producer's transaction or none does."""
    first = entries[0]
    assert all(entry.producer_id == first.producer_id for entry in entries), "a batch is of one transaction, or of none"
    return build_batch(
        [encode(entry) for entry in entries],
        timestamp=now_ms,
        producer_id=first.producer_id,
        producer_epoch=first.producer_epoch,
        transactional=first.producer_id != NO_PRODUCER_ID,
    )


def entries_of(batch: memoryview, header: BatchHeader, types: Types) -> Iterator[Entry | Marker]:
    """Decode the entries, or the marker, of one batch of a journal.

    Entries of types that are not known here are left out.
    """
    if header.is_control:
        marker = read_marker(batch)
        if marker is not None:
            yield Marker(header.producer_id, header.producer_epoch, marker.commit)
        return
    producer = ProducerIdentity()
    if header.is_transactional:
        producer = ProducerIdentity(header.producer_id, header.producer_epoch)
    for record in records(batch):
        entry = decode(record.key, record.value, types)
        if entry is not None:
            yield entry._replace(producer_id=producer[0], producer_epoch=producer[1], offset=record.offset)


def decode(key: bytes | None, value: bytes | None, types: Types) -> Entry | None:
    """Decode one record; None if its type, or the version of its value, is not known here."""
    if key is None or len(key) < _PREFIX.size:
        raise WireError("a record of a coordinator's journal has no key")
    (kind,) = _PREFIX.unpack_from(key)
    found = types.get(kind)
    if found is None:
        return None
    key_class, value_class = found
    decoded, _ = compile.decoder(key_class, 0)(memoryview(key), _PREFIX.size)
    if value is None:
        return Entry(decoded, None)
    (version,) = _PREFIX.unpack_from(value)
    if not value_class.versions[0] <= version <= value_class.versions[1]:
        return None
    content, _ = compile.decoder(value_class, version)(memoryview(value), _PREFIX.size)
    return Entry(decoded, content, version)
