"""What clients with transactions have in common: they change their minds, and the last one leaves nothing open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.client.errors import ClientError
from ottla.client.producer.producer import Producer
from ottla.model.errors import ApiError
from ottla.sim.workload import PATIENCE_SECONDS


class Changed(Exception):
    """The application changed its mind: abort."""


async def take_over(transactional_id: str, make: Callable[[], Producer], blame: Callable[[str], None]) -> None:
    """Whatever was left open under the id is ended by the last of those who had it, made by `make`."""
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
