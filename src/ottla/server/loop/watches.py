"""Watches: which readers want to know that a key (a partition) has changed, for as long as they read it.

A watcher is not called back with an answer, as a waiter is (`waiters.py`): it notes what changed and decides by itself
when to look. A change of a key that nobody watches costs one dictionary look-up.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol


class Watcher(Protocol):
    def mark(self, what: Any, *, hurry: bool) -> None:
        """The key that it watches as `what` has changed; without `hurry` that may wait until it looks anyway."""


class Watches:
    def __init__(self) -> None:
        self._by_key: dict[Hashable, dict[Watcher, Any]] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def watchers(self, key: Hashable) -> int:
        """How many watch a key."""
        return len(self._by_key.get(key, ()))

    def watch(self, key: Hashable, watcher: Watcher, what: Any) -> None:
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
