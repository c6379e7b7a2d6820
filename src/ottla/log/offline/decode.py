"""Decodes the records of internal topics for display: keys, values and control records as `wire` messages.

Rules: no request uses this module. A record that cannot be decoded becomes None, never an exception: a dump must show
the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import NamedTuple

from ottla.model.errors import ApiError
from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.records.control import ControlType, control_type
from ottla.records.record import Record
from ottla.wire.compile import decode
from ottla.wire.journal import control
from ottla.wire.message import Data
from ottla.wire.types import WireError

# Topic -> modules of `wire.journal` that declare its records. Keys begin with their type, values with their version.
_KEYED = {
    "__consumer_offsets": ("consumer_offsets", "consumer_group", "share_group", "streams_group"),
    "__transaction_state": ("transaction_state",),
    "__share_group_state": ("share_state",),
}

_CONTROL: dict[ControlType, type[Data]] = {
    ControlType.ABORT: control.EndTxnMarker,
    ControlType.COMMIT: control.EndTxnMarker,
    ControlType.LEADER_CHANGE: control.LeaderChangeMessage,
    ControlType.SNAPSHOT_HEADER: control.SnapshotHeaderRecord,
    ControlType.SNAPSHOT_FOOTER: control.SnapshotFooterRecord,
    ControlType.KRAFT_VERSION: control.KRaftVersionRecord,
    ControlType.KRAFT_VOTERS: control.VotersRecord,
}


class DecodedPayload(NamedTuple):
    """A decoded key and value; each is None if it is absent or of an unknown type."""

    key: Data | None
    value: Data | None


def decode_record(topic: str, record: Record) -> DecodedPayload | None:
    """Decode the record of an internal topic; None for all other topics."""
    if topic == CLUSTER_METADATA_TOPIC:
        return DecodedPayload(None, _metadata(record.value))
    modules = _KEYED.get(topic)
    if modules is None:
        return None
    kinds = _kinds(modules)
    if record.key is None or len(record.key) < 2:
        return DecodedPayload(None, None)
    key_kind, value_kind = kinds.get(int.from_bytes(record.key[:2], "big"), (None, None))
    return DecodedPayload(_body(key_kind, 0, record.key), _versioned(value_kind, record.value))


def decode_control(record: Record) -> tuple[ControlType, Data | None]:
    """Return the kind of a control record, and its message."""
    try:
        kind = control_type(record.key)
    except ApiError:
        return ControlType.UNKNOWN, None
    schema = _CONTROL.get(kind)
    if schema is control.EndTxnMarker:
        return kind, _versioned(schema, record.value)
    # The quorum's messages also have their version as their first field; it is read from there.
    if schema is None or record.value is None or len(record.value) < 2:
        return kind, None
    version = int.from_bytes(record.value[:2], "big")
    return kind, _try(schema, version, record.value)


@cache
def _kinds(modules: tuple[str, ...]) -> dict[int, tuple[type[Data] | None, type[Data] | None]]:
    kinds: dict[int, tuple[type[Data] | None, type[Data] | None]] = {}
    for found in _declared(modules):
        key, value = kinds.get(found.key, (None, None))
        kinds[found.key] = (found, value) if found.__name__.endswith("Key") else (key, found)
    return kinds


@cache
def _metadata_kinds() -> dict[int, type[Data]]:
    return {found.key: found for found in _declared(("cluster_metadata",))}


def _declared(modules: Iterable[str]) -> Iterable[type[Data]]:
    for name in modules:
        module = import_module(f"ottla.wire.journal.{name}")
        for found in vars(module).values():
            if isinstance(found, type) and issubclass(found, Data) and found.__module__ == module.__name__:
                yield found


def _metadata(value: bytes | None) -> Data | None:
    # Frame version 1, type and version are varints of one byte each as long as they stay below 128.
    if value is None or len(value) < 3 or value[0] != 1 or value[1] > 0x7F or value[2] > 0x7F:
        return None
    kind = _metadata_kinds().get(value[1])
    return None if kind is None else _try(kind, value[2], value[3:])


def _versioned(kind: type[Data] | None, value: bytes | None) -> Data | None:
    if value is None or len(value) < 2:
        return None
    return _body(kind, int.from_bytes(value[:2], "big"), value)


def _body(kind: type[Data] | None, version: int, data: bytes) -> Data | None:
    return None if kind is None else _try(kind, version, data[2:])


def _try(kind: type[Data], version: int, data: bytes) -> Data | None:
    try:
        return decode(kind, version, data)
    except WireError:
        return None
