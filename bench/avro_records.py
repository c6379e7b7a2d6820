"""Records with five Avro fields, with schema ids in front, of 100 bytes each."""

from __future__ import annotations

import io
import itertools
import json
from typing import Any

import fastavro
from confluent_kafka import Producer

from ottla.schemas.framing import frame

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "amount", "type": "double"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "who", "type": "string"},
    ],
}
SCHEMA_TEXT = json.dumps(SCHEMA)
RECORD_BYTES = 100
DIFFERENT = 20_000  # made once and sent repeatedly, because making them is not measured
BATCH_BYTES = 65_536
LINGER_MS = 20
_PARSED = fastavro.parse_schema(SCHEMA)
_FIRST_MS = 1_700_000_000_000


def record(number: int) -> dict[str, Any]:
    """The fields of a record. Amounts are multiples of a quarter, so that sums are the same in any order."""
    note = f"note {number % 100:02}" if number % 3 else None
    whole = {"id": number, "amount": number % 4_000 / 4, "at": _FIRST_MS + number, "note": note, "who": ""}
    left = RECORD_BYTES - len(_encoded(0, whole))
    # From 64 characters on, the length itself takes a second byte.
    return whole | {"who": f"{number:x}".ljust(left if left < 64 else left - 1, "w")}


def value(schema_id: int, number: int) -> bytes:
    return _encoded(schema_id, record(number))


def _encoded(schema_id: int, fields: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _PARSED, fields)
    return frame(schema_id, out.getvalue())


def values(schema_id: int, different: int = DIFFERENT) -> list[bytes]:
    return [value(schema_id, number) for number in range(different)]


def produce(bootstrap: str, topic: str, contents: list[bytes], records: int) -> None:
    """Produce with librdkafka, as fast as it can; every record must be acknowledged."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": "1",
            "batch.size": BATCH_BYTES,
            "linger.ms": LINGER_MS,
            "queue.buffering.max.messages": 200_000,
        }
    )
    refused: list[str] = []
    producer_send = producer.produce

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            refused.append(error.str())

    for content in itertools.islice(itertools.cycle(contents), records):
        while True:
            try:
                producer_send(topic, content, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.05)
    left = producer.flush(120)
    assert not left and not refused, f"{left} records were not sent, {len(refused)} refused: {refused[:1]}"
