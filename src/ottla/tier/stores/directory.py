"""A store that is a directory: `file:///path`, on a local disk or a shared one. Needs no package."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ottla.model import limits
from ottla.tier.stores import files
from ottla.tier.stores.errors import (
    ObjectExists,
    StoreBroken,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from ottla.tier.stores.keys import check_folder, check_key
from ottla.tier.stores.port import Content, ObjectInfo, ReadPart

T = TypeVar("T")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_BROKEN = {errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.EXDEV, errno.EOPNOTSUPP}


class DirectoryObjectStore:
    """Work is done by threads of its own, so many at a time. A call that is cancelled ends at once; its thread goes on
    and keeps its place, so that a disk that hangs takes no more threads than these.
    """

    def __init__(self, root: Path) -> None:
        """The directory is there (`files.prepare`)."""
        self._root = root
        self._threads = ThreadPoolExecutor(limits.STORE_FILE_THREADS, thread_name_prefix="object-store")
        self._places = asyncio.Semaphore(limits.STORE_FILE_THREADS)

    async def put(self, key: str, content: Content) -> None:
        await self._write(key, content, is_new=False)

    async def create(self, key: str, content: Content) -> None:
        await self._write(key, content, is_new=True)

    async def put_parts(self, key: str, size_bytes: int, read: ReadPart) -> None:
        check_key(key)
        upload = files.Upload(self._root)
        try:
            for start in range(0, size_bytes, limits.STORE_PART_BYTES):
                count = min(limits.STORE_PART_BYTES, size_bytes - start)
                part = await read(start, count)
                if len(part) != count:
                    raise StoreBroken(f"{key}: {count} bytes from {start} were to be put, and {len(part)} came")
                await self._work(key, upload.write, part)
            await self._work(key, lambda: upload.finish(key, is_new=False))
        finally:
            with suppress(RuntimeError):  # the store was closed
                self._threads.submit(upload.discard)

    async def read(self, key: str, start: int, size_bytes: int) -> memoryview:
        check_key(key)
        assert 0 <= size_bytes <= limits.STORE_READ_BYTES_MAX
        return await self._work(key, files.read_range, self._root, key, start, size_bytes)

    async def look(self, key: str) -> ObjectInfo:
        check_key(key)
        return await self._work(key, files.look_at, self._root, key)

    async def pages(self, folder: str = "", after: str = "") -> AsyncGenerator[list[ObjectInfo], None]:
        check_folder(folder)
        while page := await self._work(folder or "all", files.list_page, self._root, folder, after):
            after = page[-1].key
            yield page

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            check_key(key)
        for first in range(0, len(keys), limits.STORE_DELETED_AT_ONCE):
            some = keys[first : first + limits.STORE_DELETED_AT_ONCE]
            await self._work(some[0], files.delete_all, self._root, some)

    async def close(self) -> None:
        self._threads.shutdown(wait=False)

    async def _write(self, key: str, content: Content, *, is_new: bool) -> None:
        check_key(key)
        assert len(content) <= limits.STORE_PART_BYTES
        await self._work(key, lambda: files.write_whole(self._root, key, content, is_new=is_new))

    async def _work(self, what: str, work: Callable[..., T], *args: object) -> T:
        failure: StoreError
        try:
            return await self._in_thread(work, *args)
        except OSError as error:
            failure = _store_error(what, error)
        raise failure

    async def _in_thread(self, work: Callable[..., T], *args: object) -> T:
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        try:
            running = self._threads.submit(work, *args)
        except RuntimeError:
            self._places.release()
            raise StoreUnavailable("the store is closed") from None

        def free(_: object) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._places.release)

        running.add_done_callback(free)
        return await asyncio.wrap_future(running)


def _store_error(what: str, error: OSError) -> StoreError:
    text = f"{what}: {error.strerror or error}"
    if isinstance(error, FileExistsError):
        return ObjectExists(f"{what}: there is one already")
    if error.errno in _FULL:
        return StoreFull(text, "make room on the store's disk")
    if error.errno in _DENIED:
        return StoreDenied(text, "the broker's user needs to read and write the directory")
    return StoreBroken(text) if error.errno in _BROKEN else StoreUnavailable(text)
