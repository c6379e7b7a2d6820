"""A record of a few bytes takes no memory without end. (Not among the files that run without numba: it is too much.)"""

from __future__ import annotations

import pyarrow as pa

from ottla.columns.protobuf.decoder import decoder
from ottla.schemas.schema import SchemaSource, SchemaType


def test_a_few_bytes_take_no_memory_without_end() -> None:
    fields = "".join(f"int64 f{number} = {number};" for number in range(1, 2_001))
    text = f'syntax = "proto3"; message M {{ repeated N n = 1; }} message N {{ {fields} }}'
    reading = decoder(SchemaSource(text, SchemaType.PROTOBUF))
    decoded = reading.decode(pa.array([b"\x0a\x00" * 100_000, b"\x0a\x00" * 3], pa.binary()))
    assert decoded.reasons == {0: "the messages in it would take too much memory"}
    assert len(decoded.columns[1]["n"]) == 3
