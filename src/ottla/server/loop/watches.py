"""Watches: the readers that want to know when a key (a partition) changes, for as long as they read it.

A watcher differs from a waiter (`waiters.py`): it is not called to give an answer, but notes that a key changed and
decides by itself when to read it. A change of a key without watchers costs one dictionary look-up.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol


class Watcher(Protocol):
    def mark(self, what: Any, /, *, hurry: bool) -> None:
        """Note that the key watched as `what` has changed; without `hurry` it need not be read before the next regular
        read.
        """


class Watches:
    def __init__(self) -> None:
        self._by_key: dict[Hashable, dict[Watcher, object]] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def watchers(self, key: Hashable) -> int:
        """Return the number of watchers of a key."""
        return len(self._by_key.get(key, ()))

    def watch(self, key: Hashable, watcher: Watcher, what: object) -> None:
        self._by_key.setdefault(key, {})[watcher] = what

    def unwatch(self, key: Hashable, watcher: Watcher) -> None:
        watching = self._by_key.get(key)
        if watching is not None:
            watching.pop(watcher, None)
            if not watching:
                del self._by_key[key]

    def changed(self, key: Hashable, *, hurry: bool) -> None:
        watching = self._by_key.get(key)
        if watching:
            for watcher, what in watching.items():
                watcher.mark(what, hurry=hurry)
