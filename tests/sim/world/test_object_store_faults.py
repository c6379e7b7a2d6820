"""The simulated object store: each fault happens, what it promises holds, and one seed gives one history."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from ottla.model import limits
from ottla.sim.world.loop import SimLoop
from ottla.sim.world.object_store import MemoryObjectStore
from ottla.sim.world.object_store_faults import FaultyObjectStore, ObjectStoreFaults
from ottla.tier.stores.errors import ObjectExists, ObjectNotFound, StoreUnavailable
from ottla.tier.stores.patient import PatientObjectStore
from ottla.tier.stores.port import Content, ObjectInfo, ObjectStore

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture
def run() -> Iterator[Run]:
    loop = SimLoop(random.Random(1))
    yield loop.run_until_complete
    assert not loop.errors
    loop.bury()


def faulty(inner: ObjectStore, seed: int = 1, **faults: Any) -> FaultyObjectStore:
    return FaultyObjectStore(inner, random.Random(seed), ObjectStoreFaults(**faults))


async def listed(store: ObjectStore) -> list[ObjectInfo]:
    return [info async for page in store.pages() for info in page]


async def is_there(store: ObjectStore, key: str) -> bool:
    try:
        await store.look(key)
    except ObjectNotFound:
        return False
    return True


def test_without_faults_it_is_exact(run: Run) -> None:
    async def main() -> None:
        store = faulty(MemoryObjectStore())
        await store.put("a", b"x")
        assert [info.key for info in await listed(store)] == ["a"]
        await store.delete(["a"])
        assert await listed(store) == [] and store.struck == 0

    run(main())


def test_a_failed_change_has_no_effect_and_one_whose_answer_is_lost_has(run: Run) -> None:
    async def main() -> None:
        for faults, happens in (({"failure_rate": 1.0}, False), ({"lost_answer_rate": 1.0}, True)):
            inner = MemoryObjectStore()
            store = faulty(inner, **faults)

            async def read(_: int, count: int) -> Content:
                return b"x" * count

            for key, call in (
                ("a", store.put("a", b"x")),
                ("b", store.create("b", b"x")),
                ("c", store.put_parts("c", 3 * limits.STORE_PART_BYTES, read)),
            ):
                with pytest.raises(StoreUnavailable):
                    await call
                assert await is_there(inner, key) is happens
            await inner.put("d", b"x")
            with pytest.raises(StoreUnavailable):
                await store.delete(["d"])
            assert await is_there(inner, "d") is not happens

    run(main())


def test_a_late_change_happens_after_its_caller_was_told_that_it_failed(run: Run) -> None:
    async def main() -> None:
        inner = MemoryObjectStore()
        store = faulty(inner, late_rate=1.0, late_s=(5.0, 10.0))
        for key, call in (
            ("a", store.put("a", b"x")),
            ("b", store.put_parts("b", 1, lambda start, count: asyncio.sleep(0, b"x"))),
        ):
            with pytest.raises(StoreUnavailable):
                await call
            assert not await is_there(inner, key)
            await store.settle()
            assert await is_there(inner, key)
        assert asyncio.get_running_loop().time() >= 10

    run(main())


def test_nothing_goes_while_it_is_down(run: Run) -> None:
    async def main() -> None:
        store = faulty(MemoryObjectStore(), is_down=True)
        waiting = asyncio.ensure_future(PatientObjectStore(store, random.Random(1)).put("a", b"x"))
        with pytest.raises(StoreUnavailable):
            await store.look("a")
        await asyncio.sleep(30)
        assert not waiting.done()
        store.faults.is_down = False
        await waiting
        assert await is_there(store, "a")

    run(main())


def test_listings_lag_and_repeat_and_become_right(run: Run) -> None:
    async def main() -> None:
        inner = MemoryObjectStore(page_objects=4)
        store = faulty(inner, listing_lag_s=10.0, repeated_rate=0.3)
        old, new = [f"old/{number}" for number in range(20)], [f"new/{number}" for number in range(20)]
        for key in old:
            await store.put(key, b"x")
        await asyncio.sleep(11)
        for key in new:
            await store.put(key, b"x")
        await store.delete(old)
        missed, ghosts, repeated = set(), set(), 0
        for _ in range(20):
            keys = [info.key for info in await listed(store)]
            missed |= set(new) - set(keys)
            ghosts |= set(keys) & set(old)
            repeated += len(keys) - len(set(keys))
        assert missed == set(new) and ghosts == set(old) and repeated > 20
        assert [await is_there(store, key) for key in (old[0], new[0])] == [False, True], "reads do not lag"
        await asyncio.sleep(11)
        assert {info.key for info in await listed(store)} == set(new)
        store.faults.repeated_rate = 0
        assert [info.key for info in await listed(store)] == sorted(new)

    run(main())


async def history(seed: int) -> tuple[list[str], dict[str, bytes]]:
    """A life with a store that is patient with a faulty one: what was done, and what is there in the end."""
    rng = random.Random(seed)
    inner = MemoryObjectStore(page_objects=5)
    store = faulty(
        inner,
        seed,
        delay_s=(0.0, 3.0),
        failure_rate=0.2,
        lost_answer_rate=0.2,
        late_rate=0.1,
        late_s=(0.0, 60.0),
        listing_lag_s=5.0,
        repeated_rate=0.2,
    )
    patient = PatientObjectStore(store, rng, patience_s=rng.choice((2.0, 200.0)))
    done: list[str] = []
    sure: dict[str, bytes] = {}  # the contents of objects by keys; a key has one content for ever

    async def life(name: int) -> None:
        for number in range(12):
            key, content = f"by-{name}/{number:02}", f"{name} {number}".encode()
            try:
                await (patient.create if number % 3 == 0 else patient.put)(key, content)
            except StoreUnavailable:
                done.append(f"{key} in doubt")
                continue
            sure[key] = content
            done.append(f"{key} put at {asyncio.get_running_loop().time():.6f}")
            assert await patient.read(key, 0, len(content)) == content
            if number % 4 == 3:
                with pytest.raises(ObjectExists):
                    await patient.create(key, b"of somebody else")

    outcomes = await asyncio.gather(*(life(name) for name in range(4)), return_exceptions=True)
    done += [repr(outcome) for outcome in outcomes]
    assert all(outcome is None or isinstance(outcome, StoreUnavailable) for outcome in outcomes), outcomes
    await store.settle()
    store.faults = ObjectStoreFaults()
    found = {info.key: bytes(await inner.read(info.key, 0, info.size_bytes)) for info in await listed(store)}
    assert sure.items() <= found.items()
    assert store.struck > 0
    return done, found


@pytest.mark.parametrize("seed", range(20))
def test_what_was_acknowledged_stays_and_a_seed_is_a_history(seed: int) -> None:
    histories = []
    for _ in range(2):
        loop = SimLoop(random.Random(seed))
        try:
            histories.append(loop.run_until_complete(history(seed)))
            assert not loop.errors
        finally:
            loop.bury()
    assert histories[0] == histories[1]
