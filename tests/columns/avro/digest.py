"""What the loops make of the matrix's columns and of any bytes, in short: to compare compiled loops with plain ones."""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any

import pyarrow as pa
from tests.columns.avro.matrix import AVRO, COLUMNS

from ottla.columns.avro.decoder import decoder
from ottla.columns.avro.encoder import encoder
from ottla.schemas.schema import SchemaSource

# Numbers of all lengths, lengths that lie, blocks with and without sizes: more of interest than any bytes.
_PARTS = [b"\0", b"\x01", b"\x02", b"\x03", b"\x04", b"\x7f", b"\x80", b"\xff", b"\x80" * 4, b"\xff" * 9, b"a", b"\xe9"]


def digests() -> dict[str, str]:
    """By Avro type."""
    return {name: _digest(json.dumps(each)) for name, each in AVRO.items()}


def _digest(text: str) -> str:
    rng = random.Random(text)
    payloads: list[Any] = [b"".join(rng.choices(_PARTS, k=rng.randrange(8))) for _ in range(60)]
    for column in COLUMNS.values():
        made = encoder(SchemaSource(text))
        for row in range(len(column)):
            try:
                payloads += made.encode(column.slice(row, 1)).to_pylist()
            except ValueError as error:
                payloads.append(str(error).encode())
    decoded = decoder(SchemaSource(text)).decode(pa.array(payloads, pa.binary()))
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, pa.schema([("c", decoded.columns.type)])) as to:
        to.write_batch(pa.record_batch([decoded.columns], names=["c"]))
    whole = repr((payloads, sorted(decoded.reasons.items()))).encode() + stream.getvalue().to_pybytes()
    return hashlib.sha256(whole).hexdigest()


def main() -> None:
    print(json.dumps(digests()))
