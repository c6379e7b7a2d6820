"""CoordinatorsOnDemand: the coordinators of a node, composed when they are first needed.

A node that only stores logs never imports their code, which saves a good part of its start. If internal topics exist
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

# Changes after which this node may have to add or remove a coordinator.
_MOVES = (PartitionsAdded, PartitionChanged, TopicDeleted)


class CoordinatorsOnDemand:
    """`make` composes the coordinators, which load their journals at the first `follow`. `imported` has a worker import
    their modules and returns the import under way, or None if they are imported already.
    """

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

    @property
    def composed(self) -> AllCoordinators | None:
        """The coordinators if they were needed already; asking does not compose them."""
        return self._all

    def start(self, state: ClusterState) -> None:
        """Compose the coordinators if internal topics exist, to continue what was coordinated before the start or by
        another node.
        """
        if any(name in state.topics for name in INTERNAL_TOPICS):
            self._take_up()

    def reload(self, state: ClusterState) -> None:
        """Start the coordinators anew, because a snapshot replaced the cluster's state."""
        if self._all is not None:
            self._all.reload()
        else:
            self.start(state)

    def tell(self, changes: Sequence[Change]) -> None:
        """Tell the coordinators about changes of the metadata. Coordinators that are composed later read the state of
        that time.
        """
        moved = any(isinstance(change, _MOVES) and change.topic.name in INTERNAL_TOPICS for change in changes)
        if self._all is not None:
            if moved:
                self._all.follow()
            self._all.tell(changes)
        elif moved:  # this node may lead a partition of the internal topic
            importing = self._imported()
            if importing is None:
                self._take_up()
            else:
                asyncio.wrap_future(importing).add_done_callback(self._take_up)

    def _take_up(self, _: object = None) -> None:
        if not self._closed:
            self.all  # noqa: B018 # the property composes them

    def close(self) -> None:
        self._closed = True
        if self._all is not None:
            self._all.close()
            self._all = None
