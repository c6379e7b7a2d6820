"""Common parts of transactional clients: their producer, aborting on a whim, and ending what is left open."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from ottla.client.errors import ClientError
from ottla.client.producer.producer import Producer, ProducerOptions
from ottla.model.errors import ApiError
from ottla.sim.workload import PATIENCE_SECONDS, Surroundings

# For a transaction coordinator on a single node, which soon aborts what takes too long.
TRANSACTION_SETTINGS = {
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
}


class Changed(Exception):
    """Raised inside a transaction to abort it."""


def transactional_producer(
    around: Surroundings, client_id: str, transactional_id: str, timeout_ms: int, rng: random.Random
) -> Producer:
    options = ProducerOptions(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        linger_ms=rng.choice((0.0, 5.0)),
        request_timeout_ms=6_000,
        delivery_timeout_ms=15_000,
        auto_create_topics=False,
    )
    return Producer(around.options(client_id, rng), options)


async def take_over(transactional_id: str, make: Callable[[], Producer], blame: Callable[[str], None]) -> None:
    """Make a last producer with `make` that takes over the id, which ends a transaction left open under it."""
    deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while True:
        try:
            async with make() as producer:
                await producer.init_transactions()
            return
        except (ClientError, ApiError) as error:
            if asyncio.get_running_loop().time() > deadline:
                blame(f"nobody can take over {transactional_id}: {error}")
                return
            await asyncio.sleep(1)
