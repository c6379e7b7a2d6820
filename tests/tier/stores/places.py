"""What the tests of stores have in common: stores to try, on the event loop that suits them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from ottla.model.store_location import parse_store_location
from ottla.sim.world.loop import SimLoop
from ottla.tier.stores.opening import open_store
from ottla.tier.stores.port import Content, ObjectInfo, ObjectStore, ReadPart

T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """A kind of store: `open` makes one over the same objects each time it is called."""

    name: str
    open: Callable[[], Awaitable[ObjectStore]]
    is_simulated: bool = False
    new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop

    def run(self, work: Callable[[ObjectStore], Coroutine[Any, Any, T]]) -> T:
        async def main() -> T:
            store = await self.open()
            try:
                return await work(store)
            finally:
                await store.close()

        if not self.is_simulated:
            with asyncio.Runner(loop_factory=self.new_loop) as runner:
                return runner.run(main())
        loop = SimLoop(random.Random(1))
        try:
            return loop.run_until_complete(main())
        finally:
            loop.bury()


def place_of(name: str, url: str, new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop) -> Place:
    return Place(name, lambda: open_store(parse_store_location(url), random.Random(1)), new_loop=new_loop)


def reader_of(content: bytes) -> ReadPart:
    async def read(start: int, size_bytes: int) -> Content:
        return memoryview(content)[start : start + size_bytes]

    return read


async def listed(store: ObjectStore, folder: str = "", after: str = "") -> list[ObjectInfo]:
    """All that a listing tells of; no page is empty."""
    found: list[ObjectInfo] = []
    async for page in store.pages(folder, after):
        assert page
        found += page
    return found


async def read_all(store: ObjectStore, key: str, piece_bytes: int = 1 << 20) -> bytes:
    size = (await store.look(key)).size_bytes
    starts = range(0, size, piece_bytes)
    return b"".join([bytes(await store.read(key, at, min(piece_bytes, size - at))) for at in starts])
