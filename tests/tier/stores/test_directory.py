"""A store that is a directory: what a full disk, a crash, a lost mount and a disk that hangs do to it."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.mounts import small_disk
from tests.support.waiting import until
from tests.tier.stores.places import listed, place_of, read_all, reader_of

from ottla.model import limits
from ottla.tier.stores import files
from ottla.tier.stores.directory import DirectoryObjectStore
from ottla.tier.stores.errors import ObjectNotFound, StoreBroken, StoreDenied, StoreError, StoreFull, StoreUnavailable
from ottla.tier.stores.keys import UPLOADS
from ottla.tier.stores.patient import PatientObjectStore
from ottla.tier.stores.port import ObjectStore

MIB = 1 << 20


def of(root: Path) -> DirectoryObjectStore:
    files.prepare(root)
    return DirectoryObjectStore(root)


def left_behind(root: Path) -> list[str]:
    return os.listdir(root / UPLOADS)


@contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def try_to_fill(store: ObjectStore, root: Path) -> None:
    """What is too large is refused and leaves nothing; what fits still goes in."""
    await store.put("small", b"x")
    with pytest.raises(StoreFull, match="room"):
        await store.put("a/large", bytes(2 * MIB))
    with pytest.raises(StoreFull, match="room"):
        await store.put_parts("a/larger", 9 * MIB, reader_of(bytes(9 * MIB)))
    await asyncio.to_thread(until, lambda: not left_behind(root))
    assert [info.key for info in await listed(store)] == ["small"]
    await store.put("b/small", b"y" * 1000)
    assert await read_all(store, "b/small") == b"y" * 1000


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", MIB) as disk:
        root = disk / "store"

        async def main() -> None:
            store = of(root)
            await try_to_fill(store, root)
            await store.close()

        asyncio.run(main())


def test_a_limit_of_file_sizes_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        store = of(tmp_path / "store")
        with largest_file(MIB):
            await try_to_fill(store, tmp_path / "store")
        await store.close()

    asyncio.run(main())


PUTTER = """
import asyncio, sys
from pathlib import Path
from ottla.tier.stores import files
from ottla.tier.stores.directory import DirectoryObjectStore
async def main():
    files.prepare(Path(sys.argv[1]))
    store = DirectoryObjectStore(Path(sys.argv[1]))
    async def read(start, count):
        if start:
            print("half", flush=True)
            await asyncio.Event().wait()
        return bytes(count)
    await store.put("whole/one", b"1")
    await store.put_parts("whole/two", 20 << 20, read)
asyncio.run(main())
"""


def test_a_process_that_is_killed_leaves_no_half_object(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with subprocess.Popen([sys.executable, "-c", PUTTER, str(root)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "half\n"
        finally:
            process.send_signal(signal.SIGKILL)
    (left,) = left_behind(root)

    async def main() -> None:
        store = of(root)
        assert [info.key for info in await listed(store)] == ["whole/one"]
        assert left_behind(root) == [left], "another process may still write it"
        old_s = time.time() - limits.STORE_UPLOAD_ABANDONED_S - 10
        os.utime(root / UPLOADS / left, (old_s, old_s))
        files.prepare(root)
        assert not left_behind(root)
        await store.close()

    asyncio.run(main())


def test_a_disk_that_is_not_mounted_any_more_says_nothing_about_objects(tmp_path: Path) -> None:
    root = tmp_path / "store"

    async def main() -> None:
        store = of(root)
        await store.put("a/b", b"x")
        root.rename(tmp_path / "elsewhere")
        root.mkdir()
        with pytest.raises(StoreUnavailable, match="mounted"):
            await store.look("a/b")
        with pytest.raises(StoreUnavailable, match="mounted"):
            await store.read("a/b", 0, 1)
        with pytest.raises(StoreUnavailable, match="mounted"):
            await store.put("a/c", b"x")
        with pytest.raises(StoreUnavailable, match="mounted"):
            await listed(store)
        assert not list(root.iterdir())
        await store.close()

    asyncio.run(main())


def test_deletions_take_empty_folders_and_disturb_no_put(tmp_path: Path) -> None:
    root = tmp_path / "store"

    async def main() -> None:
        store = of(root)
        await store.put("a/b/c/d", b"x")
        await store.put("a/e", b"x")
        await store.delete(["a/b/c/d"])
        assert sorted(os.listdir(root / "a")) == ["e"]
        await store.delete(["a/e"])
        assert os.listdir(root) == [UPLOADS]
        for number in range(100):  # each deletion takes the folders that a put is about to use
            keys = [f"x/y/z/{number}-{each}" for each in range(6)]
            await asyncio.gather(*(store.put(key, b"1") for key in keys[:3]))
            await asyncio.gather(*(store.put(key, b"2") for key in keys[3:]), store.delete(keys[:3]))
            assert [info.key for info in await listed(store)] == keys[3:]
            await store.delete(keys[3:])
        await store.close()

    asyncio.run(main())


def test_a_place_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, kind in ((tmp_path / "none" / "store", StoreUnavailable), (tmp_path / "file", StoreBroken)):

        async def nothing(_: ObjectStore) -> None: ...

        with pytest.raises(StoreError) as raised:
            place_of("file", f"file://{path}").run(nothing)
        assert type(raised.value) is kind and "\n" not in str(raised.value)
        assert not (tmp_path / "none").exists()


def test_a_read_only_disk_is_told(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", MIB) as disk:

        async def main() -> None:
            store = of(disk / "store")
            await store.put("a", b"x")
            words = ["mount", "-o", "remount,ro", str(disk)]
            await asyncio.to_thread(subprocess.run, words, check=True)
            with pytest.raises(StoreDenied, match="broker's user"):
                await store.put("b", b"x")
            assert await read_all(store, "a") == b"x"
            await store.close()

        asyncio.run(main())


def test_a_disk_that_hangs_holds_up_nobody_for_longer_than_a_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More calls than threads: all end in time, and when the disk answers again all is well."""
    before = set(threading.enumerate())
    hanging = threading.Event()
    plain = files.look_at

    def hangs(*args: object) -> object:
        hanging.wait(60)
        return plain(*args)  # type: ignore[arg-type]

    async def main() -> None:
        inner = of(tmp_path / "store")
        store = PatientObjectStore(inner, random.Random(1), try_s=0.2, patience_s=1)
        await store.put("a", b"x")
        monkeypatch.setattr(files, "look_at", hangs)
        calls = (store.look("a") for _ in range(3 * limits.STORE_FILE_THREADS))
        outcomes = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 30)
        assert {type(outcome) for outcome in outcomes} == {StoreUnavailable}
        threads = [
            each for each in threading.enumerate() if each.name.startswith("object-store") and each not in before
        ]
        assert len(threads) == limits.STORE_FILE_THREADS
        hanging.set()
        again = PatientObjectStore(inner, random.Random(1))
        assert (await again.look("a")).size_bytes == 1
        await store.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            await inner.look("a")

    try:
        asyncio.run(main())
    finally:
        hanging.set()


