"""What goes wrong with object stores, around any of them, decided by a seed.

Fault model (what may happen, and what code above the port may therefore rely on)
--------------------------------------------------------------------------------
- Calls take time, before and after they have their effect.
- A call fails and has no effect (`failure_rate`, or all of them while `is_down`); a put of parts fails between two.
- A change is done and its caller sees an error (`lost_answer_rate`).
- A change fails, and is done later all the same (`late_rate`): its request was on the way. Later changes of the same
  key by others may be undone by that, as in reality.
- A listing lags: what was put or deleted within `listing_lag_s` is shown or not. It tells of some objects twice
  (`repeated_rate`), on one page or on the next.
- An object is whole or not there, reads after a put that has returned see it, and content is never changed: no cloud
  gives less.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from ottla.model import limits
from ottla.tier.stores.errors import ObjectNotFound, StoreError, StoreUnavailable
from ottla.tier.stores.keys import check_key
from ottla.tier.stores.port import Content, ObjectInfo, ObjectStore, ReadPart

T = TypeVar("T")


@dataclass(slots=True)
class ObjectStoreFaults:
    """The present faults; tests and the fault schedule change them at any time."""

    delay_s: tuple[float, float] = (0.0, 0.0)
    is_down: bool = False
    failure_rate: float = 0.0
    lost_answer_rate: float = 0.0
    late_rate: float = 0.0
    late_s: tuple[float, float] = (0.0, 1.0)
    listing_lag_s: float = 0.0
    repeated_rate: float = 0.0


class FaultyObjectStore:
    """Has the calls done by another store, unless a fault strikes."""

    def __init__(self, store: ObjectStore, rng: random.Random, faults: ObjectStoreFaults | None = None) -> None:
        self._store = store
        self._rng = rng
        self.faults = faults or ObjectStoreFaults()
        self.struck = 0  # calls that failed by a fault
        self._changed: dict[str, tuple[float, ObjectInfo | None]] = {}  # since when; what was there before, if deleted
        self._late: dict[asyncio.Task[None], None] = {}

    async def put(self, key: str, content: Content) -> None:
        check_key(key)
        content = bytes(content)
        await self._change([key], lambda: self._store.put(key, content))

    async def put_parts(self, key: str, size_bytes: int, read: ReadPart) -> None:
        check_key(key)
        if self._strikes(self.faults.late_rate):  # all parts arrive, and what ends the put is on its way
            content = await self._read_all(size_bytes, read)

            async def reread(start: int, count: int) -> Content:
                return content[start : start + count]

            await self._change([key], lambda: self._store.put_parts(key, size_bytes, reread), is_late=True)
        await self._before()
        fails = self._strikes(self.faults.failure_rate)
        fails_at = self._rng.randrange(size_bytes + 1)

        async def reading(start: int, count: int) -> Content:
            if fails and start + count >= fails_at:
                raise self._failure()
            return await read(start, count)

        await self._store.put_parts(key, size_bytes, reading)
        self._note([key])
        await self._after()

    async def create(self, key: str, content: Content) -> None:
        check_key(key)
        content = bytes(content)
        await self._change([key], lambda: self._store.create(key, content))

    async def read(self, key: str, start: int, size_bytes: int) -> memoryview:
        return await self._look(lambda: self._store.read(key, start, size_bytes))

    async def look(self, key: str) -> ObjectInfo:
        return await self._look(lambda: self._store.look(key))

    async def pages(self, folder: str = "", after: str = "") -> AsyncGenerator[list[ObjectInfo], None]:
        repeated: list[ObjectInfo] = []
        ghosts = self._ghosts(folder, after)
        async with aclosing(self._store.pages(folder, after)) as pages:
            async for page in pages:
                await self._before()
                if self._strikes(self.faults.failure_rate):
                    raise self._failure()
                seen = [info for info in page if self._is_listed(info.key)]
                last = page[-1].key
                seen = sorted([*seen, *(info for info in ghosts if info.key <= last)])
                ghosts = [info for info in ghosts if info.key > last]
                told = repeated + [info for info in seen for _ in range(1 + self._strikes(self.faults.repeated_rate))]
                repeated = [info for info in seen if self._strikes(self.faults.repeated_rate)]
                if told:
                    yield told
        if repeated or ghosts:
            yield [*repeated, *ghosts]

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            check_key(key)
        before = []
        for key in keys if self.faults.listing_lag_s else ():
            try:
                before.append(await self._store.look(key))
            except ObjectNotFound:
                continue
        await self._change([info.key for info in before], lambda: self._store.delete(keys), before)

    async def close(self) -> None:
        await self.settle()
        await self._store.close()

    async def settle(self) -> None:
        """Wait until no late change is on the way any more."""
        while self._late:
            await asyncio.wait(self._late)

    # --- faults

    async def _look(self, work: Callable[[], Awaitable[T]]) -> T:
        await self._before()
        if self._strikes(self.faults.failure_rate):
            raise self._failure()
        return await work()

    async def _read_all(self, size_bytes: int, read: ReadPart) -> bytes:
        part = limits.STORE_PART_BYTES
        return b"".join([bytes(await read(at, min(part, size_bytes - at))) for at in range(0, size_bytes, part)])

    async def _change(
        self,
        keys: Sequence[str],
        work: Callable[[], Awaitable[None]],
        deleted: Sequence[ObjectInfo] = (),
        *,
        is_late: bool = False,
    ) -> None:
        await self._before()
        if is_late or self._strikes(self.faults.late_rate):
            task = asyncio.get_running_loop().create_task(self._do_later(work))
            self._late[task] = None
            task.add_done_callback(self._late.pop)
            raise self._failure()
        if self._strikes(self.faults.failure_rate):
            raise self._failure()
        await work()
        self._note(keys, deleted)
        await self._after()

    async def _before(self) -> None:
        await self._pause(self.faults.delay_s)
        if self.faults.is_down:
            raise self._failure()

    async def _after(self) -> None:
        await self._pause(self.faults.delay_s)
        if self.faults.is_down or self._strikes(self.faults.lost_answer_rate):
            raise self._failure()

    async def _do_later(self, work: Callable[[], Awaitable[None]]) -> None:
        await self._pause(self.faults.late_s)
        try:
            await work()
        except StoreError:
            return  # nobody waits for it

    async def _pause(self, bounds: tuple[float, float]) -> None:
        seconds = self._rng.uniform(*bounds)
        if seconds:
            await asyncio.sleep(seconds)

    def _strikes(self, rate: float) -> bool:
        return bool(rate) and self._rng.random() < rate

    def _failure(self) -> StoreUnavailable:
        self.struck += 1
        return StoreUnavailable("a simulated fault")

    # --- listings that lag

    def _note(self, keys: Sequence[str], deleted: Sequence[ObjectInfo] = ()) -> None:
        now_s = asyncio.get_running_loop().time()
        lag_s = self.faults.listing_lag_s
        self._changed = {key: change for key, change in self._changed.items() if change[0] > now_s - lag_s}
        if lag_s:
            gone = {info.key: info for info in deleted}
            self._changed.update({key: (now_s, gone.get(key)) for key in keys})

    def _is_recent(self, key: str) -> bool:
        changed = self._changed.get(key)
        now_s = asyncio.get_running_loop().time()
        return changed is not None and changed[0] > now_s - self.faults.listing_lag_s

    def _is_listed(self, key: str) -> bool:
        return not self._is_recent(key) or self._rng.random() < 0.5

    def _ghosts(self, folder: str, after: str) -> list[ObjectInfo]:
        """Deleted objects that the listing still tells of."""
        return sorted(
            info
            for key, (_, info) in self._changed.items()
            if info is not None and key.startswith(folder) and key > after and self._is_recent(key)
            if self._rng.random() < 0.5
        )
