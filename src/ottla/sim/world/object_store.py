"""An object store in memory; implements `ottla.tier.stores.port.ObjectStore`. It is exact: what goes wrong with real
ones is added by `object_store_faults.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from ottla.model import limits
from ottla.tier.stores.errors import ObjectExists, ObjectNotFound, StoreBroken
from ottla.tier.stores.keys import check_folder, check_key
from ottla.tier.stores.port import Content, ObjectInfo, ReadPart


class MemoryObjectStore:
    """Its clock is the event loop's. It outlives the nodes that use it."""

    def __init__(self, page_objects: int = limits.STORE_PAGE_OBJECTS) -> None:
        self._page_objects = page_objects
        self._objects: dict[str, tuple[bytes, ObjectInfo]] = {}

    async def put(self, key: str, content: Content) -> None:
        assert len(content) <= limits.STORE_PART_BYTES
        self._set(key, bytes(content))

    async def put_parts(self, key: str, size_bytes: int, read: ReadPart) -> None:
        check_key(key)
        parts = []
        for start in range(0, size_bytes, limits.STORE_PART_BYTES):
            count = min(limits.STORE_PART_BYTES, size_bytes - start)
            parts.append(bytes(await read(start, count)))
            if len(parts[-1]) != count:
                raise StoreBroken(f"{key}: {count} bytes from {start} were to be put, and {len(parts[-1])} came")
        self._set(key, b"".join(parts))

    async def create(self, key: str, content: Content) -> None:
        if key in self._objects:
            raise ObjectExists(f"{key}: there is one already")
        await self.put(key, content)

    async def read(self, key: str, start: int, size_bytes: int) -> memoryview:
        assert 0 <= size_bytes <= limits.STORE_READ_BYTES_MAX
        content, _ = self._get(key)
        if start + size_bytes > len(content):
            raise StoreBroken(f"{key} ends at {len(content)}, before {start + size_bytes}")
        return memoryview(content)[start : start + size_bytes]

    async def look(self, key: str) -> ObjectInfo:
        return self._get(key)[1]

    async def pages(self, folder: str = "", after: str = "") -> AsyncGenerator[list[ObjectInfo], None]:
        check_folder(folder)
        while page := self._page(folder, after):
            after = page[-1].key
            yield page

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            check_key(key)
            self._objects.pop(key, None)

    async def close(self) -> None:
        """The objects stay."""

    def _page(self, folder: str, after: str) -> list[ObjectInfo]:
        keys = sorted(key for key in self._objects if key.startswith(folder) and key > after)
        return [self._objects[key][1] for key in keys[: self._page_objects]]

    def _get(self, key: str) -> tuple[bytes, ObjectInfo]:
        check_key(key)
        if key not in self._objects:
            raise ObjectNotFound(f"{key}: there is no such object")
        return self._objects[key]

    def _set(self, key: str, content: bytes) -> None:
        check_key(key)
        now_ms = int(asyncio.get_running_loop().time() * 1000)
        self._objects[key] = content, ObjectInfo(key, len(content), now_ms)
