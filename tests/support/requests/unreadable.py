"""A batch that every broker accepts (its structure and its CRC are valid) and no consumer can read."""

from __future__ import annotations

from ottla.records.build import assemble
from ottla.records.compress import Codec


def no_gzip(offset: int = 0) -> bytearray:
    """A batch whose header says gzip, with data that is not gzip."""
    return assemble(
        bytearray(b"this is no gzip"),
        base_offset=offset,
        leader_epoch=1,
        attributes=Codec.GZIP,
        last_offset_delta=0,
        base_timestamp=0,
        max_timestamp=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=1,
    )
