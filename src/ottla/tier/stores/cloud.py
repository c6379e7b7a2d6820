"""A store over obstore: S3 and what is compatible with it, Google Cloud Storage, Azure.

obstore does its work in threads of its own, without Python's lock; the event loop hands it buffers and is told when it
is done. One request is one try here, whose repetition is the caller's (`patient.py`). Parts are the exception: one that
fails is sent again by the library, because otherwise all parts would be.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import obstore
from obstore.store import AzureStore, GCSStore, S3Store

from ottla.model import limits
from ottla.tier.stores.cloud_errors import store_error
from ottla.tier.stores.errors import ObjectNotFound, StoreBroken
from ottla.tier.stores.keys import check_folder, check_key
from ottla.tier.stores.port import Content, ObjectInfo, ReadPart

T = TypeVar("T")
Bucket = S3Store | GCSStore | AzureStore


class CloudObjectStore:
    """`once` does not repeat requests, `again` does; both are the same bucket. `prefix` is put before every key."""

    def __init__(self, once: Bucket, again: Bucket, prefix: str, secrets: Sequence[str] = ()) -> None:
        self._once = once
        self._again = again
        self._prefix = prefix
        self._secrets = secrets

    async def put(self, key: str, content: Content) -> None:
        await self._put(key, content, is_new=False)

    async def create(self, key: str, content: Content) -> None:
        await self._put(key, content, is_new=True)

    async def put_parts(self, key: str, size_bytes: int, read: ReadPart) -> None:
        if size_bytes <= limits.STORE_PART_BYTES:
            whole = [part async for part in _Parts(key, size_bytes, read, limits.STORE_PART_BYTES)]
            await self.put(key, whole[0] if whole else b"")
            return
        part_bytes = max(limits.STORE_PART_BYTES, -(-size_bytes // limits.STORE_PARTS_MAX))
        parts = _Parts(key, size_bytes, read, part_bytes)
        await self._call(
            "put",
            key,
            lambda: obstore.put_async(
                self._again,
                self._path(key),
                parts,
                use_multipart=True,
                chunk_size=part_bytes,
                max_concurrency=limits.STORE_PARTS_AT_ONCE,
            ),
            parts,
        )

    async def read(self, key: str, start: int, size_bytes: int) -> memoryview:
        assert 0 <= size_bytes <= limits.STORE_READ_BYTES_MAX
        if not size_bytes:
            return memoryview(b"")
        path = self._path(key)
        content = memoryview(
            await self._call(
                "read", key, lambda: obstore.get_range_async(self._once, path, start=start, length=size_bytes)
            )
        )
        if len(content) != size_bytes:
            raise StoreBroken(f"{key} ends at {start + len(content)}, before {start + size_bytes}")
        return content

    async def look(self, key: str) -> ObjectInfo:
        path = self._path(key)
        return self._info(await self._call("look", key, lambda: obstore.head_async(self._once, path)))

    async def pages(self, folder: str = "", after: str = "") -> AsyncGenerator[list[ObjectInfo], None]:
        check_folder(folder)
        stream = obstore.list(
            self._once,
            (self._prefix + folder).rstrip("/") or None,
            offset=self._prefix + after if after else None,
            chunk_size=limits.STORE_PAGE_OBJECTS,
        )
        while True:
            try:
                page = await self._call("list", folder, stream.__anext__)
            except StopAsyncIteration:
                return
            infos = [info for each in page if (info := self._info(each)).key > after and info.key.startswith(folder)]
            if infos:
                yield infos

    async def delete(self, keys: Sequence[str]) -> None:
        paths = [self._path(key) for key in keys]
        for first in range(0, len(paths), limits.STORE_DELETED_AT_ONCE):
            some = paths[first : first + limits.STORE_DELETED_AT_ONCE]
            try:
                await self._delete(keys[first], some)
            except ObjectNotFound:  # which of them, is not told, nor whether the others are deleted
                await self._delete_singly(some)

    async def close(self) -> None:
        """Connections end when nobody refers to the store any more."""

    async def _put(self, key: str, content: Content, *, is_new: bool) -> None:
        assert len(content) <= limits.STORE_PART_BYTES
        path = self._path(key)
        await self._call(
            "create" if is_new else "put",
            key,
            lambda: obstore.put_async(
                self._once, path, bytes(content), mode="create" if is_new else "overwrite", use_multipart=False
            ),
        )

    async def _delete(self, key: str, paths: list[str]) -> None:
        await self._call("delete", key, lambda: obstore.delete_async(self._once, paths))

    async def _delete_singly(self, paths: Sequence[str]) -> None:
        left = list(paths)

        async def one_by_one() -> None:
            while left:
                path = left.pop()
                with suppress(ObjectNotFound):
                    await self._delete(path.removeprefix(self._prefix), [path])

        workers = [one_by_one() for _ in range(limits.STORE_SINGLE_DELETIONS_AT_ONCE)]
        for outcome in await asyncio.gather(*workers, return_exceptions=True):
            if outcome is not None:
                raise outcome

    async def _call(self, action: str, key: str, start: Callable[[], Awaitable[T]], parts: _Parts | None = None) -> T:
        failure: BaseException | None
        try:
            return await start()
        except StopAsyncIteration:
            raise
        except Exception as error:
            failure = None if parts is None else parts.failure
            failure = failure or store_error(error, action, key, self._secrets)
        raise failure  # here it has no context, which could tell secrets

    def _path(self, key: str) -> str:
        check_key(key)
        return self._prefix + key

    def _info(self, found: obstore.ObjectMeta) -> ObjectInfo:
        key = found["path"].removeprefix(self._prefix)
        return ObjectInfo(key, found["size"], int(found["last_modified"].timestamp() * 1000))


class _Parts:
    """What is to be put, part by part. The failure of a caller's read is kept: the library would wrap it."""

    def __init__(self, key: str, size_bytes: int, read: ReadPart, part_bytes: int) -> None:
        self._key = key
        self._size_bytes = size_bytes
        self._read = read
        self._part_bytes = part_bytes
        self._position = 0
        self.failure: BaseException | None = None

    def __aiter__(self) -> AsyncIterator[Content]:
        return self

    async def __anext__(self) -> Content:
        count = min(self._part_bytes, self._size_bytes - self._position)
        if not count:
            raise StopAsyncIteration
        try:
            part = await self._read(self._position, count)
            if len(part) != count:
                problem = f"{count} bytes from {self._position} were to be put, and {len(part)} came"
                raise StoreBroken(f"{self._key}: {problem}")
        except BaseException as error:
            self.failure = error
            raise
        self._position += count
        return part
