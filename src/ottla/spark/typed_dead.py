"""Bad records to a dead-letter topic, as they were, with headers that say where they come from and why.

They are sent before their batch goes on, so none is lost; a task that is run again sends its own again.
"""

from __future__ import annotations

import asyncio

import pyarrow as pa

from ottla.client.options import ClientOptions
from ottla.client.producer import Producer

PREFIX = "ottla.dlq."


def send_dead(options: ClientOptions, topic: str, dead: pa.RecordBatch) -> None:
    """Send rows of `typed.Applied.dead` and wait until they are safe."""
    asyncio.run(_send(options, topic, dead))


async def _send(options: ClientOptions, topic: str, dead: pa.RecordBatch) -> None:
    async with Producer(options) as producer:
        for row in dead.to_pylist():
            own = [(each["key"], each["value"]) for each in row["headers"] or () if not each["key"].startswith(PREFIX)]
            timestamp_ms = round(row["timestamp"].timestamp() * 1000)
            provenance = {
                "topic": row["topic"],
                "partition": row["partition"],
                "offset": row["offset"],
                "reason": row["reason"],
                "timestamp": timestamp_ms,
            }
            added = [(PREFIX + name, str(value).encode()) for name, value in provenance.items()]
            await producer.post(topic, row["value"], key=row["key"], headers=(*own, *added))
        await producer.flush()
