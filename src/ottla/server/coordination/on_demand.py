"""Coordination: groups, transactions and share groups of this node, put together when somebody first needs them.

A node that only keeps a log never imports any of it, which is a good part of what a start would have to import. What a
former life coordinated is needed at once: its sessions and transactions go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from ottla.cluster.entities import Change, PartitionChanged, PartitionsAdded, TopicDeleted
from ottla.cluster.state import ClusterState
from ottla.model.names import INTERNAL_TOPICS

if TYPE_CHECKING:
    from ottla.server.coordination.coordinators import Parts

# With these a coordinator may come or go.
_MOVES = (PartitionsAdded, PartitionChanged, TopicDeleted)


class Coordination:
    """`make` puts the parts together, which load what is there when they are first `follow`ed. `imported` has a worker
    import what that needs; None: it is there."""

    def __init__(self, make: Callable[[], Parts], imported: Callable[[], Future[Any] | None]) -> None:
        self._make = make
        self._imported = imported
        self._closed = False
        self._parts: Parts | None = None

    @property
    def parts(self) -> Parts:
        if self._parts is None:
            self._parts = self._make()
            self._parts.follow()
        return self._parts

    def start(self, state: ClusterState) -> None:
        """Goes on with what a former life, or another node, left behind."""
        if any(name in state.topics for name in INTERNAL_TOPICS):
            self._take_up()

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
        elif moved:  # this node may lead some of it
            importing = self._imported()
            if importing is None:
                self._take_up()
            else:
                asyncio.wrap_future(importing).add_done_callback(self._take_up)

    def _take_up(self, _: object = None) -> None:
        if not self._closed:
            self.parts  # noqa: B018  # made by asking for them

    def close(self) -> None:
        self._closed = True
        if self._parts is not None:
            self._parts.close()
            self._parts = None
