"""The `.snapshot` files beside a log: the producers known at an offset.

A file holds the version as an int16, then the fields.
"""

from __future__ import annotations

from ottla.wire.message import Data, Struct
from ottla.wire.types import Int16, Int32, Int64, ProducerId, UInt32


class ProducerSnapshot(Data, versions="1"):
    """All producers of a partition at one offset, guarded by a CRC-32C over the entries."""

    crc: UInt32

    class ProducerEntry(Struct):
        producer_id: ProducerId
        epoch: Int16
        last_sequence: Int32
        last_offset: Int64
        offset_delta: Int32
        timestamp: Int64
        coordinator_epoch: Int32
        current_txn_first_offset: Int64

    producer_entries: list[ProducerEntry]
