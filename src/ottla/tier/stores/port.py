"""The port of an object store: what tiered storage needs of S3, Google Cloud Storage, Azure or a directory.

Rules for callers
- A key is made of folders and a name: `a/b/c`, of the characters that topics have (`keys.py`). No key is the folder of
  another: where there is `a/b` there is no `a/b/c`, which a directory could not hold.
- An object is there as a whole or not at all, and can be read as soon as its put has returned.
- An object is not changed, only put again with the same content; so a reader never sees two halves.
- A change that failed may have happened, or may happen a little later: a put may be repeated, a create asks what is
  there. After a failed put, a deletion of the key may be overtaken by it: who collects garbage looks again later.
- A listing may miss objects of the last seconds, tell of deleted ones and tell of one twice. Its order is that of keys.

Every call ends within bounds of `model/limits/object_stores.py` and holds up the event loop for no longer than handing
over a buffer. All errors are those of `errors.py`, except those that a caller's `ReadPart` raises.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

Content: TypeAlias = bytes | bytearray | memoryview
# Reads so many bytes from a position of what is put. It is asked for one part after the other, in order; a put that is
# repeated begins again. It may wait as long as it likes, for a quota; the buffer that it returns stays as it is.
ReadPart: TypeAlias = Callable[[int, int], Awaitable[Content]]


class ObjectInfo(NamedTuple):
    key: str
    size_bytes: int
    modified_ms: int  # by the store's clock


class ObjectStore(Protocol):
    async def put(self, key: str, content: Content) -> None:
        """Store up to `STORE_PART_BYTES` under the key, whatever was there."""

    async def put_parts(self, key: str, size_bytes: int, read: ReadPart) -> None:
        """Store an object of any size, read part by part, under the key, whatever was there."""

    async def create(self, key: str, content: Content) -> None:
        """Store up to `STORE_PART_BYTES` under a key that has no object. Raises `ObjectExists`; of several callers at
        once one succeeds, if their contents differ.
        """

    async def read(self, key: str, start: int, size_bytes: int) -> memoryview:
        """Return exactly so many bytes, up to `STORE_READ_BYTES_MAX`, from a position."""

    async def look(self, key: str) -> ObjectInfo:
        """Return the size and age of an object without its content. S3's answer does not tell whether the object is
        missing or its bucket: both are `ObjectNotFound`.
        """

    def pages(self, folder: str = "", after: str = "") -> AsyncGenerator[list[ObjectInfo], None]:
        """List all objects in a folder (`a/b/`; empty for all) and in its folders, those behind the key `after` only,
        in pages of up to `STORE_PAGE_OBJECTS`. Whoever stops early closes it (`contextlib.aclosing`).
        """

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects; one that is not there counts as deleted. After a failure some may be deleted."""

    async def close(self) -> None:
        """Give back threads and connections. Calls that are under way fail or end."""
