"""Bounds and repetitions of calls, in virtual time, over a store in memory whose failures are scripted."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from typing import Any

import pytest
from tests.tier.stores.places import listed, read_all, reader_of

from ottla.model import limits
from ottla.sim.world.loop import SimLoop
from ottla.sim.world.object_store import MemoryObjectStore
from ottla.tier.stores.errors import (
    ObjectExists,
    ObjectNotFound,
    StoreBroken,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from ottla.tier.stores.patient import PatientObjectStore
from ottla.tier.stores.port import Content, ObjectInfo, ReadPart

Run = Callable[[Coroutine[Any, Any, None]], None]


class Scripted(MemoryObjectStore):
    """Each call takes the next line of the script: an error, seconds to wait, or None to be carried out."""

    def __init__(self) -> None:
        super().__init__(page_objects=5)
        self.script: deque[StoreError | float | None] = deque()
        self.calls = 0
        self.under_way = 0
        self.most_under_way = 0
        self.is_done_first = False  # an error of the script comes after the effect

    async def next_line(self) -> StoreError | None:
        self.calls += 1
        self.under_way += 1
        self.most_under_way = max(self.under_way, self.most_under_way)
        try:
            line = self.script.popleft() if self.script else None
            if isinstance(line, float):
                await asyncio.sleep(line)
                return None
            if line is not None and not self.is_done_first:
                raise line
            return line
        finally:
            self.under_way -= 1

    async def put(self, key: str, content: Content) -> None:
        error = await self.next_line()
        await super().put(key, content)
        if error is not None:
            raise error

    async def create(self, key: str, content: Content) -> None:
        error = await self.next_line()
        if any(info.key == key for page in [self._page("", "")] for info in page):
            raise ObjectExists(key)
        await MemoryObjectStore.put(self, key, content)
        if error is not None:
            raise error

    async def put_parts(self, key: str, size_bytes: int, read: ReadPart) -> None:
        await self.next_line()
        await super().put_parts(key, size_bytes, read)

    async def read(self, key: str, start: int, size_bytes: int) -> memoryview:
        await self.next_line()
        return await super().read(key, start, size_bytes)

    async def look(self, key: str) -> ObjectInfo:
        await self.next_line()
        return await super().look(key)

    async def delete(self, keys: Sequence[str]) -> None:
        await self.next_line()
        await super().delete(keys)

    async def pages(self, folder: str = "", after: str = "") -> AsyncGenerator[list[ObjectInfo], None]:
        while page := self._page(folder, after):
            await self.next_line()
            after = page[-1].key
            yield page


@pytest.fixture
def run() -> Iterator[Run]:
    loop = SimLoop(random.Random(1))
    yield loop.run_until_complete
    loop.bury()


def patient(store: MemoryObjectStore, **bounds: float) -> PatientObjectStore:
    return PatientObjectStore(store, random.Random(3), **bounds)


def gone() -> StoreUnavailable:
    return StoreUnavailable("gone")


def now_s() -> float:
    return asyncio.get_running_loop().time()


def test_what_may_pass_is_repeated_with_growing_pauses(run: Run) -> None:
    async def main() -> None:
        inner = Scripted()
        inner.script.extend(gone() for _ in range(8))
        began_s = now_s()
        await patient(inner).put("a", b"x")
        assert inner.calls == 9 and await read_all(inner, "a") == b"x"
        pauses = [min(limits.STORE_PAUSE_S * 2**number, limits.STORE_PAUSE_S_MAX) for number in range(8)]
        assert sum(pauses) / 2 <= now_s() - began_s <= sum(pauses)

    run(main())


def test_repetition_ends_in_time_with_the_last_error(run: Run) -> None:
    async def main() -> None:
        inner = Scripted()
        inner.script.extend(gone() for _ in range(1000))
        store = patient(inner)
        for call in (
            lambda: store.put("a", b""),
            lambda: store.create("a", b""),
            lambda: store.put_parts("a", 0, reader_of(b"")),
            lambda: store.read("a", 0, 0),
            lambda: store.look("a"),
            lambda: store.delete(["a"]),
        ):
            began_s = now_s()
            with pytest.raises(StoreUnavailable, match="gone"):
                await call()
            assert limits.STORE_PATIENCE_S - limits.STORE_PAUSE_S_MAX <= now_s() - began_s <= limits.STORE_PATIENCE_S
        assert inner.calls < 200

    run(main())


@pytest.mark.parametrize("kind", [ObjectNotFound, StoreDenied, StoreFull, StoreBroken])
def test_what_cannot_pass_is_told_at_once(run: Run, kind: type[StoreError]) -> None:
    async def main() -> None:
        inner = Scripted()
        inner.script.append(kind("so it is", "do this"))
        with pytest.raises(kind, match=r"so it is \(do this\)"):
            await patient(inner).look("a")
        assert inner.calls == 1 and now_s() == 0

    run(main())


def test_a_call_without_an_answer_is_tried_again(run: Run) -> None:
    async def main() -> None:
        inner = Scripted()
        inner.script.extend([1e6, None, 1e6, 1e6, 1e6])
        store = patient(inner, try_s=10, patience_s=60)
        await store.put("a", b"x")
        assert inner.calls == 2 and 10 <= now_s() < 11
        inner.script = deque([1e6] * 50)
        began_s = now_s()
        with pytest.raises(StoreUnavailable, match="no answer within 10 s"):
            await store.look("a")
        assert now_s() - began_s <= 70 and inner.under_way == 0

    run(main())


def test_time_of_a_put_in_parts_is_that_of_the_store(run: Run) -> None:
    """A reader that waits for a quota is not late. The store has the time of a try for each part."""

    class Slow(MemoryObjectStore):
        async def put_parts(self, key: str, size_bytes: int, read: ReadPart) -> None:
            async def reading(start: int, count: int) -> Content:
                await asyncio.sleep(8)
                return await read(start, count)

            await super().put_parts(key, size_bytes, reading)
            await asyncio.sleep(self.last_s)

        last_s = 8.0

    async def main() -> None:
        content = bytes(4 * limits.STORE_PART_BYTES)
        inner = Slow()
        store = patient(inner, try_s=10, patience_s=30)
        reads = 0

        async def slow_read(start: int, count: int) -> Content:
            nonlocal reads
            reads += 1
            await asyncio.sleep(100)
            return content[start : start + count]

        await store.put_parts("a", len(content), slow_read)
        assert reads == 4 and now_s() == 4 * 108 + 8
        inner.last_s = 1e6
        with pytest.raises(StoreUnavailable, match="no progress within 10 s"):
            await store.put_parts("b", len(content), slow_read)
        assert reads == 8, "a try that took long is not repeated"

        async def times_out(start: int, count: int) -> Content:
            raise TimeoutError("the reader's own")

        with pytest.raises(TimeoutError, match="own"):
            await store.put_parts("c", 1, times_out)

    run(main())


def test_a_create_whose_answer_was_lost_finds_its_own(run: Run) -> None:
    async def main() -> None:
        inner = Scripted()
        inner.is_done_first = True
        store = patient(inner)
        inner.script.append(gone())
        await store.create("a", b"mine")
        inner.script.append(gone())
        with pytest.raises(ObjectExists):
            await store.create("a", b"else")  # of the same length
        inner.is_done_first = False
        inner.script.append(gone())
        with pytest.raises(ObjectExists):
            await store.create("a", b"longer")
        with pytest.raises(ObjectExists):
            await store.create("a", b"mine")  # no answer was lost: somebody else made it
        assert await read_all(inner, "a") == b"mine"

    run(main())


def test_a_listing_goes_on_where_it_was(run: Run) -> None:
    async def main() -> None:
        inner = Scripted()
        names = [f"n/{number:03}" for number in range(23)]
        for name in names:
            await MemoryObjectStore.put(inner, name, b"")
        inner.script.extend([None, gone(), gone(), None, 1e6, None, gone()])
        assert [info.key for info in await listed(patient(inner, try_s=5))] == names
        inner.script.extend(gone() for _ in range(1000))
        with pytest.raises(StoreUnavailable, match="gone"):
            await listed(patient(inner))

    run(main())


def test_calls_at_once_are_bounded_and_reads_do_not_wait_for_changes(run: Run) -> None:
    async def main() -> None:
        inner = Scripted()
        store = patient(inner)
        inner.script.extend([5.0] * 40)
        began_s = now_s()
        puts = [asyncio.ensure_future(store.put(f"k/{number}", b"x")) for number in range(40)]
        await asyncio.sleep(1)
        assert inner.under_way == limits.STORE_CHANGES_AT_ONCE
        inner.script.clear()
        with pytest.raises(ObjectNotFound):
            await store.look("none")
        assert now_s() - began_s == 1
        await asyncio.gather(*puts)
        assert inner.most_under_way <= limits.STORE_CHANGES_AT_ONCE + 1
        inner.most_under_way = 0
        inner.script.extend([1.0] * 100)
        await asyncio.gather(*(store.look("k/1") for _ in range(100)))
        assert inner.most_under_way == limits.STORE_READS_AT_ONCE

    run(main())


def test_puts_in_parts_wait_for_each_other_and_nobody_for_them(run: Run) -> None:
    async def main() -> None:
        inner = Scripted()
        store = patient(inner, try_s=50, patience_s=20)
        count = 3 * limits.STORE_PUTS_IN_PARTS_AT_ONCE
        inner.script.extend([40.0] * count)
        puts = [asyncio.ensure_future(store.put_parts(f"k/{n}", 1, reader_of(b"x"))) for n in range(count)]
        await asyncio.sleep(1)
        assert inner.under_way == limits.STORE_PUTS_IN_PARTS_AT_ONCE
        waiting, inner.script = inner.script, deque()
        await store.put("small", b"")
        assert now_s() == 1
        inner.script = waiting
        await asyncio.gather(*puts)  # the last ones waited for longer than a call is repeated
        assert now_s() == 3 * 40

    run(main())


def test_who_finds_no_place_in_time_is_told(run: Run) -> None:
    async def main() -> None:
        inner = Scripted()
        inner.script.extend([1e6] * 1000)
        store = patient(inner, try_s=50, patience_s=20)
        outcomes = await asyncio.gather(*(store.put(f"k/{n}", b"") for n in range(20)), return_exceptions=True)
        assert sum("no place" in str(outcome) for outcome in outcomes) == 20 - limits.STORE_CHANGES_AT_ONCE
        assert all(isinstance(outcome, StoreUnavailable) for outcome in outcomes) and now_s() == 50

    run(main())


def test_pauses_hold_no_place(run: Run) -> None:
    async def main() -> None:
        inner = Scripted()
        inner.script.extend(gone() for _ in range(limits.STORE_CHANGES_AT_ONCE))
        store = patient(inner)
        failing = [asyncio.ensure_future(store.put(f"k/{n}", b"")) for n in range(limits.STORE_CHANGES_AT_ONCE)]
        await asyncio.sleep(0)
        await store.put("other", b"")
        assert now_s() == 0
        await asyncio.gather(*failing)

    run(main())
