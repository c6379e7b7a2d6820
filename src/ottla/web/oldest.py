"""OldestFirst: things of several addresses, the oldest first, of all addresses and of each."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class OldestFirst(Generic[T]):
    def __init__(self) -> None:
        self._hosts: dict[T, str] = {}  # of all, the oldest first
        self._of_host: dict[str, dict[T, None]] = {}  # likewise, by address

    def __len__(self) -> int:
        return len(self._hosts)

    def __iter__(self) -> Iterator[T]:
        return iter(self._hosts)

    def add(self, each: T, host: str) -> None:
        self._hosts[each] = host
        self._of_host.setdefault(host, {})[each] = None

    def discard(self, each: T) -> None:
        host = self._hosts.pop(each, None)
        if host is not None:
            of_host = self._of_host[host]
            del of_host[each]
            if not of_host:
                del self._of_host[host]

    def oldest(self) -> T | None:
        return next(iter(self._hosts), None)

    def oldest_of(self, host: str) -> T | None:
        return next(iter(self._of_host.get(host, ())), None)

    def count_of(self, host: str) -> int:
        return len(self._of_host.get(host, ()))
