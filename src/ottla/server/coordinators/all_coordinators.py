"""AllCoordinators: the coordinators of a node, and its live share partitions, whose state the share
coordinators store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ottla.cluster.commands.create_topics import TopicOutcome, TopicToCreate
from ottla.cluster.entities import Change, PartitionChanged, PartitionsAdded, TopicCreated, TopicDeleted
from ottla.groups.modern.topics_changed import TopicsChanged
from ottla.groups.offsets.remove import ForgetTopics
from ottla.groups.share.state_partitions import ForgetShares
from ottla.groups.view import GroupsView
from ottla.server.coordination.hosts import Coordinators
from ottla.server.coordination.runtime import CoordinatorRuntime
from ottla.server.dead_letters.dead_letters import DeadLetters
from ottla.server.groups.groups import Groups
from ottla.server.loop.later import Later
from ottla.server.peers.peer_requests import PeerRequests
from ottla.server.quorum.producer_ids import ProducerIds
from ottla.server.settings.configs import Configs
from ottla.server.shares.shares import Shares
from ottla.server.txns.transactions import Transactions
from ottla.shares.state.upkeep import TopicsDeleted
from ottla.shares.state.view import ShareStatesView
from ottla.txns.view import TxnsView

# The coordinators of any kind.
AnyCoordinators: TypeAlias = Coordinators[GroupsView] | Coordinators[ShareStatesView] | Coordinators[TxnsView]
_OF_TOPICS = (TopicCreated, TopicDeleted, PartitionsAdded)


class AllCoordinators:
    """`create_topics` has the controller create topics."""

    def __init__(
        self,
        coordinating: CoordinatorRuntime,
        configs: Configs,
        requests: PeerRequests,
        producer_ids: ProducerIds,
        create_topics: Callable[[tuple[TopicToCreate, ...]], Later[list[TopicOutcome]]],
        dead_letters: DeadLetters,
    ) -> None:
        self.shares = Shares(coordinating, configs, requests, dead_letters)
        self.groups = Groups(coordinating, configs, self.shares, create_topics)
        self.transactions = Transactions(
            coordinating, configs, producer_ids, requests, self.groups.coordinators.host_at
        )
        self._all: tuple[AnyCoordinators, ...] = (
            self.groups.coordinators,
            self.shares.coordinators,
            self.transactions.coordinators,
        )

    def follow(self) -> None:
        """Add coordinators for partitions of internal topics that this node leads now, and remove the others."""
        for each in self._all:
            each.follow()

    def reload(self) -> None:
        """Start all coordinators anew, because a snapshot replaced the cluster's state."""
        for each in self._all:
            each.resign_all()
            each.follow()
        self.shares.partitions.follow()

    def tell(self, changes: Sequence[Change]) -> None:
        """Tell the coordinators about changes of the metadata."""
        groups = self.groups.coordinators
        touched = [change.topic.name for change in changes if isinstance(change, _OF_TOPICS)]
        if touched:
            groups.submit_to_all(TopicsChanged(frozenset(touched)))
        deleted = [change.topic for change in changes if isinstance(change, TopicDeleted)]
        if deleted:
            ids = frozenset(topic.id for topic in deleted)
            groups.submit_to_all(ForgetTopics(frozenset(topic.name for topic in deleted)))
            groups.submit_to_all(ForgetShares(ids))
            self.shares.coordinators.submit_to_all(TopicsDeleted(ids))
        if deleted or any(isinstance(change, PartitionChanged) for change in changes):
            self.shares.partitions.follow()

    def close(self) -> None:
        self.shares.partitions.close()
        for each in self._all:
            each.close()
