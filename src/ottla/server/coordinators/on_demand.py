"""CoordinatorsOnDemand: the coordinators of a node, composed when they are first needed.

A node that only keeps logs never imports them, which saves a good part of its start. Where internal topics exist
already, coordinators are needed at once: sessions and transactions from before the start go on.
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
    from ottla.server.coordinators.all_coordinators import AllCoordinators

# With these changes a coordinator may come or go.
_MOVES = (PartitionsAdded, PartitionChanged, TopicDeleted)


class CoordinatorsOnDemand:
    """`make` composes the coordinators, which load their journals when they first `follow` the cluster. `imported` has
    a worker import the modules for that; None: they are imported already."""

    def __init__(self, make: Callable[[], AllCoordinators], imported: Callable[[], Future[Any] | None]) -> None:
        self._make = make
        self._imported = imported
        self._closed = False
        self._all: AllCoordinators | None = None

    @property
    def all(self) -> AllCoordinators:
        if self._all is None:
            self._all = self._make()
            self._all.follow()
        return self._all

    def start(self, state: ClusterState) -> None:
        """Goes on with what was coordinated before this start, or by another node."""
        if any(name in state.topics for name in INTERNAL_TOPICS):
            self._take_up()

    def reload(self, state: ClusterState) -> None:
        """A snapshot replaced the cluster's state."""
        if self._all is not None:
            self._all.reload()
        else:
            self.start(state)

    def tell(self, changes: Sequence[Change]) -> None:
        """What changed in the cluster. Coordinators that are composed later begin with the state of then."""
        moved = any(isinstance(change, _MOVES) and change.topic.name in INTERNAL_TOPICS for change in changes)
        if self._all is not None:
            if moved:
                self._all.follow()
            self._all.tell(changes)
        elif moved:  # this node may lead some of it
            importing = self._imported()
            if importing is None:
                self._take_up()
            else:
                asyncio.wrap_future(importing).add_done_callback(self._take_up)

    def _take_up(self, _: object = None) -> None:
        if not self._closed:
            self.all  # noqa: B018  # composed by asking for them

    def close(self) -> None:
        self._closed = True
        if self._all is not None:
            self._all.close()
            self._all = None
