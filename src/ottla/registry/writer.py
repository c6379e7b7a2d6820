"""Writing to the registry's topic: one transaction per change, under a transactional id that only one writer can hold.

Taking the id over ends an earlier holder's open transaction and fences it: from then on its writes fail. So nothing is
added to the log after that, until this writer writes or is fenced itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ottla.client.cluster import Cluster
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.producer import Producer
from ottla.model import limits
from ottla.schemas.registry.records import RegistryRecord


class RegistryWriter:
    """The holder of the transactional id; unusable after any failure."""

    def __init__(self, cluster: Cluster, topic: str, transactional_id: str, timeout_ms: int) -> None:
        self._topic = topic
        self._producer = Producer(
            cluster,
            ProducerOptions(
                linger_ms=0,
                max_request_bytes=2 * limits.HTTP_BODY_BYTES_MAX,
                delivery_timeout_ms=timeout_ms,
                max_block_ms=timeout_ms,
                auto_create_topics=False,
                transactional_id=transactional_id,
                transaction_timeout_ms=2 * timeout_ms,
            ),
        )

    async def take(self) -> None:
        """Take the transactional id over, which makes this the only writer."""
        await self._producer.init_transactions()

    async def write(self, records: Sequence[RegistryRecord]) -> int:
        """Write the records, all or none; return the offset behind the last one."""
        futures = []
        try:
            async with self._producer.transaction():
                for record in records:
                    future = await self._producer.enqueue(
                        self._topic,
                        record.value,
                        record.key,
                        headers=record.headers,
                        partition=0,
                        timestamp=record.timestamp_ms,
                    )
                    futures.append(future)
        except BaseException:
            for future in futures:
                if future.done() and not future.cancelled():
                    future.exception()  # mark it as retrieved: it is being raised, or a consequence of it
            raise
        return max([await future for future in futures], key=lambda each: each.offset).offset + 1

    async def close(self) -> None:
        await asyncio.shield(self._producer.close(discard=True))
