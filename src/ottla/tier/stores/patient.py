"""A store whose calls are bounded in number and time, and repeated as long as their failure may pass.

- So many calls read, and so many change, at once; the others wait for a place, within their time. A pause holds no
  place. So many puts in parts are done at once, from their beginning to their end, and others wait for them as long as
  it takes: a large object over a slow link, or below a quota, takes its time.
- A try ends with an answer, an error or after `try_s`. In a put of parts that time begins anew with each part, and does
  not run while the part is being read: only the store can be late.
- `StoreUnavailable` is repeated, after pauses that double up to a bound and of which chance takes a part, until
  `patience_s` has passed since the call began. Other errors are not repeated.
- A create that is repeated may find its own object, because an answer was lost. It then looks at the content.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from ottla.model import limits
from ottla.tier.stores.errors import ObjectExists, ObjectNotFound, StoreUnavailable
from ottla.tier.stores.port import Content, ObjectInfo, ObjectStore, ReadPart

T = TypeVar("T")


class PatientObjectStore:
    """Has the calls done by another store. Times are the event loop's, `rng` shortens pauses."""

    def __init__(
        self,
        store: ObjectStore,
        rng: random.Random,
        *,
        try_s: float = limits.STORE_TRY_S,
        patience_s: float = limits.STORE_PATIENCE_S,
    ) -> None:
        self._store = store
        self._rng = rng
        self._try_s = try_s
        self._patience_s = patience_s
        self._reads = asyncio.Semaphore(limits.STORE_READS_AT_ONCE)
        self._changes = asyncio.Semaphore(limits.STORE_CHANGES_AT_ONCE)
        self._puts_in_parts = asyncio.Semaphore(limits.STORE_PUTS_IN_PARTS_AT_ONCE)

    async def put(self, key: str, content: Content) -> None:
        await self._repeated(self._changes, lambda: self._in_time(self._store.put(key, content)))

    async def put_parts(self, key: str, size_bytes: int, read: ReadPart) -> None:
        async with self._puts_in_parts:
            await self._repeated(None, lambda: self._put_parts(key, size_bytes, read))

    async def create(self, key: str, content: Content) -> None:
        tries = 0

        async def one() -> None:
            nonlocal tries
            tries += 1
            try:
                await self._in_time(self._store.create(key, content))
            except ObjectExists:
                if tries == 1 or not await self._in_time(self._holds(key, content)):
                    raise

        await self._repeated(self._changes, one)

    async def read(self, key: str, start: int, size_bytes: int) -> memoryview:
        return await self._repeated(self._reads, lambda: self._in_time(self._store.read(key, start, size_bytes)))

    async def look(self, key: str) -> ObjectInfo:
        return await self._repeated(self._reads, lambda: self._in_time(self._store.look(key)))

    async def pages(self, folder: str = "", after: str = "") -> AsyncGenerator[list[ObjectInfo], None]:
        """After a failure the listing goes on behind the last key that was handed out."""
        begun = self._store.pages(folder, after)

        async def next_page() -> list[ObjectInfo] | None:
            nonlocal begun
            try:
                return await self._in_time(anext(begun, None))
            except StoreUnavailable:
                await begun.aclose()
                begun = self._store.pages(folder, after)
                raise

        try:
            while (page := await self._repeated(self._reads, next_page)) is not None:
                after = max(after, page[-1].key)
                yield page
        finally:
            await begun.aclose()

    async def delete(self, keys: Sequence[str]) -> None:
        await self._repeated(self._changes, lambda: self._in_time(self._store.delete(keys)))

    async def close(self) -> None:
        await self._store.close()

    # --- one call

    async def _repeated(self, places: asyncio.Semaphore | None, work: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_s
        pause_s = limits.STORE_PAUSE_S
        while True:
            try:
                return await (work() if places is None else self._at_place(places, deadline, work))
            except StoreUnavailable:
                pause = self._rng.uniform(pause_s / 2, pause_s)
                if loop.time() + pause >= deadline:
                    raise
            await asyncio.sleep(pause)
            pause_s = min(pause_s * 2, limits.STORE_PAUSE_S_MAX)

    async def _at_place(self, places: asyncio.Semaphore, deadline: float, work: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout_at(deadline):
                await places.acquire()
        except TimeoutError:
            raise StoreUnavailable(f"no place among the store's calls for {self._patience_s:g} s") from None
        try:
            return await work()
        finally:
            places.release()

    async def _in_time(self, call: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._try_s):
                return await call
        except TimeoutError:
            raise StoreUnavailable(f"no answer within {self._try_s:g} s") from None

    async def _put_parts(self, key: str, size_bytes: int, read: ReadPart) -> None:
        try:
            async with asyncio.timeout(self._try_s) as limit:
                await self._store.put_parts(key, size_bytes, self._untimed(read, limit))
        except TimeoutError:
            if not limit.expired():
                raise  # the reader's own
            raise StoreUnavailable(f"no progress within {self._try_s:g} s") from None

    def _untimed(self, read: ReadPart, limit: asyncio.Timeout) -> ReadPart:
        async def reading(start: int, size_bytes: int) -> Content:
            with suppress(RuntimeError):  # the time is up, and a library still asks for a part
                limit.reschedule(None)
            try:
                return await read(start, size_bytes)
            finally:
                with suppress(RuntimeError):
                    limit.reschedule(asyncio.get_running_loop().time() + self._try_s)

        return reading

    async def _holds(self, key: str, content: Content) -> bool:
        """Whether the object has just this content."""
        try:
            found = await self._store.look(key)
            if found.size_bytes != len(content):
                return False
            return not content or await self._store.read(key, 0, len(content)) == content
        except ObjectNotFound:
            return False  # it was deleted meanwhile
