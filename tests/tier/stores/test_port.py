"""What the port of object stores promises, kept by every store: directory, memory, S3 and Azure by real servers.

Google Cloud Storage is not tried: obstore cannot write to any server of it that can be had for tests
(docs/object-stores.md).
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from contextlib import aclosing

import pytest
from tests.tier.stores.places import Place, listed, read_all, reader_of

from ottla.model import limits
from ottla.tier.stores.errors import ObjectExists, ObjectNotFound, StoreBroken
from ottla.tier.stores.port import Content, ObjectStore

KEY = "orders-Zm9v/0/00000000000000000042.log"


@pytest.mark.parametrize("content", [b"", b"x", bytes(range(256)) * 1000], ids=["empty", "one", "many"])
def test_what_was_put_is_read(place: Place, content: bytes) -> None:
    async def work(store: ObjectStore) -> None:
        await store.put(KEY, memoryview(content))
        info = await store.look(KEY)
        assert (info.key, info.size_bytes) == (KEY, len(content))
        assert await store.read(KEY, 0, len(content)) == content
        for _ in range(20):
            start = random.randint(0, len(content))
            count = random.randint(0, len(content) - start)
            assert await store.read(KEY, start, count) == content[start : start + count]

    place.run(work)


def test_a_put_replaces(place: Place) -> None:
    async def work(store: ObjectStore) -> None:
        for content in (b"first, and longer", b"second"):
            await store.put(KEY, content)
            assert await read_all(store, KEY) == content
        assert [info.key for info in await listed(store)] == [KEY]

    place.run(work)


@pytest.mark.parametrize(
    "size_bytes",
    [0, 1, limits.STORE_PART_BYTES, limits.STORE_PART_BYTES + 1, 5 * limits.STORE_PART_BYTES + 12_345],
)
def test_parts_become_one_object(place: Place, size_bytes: int) -> None:
    content = random.Random(size_bytes).randbytes(size_bytes)

    async def work(store: ObjectStore) -> None:
        await store.put_parts(KEY, size_bytes, reader_of(content))
        assert (await store.look(KEY)).size_bytes == size_bytes
        assert hashlib.sha256(await read_all(store, KEY)).digest() == hashlib.sha256(content).digest()
        if size_bytes > 2:
            most = min(limits.STORE_READ_BYTES_MAX, size_bytes - 1)
            assert await store.read(KEY, 1, most) == content[1 : 1 + most]

    place.run(work)


def test_a_range_behind_the_end_is_an_error(place: Place) -> None:
    async def work(store: ObjectStore) -> None:
        await store.put(KEY, b"0123456789")
        for start, count in ((9, 2), (10, 1), (500, 7), (0, 11)):
            with pytest.raises(StoreBroken):
                await store.read(KEY, start, count)
        assert await store.read(KEY, 9, 1) == b"9"

    place.run(work)


def test_what_is_not_there_is_not_found(place: Place) -> None:
    async def work(store: ObjectStore) -> None:
        await store.put("a/b", b"x")
        for key in (KEY, "a", "a/c", "b"):
            with pytest.raises(ObjectNotFound):
                await store.look(key)
            with pytest.raises(ObjectNotFound):
                await store.read(key, 0, 1)
        assert await listed(store, "no-such-folder/") == []

    place.run(work)


def test_create_finds_what_is_there(place: Place) -> None:
    async def work(store: ObjectStore) -> None:
        await store.create(KEY, b"mine")
        with pytest.raises(ObjectExists):
            await store.create(KEY, b"theirs")
        assert await read_all(store, KEY) == b"mine"
        await store.delete([KEY])
        await store.create(KEY, b"theirs")
        assert await read_all(store, KEY) == b"theirs"

    place.run(work)


def test_of_many_that_create_one_wins(place: Place) -> None:
    async def work(store: ObjectStore) -> None:
        for race in range(5):
            key = f"races/{race}"
            contents = [f"{race} by {number}".encode() for number in range(12)]
            outcomes = await asyncio.gather(
                *(store.create(key, content) for content in contents), return_exceptions=True
            )
            won = [content for content, outcome in zip(contents, outcomes, strict=True) if outcome is None]
            assert all(outcome is None or isinstance(outcome, ObjectExists) for outcome in outcomes), outcomes
            assert won == [await read_all(store, key)]

    place.run(work)


def test_listing_is_in_the_order_of_keys(place: Place) -> None:
    keys = sorted(
        [
            "a",
            "b/a",
            "b-/a",
            "b.c/d",
            "b0",
            "ba/b/c/d/e",
            "ba/b/c/f",
            "ba/b.c",
            *(f"many/{number:04}" for number in range(30)),
            "z/.hidden",
            "z/0",
        ]
    )

    async def work(store: ObjectStore) -> None:
        for key in keys:
            await store.put(key, key.encode())
        everything = await listed(store)
        assert [info.key for info in everything] == keys
        assert [info.size_bytes for info in everything] == [len(key) for key in keys]
        for after in ("", "a", "b", "b.c/d", "ba/b", "ba/b/c/f", "many/0013", "many/00135", "z/0", "zz"):
            assert [info.key for info in await listed(store, "", after)] == [key for key in keys if key > after]
        for folder in ("b/", "ba/", "ba/b/", "many/", "man/", "z/"):
            assert [info.key for info in await listed(store, folder)] == [key for key in keys if key.startswith(folder)]
        assert [info.key for info in await listed(store, "many/", "many/0027")] == ["many/0028", "many/0029"]

    place.run(work)


def test_ages_are_told(place: Place) -> None:
    async def work(store: ObjectStore) -> None:
        await store.put("one", b"1")
        (info,) = await listed(store)
        looked = await store.look("one")
        # Clouds list whole seconds or less: the header of HTTP has no fractions.
        assert abs(info.modified_ms - looked.modified_ms) < 1000

    place.run(work)


def test_a_listing_has_pages(place: Place) -> None:
    count = limits.STORE_PAGE_OBJECTS + 150
    if place.is_simulated:
        count = 30  # their pages are small

    async def work(store: ObjectStore) -> None:
        names = [f"pages/{number:06}" for number in range(count)]
        for first in range(0, count, 50):
            await asyncio.gather(*(store.put(name, b"x") for name in names[first : first + 50]))
        pages = [page async for page in store.pages("pages/")]
        assert [info.key for page in pages for info in page] == names
        assert len(pages) > 1 and max(map(len, pages)) <= limits.STORE_PAGE_OBJECTS
        # Who stops in the middle leaves nothing behind.
        async with aclosing(store.pages("pages/")) as begun:
            assert (await anext(begun))[0].key == names[0]
        await store.delete([*names[:600], "pages/none", *names[600:]])
        assert await listed(store, "pages/") == []

    place.run(work)


def test_missing_objects_count_as_deleted(place: Place) -> None:
    async def work(store: ObjectStore) -> None:
        await store.delete([])
        await store.delete(["none", "none/at/all"])
        keys = [f"some/{number}" for number in range(20)]
        for key in keys:
            await store.put(key, b"x")
        await store.delete(["some/no", *keys[:10], "no/no", "some/0"])
        assert [info.key for info in await listed(store)] == sorted(keys[10:])
        await store.delete(keys)
        assert await listed(store) == []
        await store.put(keys[0], b"again")
        assert await read_all(store, keys[0]) == b"again"

    place.run(work)


def test_another_store_over_the_same_place_sees_all(place: Place) -> None:
    place.run(lambda store: store.put(KEY, b"kept"))
    assert place.run(lambda store: read_all(store, KEY)) == b"kept"


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/a",
        "a/",
        "a//b",
        "../a",
        "a/../b",
        "./a",
        "a b",
        "ä",
        "a?b",
        "a%2fb",
        "a\\b",
        ".uploads/a",
        "a" * 256,
        "a/" * 401 + "a",
    ],
)
def test_wrong_keys_are_faults_of_the_caller(place: Place, key: str) -> None:
    async def work(store: ObjectStore) -> None:
        for call in (
            store.put(key, b""),
            store.create(key, b""),
            store.put_parts(key, 0, reader_of(b"")),
            store.look(key),
            store.delete([key]),
        ):
            with pytest.raises(ValueError, match="the key"):
                await call
        for folder in ("a", "/", "../", "a//", ".uploads/"):
            with pytest.raises(ValueError, match="no folder"):
                await listed(store, folder)

    place.run(work)


def test_a_source_that_fails_leaves_no_object(place: Place) -> None:
    size_bytes = 4 * limits.STORE_PART_BYTES

    async def work(store: ObjectStore) -> None:
        async def breaks(start: int, count: int) -> Content:
            if start >= 2 * limits.STORE_PART_BYTES:
                raise ZeroDivisionError("the local disk")
            return b"x" * count

        async def ends_early(start: int, count: int) -> Content:
            return b"x" * (count - 1)

        with pytest.raises(ZeroDivisionError, match="the local disk"):
            await store.put_parts(KEY, size_bytes, breaks)
        with pytest.raises(StoreBroken, match="were to be put"):
            await store.put_parts(KEY, size_bytes, ends_early)
        with pytest.raises(StoreBroken, match="were to be put"):
            await store.put_parts(KEY, 5, ends_early)
        with pytest.raises(ObjectNotFound):
            await store.look(KEY)
        assert await listed(store) == []

    place.run(work)


def test_a_put_that_is_cancelled_leaves_no_object(place: Place) -> None:
    async def work(store: ObjectStore) -> None:
        reached = asyncio.Event()

        async def hangs(start: int, count: int) -> Content:
            if start:
                reached.set()
                await asyncio.Event().wait()
            return b"x" * count

        task = asyncio.ensure_future(store.put_parts(KEY, 3 * limits.STORE_PART_BYTES, hangs))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await listed(store) == []
        await store.put_parts(KEY, 3, reader_of(b"new"))
        assert await read_all(store, KEY) == b"new"

    place.run(work)