def test_what_was_put_is_synced_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file before it has its name; then its folder, and all above it up to the store."""
    root = tmp_path / "store"
    happened: list[str] = []
    fsync, replace, link = os.fsync, os.replace, os.link

    def synced(fd: int) -> None:
        assert threading.current_thread() is not threading.main_thread()
        happened.append(f"sync {os.path.relpath(os.readlink(f'/proc/self/fd/{fd}'), root)}")
        fsync(fd)

    def named(source: Path, target: Path) -> None:
        assert threading.current_thread() is not threading.main_thread()
        happened.append("name")
        (link if target.name == "new" else replace)(source, target)

    async def main() -> None:
        store = of(root)
        monkeypatch.setattr(os, "fsync", synced)
        monkeypatch.setattr(os, "replace", named)
        monkeypatch.setattr(os, "link", named)
        for call in (
            store.put("a/b/c", b"x"),
            store.create("a/b/new", b"x"),
            store.put_parts("a/b/c", 0, reader_of(b"")),
        ):
            happened.clear()
            await call
            assert happened[0].startswith(f"sync {UPLOADS}/")
            assert happened[1:] == ["name", "sync a/b", "sync a", "sync ."]
        await store.close()

    asyncio.run(main())


def test_a_create_that_finds_its_own_makes_it_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name was given and its folder could not be synced: what the repetition finds does not count before it is."""
    root = tmp_path / "store"
    synced: list[str] = []
    fsync = os.fsync

    def fails_once(fd: int) -> None:
        name = os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), root)
        if name == "a" and "a failed" not in synced:
            synced.append("a failed")
            raise OSError(errno.EIO, "Input/output error")
        synced.append(name)
        fsync(fd)

    async def main() -> None:
        store = PatientObjectStore(of(root), random.Random(1))
        monkeypatch.setattr(os, "fsync", fails_once)
        await store.create("a/new", b"mine")
        assert synced.index("a failed") < synced.index("a") < synced.index(".")
        assert await read_all(store, "a/new") == b"mine"
        await store.close()

    asyncio.run(main())


def test_a_put_that_is_given_up_at_its_first_step_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "store"
    hanging = threading.Event()
    before = len(os.listdir("/proc/self/fd"))
    plain = os.open

    def hangs(path: object, flags: int, *more: object, **named: object) -> int:
        if flags & os.O_EXCL:
            hanging.wait(60)
        return plain(path, flags, *more, **named)  # type: ignore[call-overload]

    async def main() -> None:
        store = of(root)
        monkeypatch.setattr(os, "open", hangs)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(store.put_parts("a", 1, reader_of(b"x")), 0.2)
        hanging.set()
        await asyncio.to_thread(store._threads.shutdown)
        assert not left_behind(root)

    asyncio.run(main())
    until(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_a_key_below_another_is_refused(tmp_path: Path) -> None:
    """No caller has such keys; a directory cannot hold them, and what is there is not harmed."""

    async def main() -> None:
        store = of(tmp_path / "store")
        await store.put("a/b", b"x")
        with pytest.raises(StoreError):
            await store.put("a/b/c", b"y")
        with pytest.raises(StoreBroken):
            await store.put("a", b"y")
        with pytest.raises(ObjectNotFound):
            await store.look("a/b/c")
        assert await read_all(store, "a/b") == b"x"
        await store.close()

    asyncio.run(main())
