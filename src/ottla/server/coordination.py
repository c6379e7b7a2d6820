"""Coordination: groups, transactions and share groups of this node, put together when somebody first needs them.

A node that only keeps a log never imports any of it, which is a good part of what a start would have to import. What a
former life coordinated is needed at once: its sessions and transactions go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.cluster.entities import Change, PartitionChanged, PartitionsAdded, TopicDeleted
from ottla.cluster.state import ClusterState
from ottla.model.names import INTERNAL_TOPICS

if TYPE_CHECKING:
    from ottla.server.coordinators import Parts

# With these a coordinator may come or go.
_MOVES = (PartitionsAdded, PartitionChanged, TopicDeleted)


class Coordination:
    """`make` puts the parts together; they load what is there when they are first `follow`ed."""

    def __init__(self, make: Callable[[], Parts]) -> None:
        self._make = make
        self._parts: Parts | None = None
        self.tasks: set[asyncio.Task[None]] = set()  # what other nodes are being asked

    @property
    def parts(self) -> Parts:
        if self._parts is None:
            self._parts = self._make()
            self._parts.follow()
        return self._parts

    def start(self, state: ClusterState) -> None:
        """Goes on with what a former life, or another node, left behind."""
        if any(name in state.topics for name in INTERNAL_TOPICS):
            self.parts  # noqa: B018  # made by asking for them

    def reload(self, state: ClusterState) -> None:
        """The whole state is another one."""
        if self._parts is not None:
            self._parts.reload()
        else:
            self.start(state)

    def tell(self, changes: Sequence[Change]) -> None:
        """What changed in the cluster. Whoever comes later sees it as it is."""
        moved = any(isinstance(change, _MOVES) and change.topic.name in INTERNAL_TOPICS for change in changes)
        if self._parts is not None:
            if moved:
                self._parts.follow()
            self._parts.tell(changes)
        elif moved:
            self.parts  # noqa: B018  # this node may lead some of it

    def close(self) -> None:
        if self._parts is not None:
            self._parts.close()
            self._parts = None
        for task in tuple(self.tasks):
            task.cancel()
