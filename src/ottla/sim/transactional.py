"""Common parts of transactional clients: aborting on a whim, and ending what is left open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.client.errors import ClientError
from ottla.client.producer.producer import Producer
from ottla.model.errors import ApiError
from ottla.sim.workload import PATIENCE_SECONDS


class Changed(Exception):
    """Raised inside a transaction to abort it."""


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
