"""A member of a share group that uses the real `ShareConsumer`, with explicit acknowledgements.

The client does much by itself (fetches again after a failure, reconnects), so less is known for sure than of a
`SimShareMember`: its acquisitions are never certain, and every empty poll may have lost an answer.
"""

from __future__ import annotations

import asyncio
import math
import random

from ottla.client.errors import ClientError
from ottla.client.share.consumer import ShareConsumer
from ottla.client.share.delivery import Delivery
from ottla.client.share.options import Acknowledged, ShareOptions
from ottla.model.errors import ApiError
from ottla.model.ids import TopicPartition
from ottla.sim.shares.check import ACCEPT, REJECT, RELEASE, Acknowledging, SentRequest, ShareBook
from ottla.sim.shares.member import AcknowledgementRates
from ottla.sim.workload import Surroundings

# So few bytes that one poll takes everything a fetch returned.
FETCH_BYTES_MAX = 20_000

_DEEDS = {ACCEPT: Delivery.accept, RELEASE: Delivery.release, REJECT: Delivery.reject}


class ClientShareMember:
    """One process; see the module. With `quiet_seconds` it ends when no record came for so long."""

    def __init__(
        self,
        around: Surroundings,
        book: ShareBook,
        rates: AcknowledgementRates,
        name: str,
        rng: random.Random,
        *,
        quiet_seconds: float = math.inf,
    ) -> None:
        self._around = around
        self._book = book
        self._rates = rates
        self._name = name
        self._rng = rng
        self._quiet_seconds = quiet_seconds

    async def run(self) -> None:
        while True:
            self._sent: dict[tuple[TopicPartition, int], Acknowledging] = {}
            try:
                options = ShareOptions(
                    group_id=self._book.group,
                    acknowledgement_mode="explicit",
                    acquire_mode=self._rng.choice(("batch_optimized", "record_limit")),
                    acknowledge_linger_ms=self._rng.choice((0, 100, 1000)),
                    heartbeat_interval_ms=1_000,
                    fetch_max_bytes=FETCH_BYTES_MAX,
                    on_acknowledged=self._acknowledged,
                )
                async with ShareConsumer(self._around.options(self._name, self._rng), options) as consumer:
                    consumer.subscribe([self._around.partitions[0].topic])
                    await self._work(consumer)
                return
            except (ClientError, ApiError) as error:
                self._around.tell(f"{self._name} begins anew: {error}")
                await asyncio.sleep(self._rng.uniform(0.1, 1.0))

    async def _work(self, consumer: ShareConsumer) -> None:
        loop = asyncio.get_running_loop()
        asked, found_at = self._book.asking(self._name), loop.time()
        while loop.time() - found_at < self._quiet_seconds:
            found = await consumer.poll(timeout_ms=500)
            if not found:
                # The fetch may still be waiting; or it failed, and another one was sent.
                self._book.lost_fetches += 1
                continue
            found_at = loop.time()
            self._book.answered(asked)
            for delivery in found:
                self._take(asked, delivery)
            if self._rng.random() < 0.3:
                await consumer.commit()
            if self._rng.random() < 0.1:
                await asyncio.sleep(self._rng.expovariate(3))
            asked = self._book.asking(self._name)

    def _take(self, asked: SentRequest, delivery: Delivery) -> None:
        partition = TopicPartition(delivery.topic, delivery.partition)
        self._around.history.read(partition, delivery.offset, delivery.value, None)
        self._book.acquired(asked, partition, delivery.offset, delivery.delivery_count, 0.0, lambda: False)
        kind = self._rates.choose(self._rng)
        if kind is not None:
            self._sent[partition, delivery.offset] = self._book.acknowledging(
                self._name, {partition: {delivery.offset: kind}}
            )
            _DEEDS[kind](delivery)

    def _acknowledged(self, outcome: Acknowledged) -> None:
        code = 0 if outcome.error is None else outcome.error.code
        for offset in outcome.offsets:
            sent = self._sent.pop((outcome.partition, offset), None)
            if sent is not None:
                self._book.acknowledged(sent, outcome.partition, code)
