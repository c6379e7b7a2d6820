"""Which coordinators a node has, and how the parts of the node look to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.cluster.entities import Change, PartitionChanged, PartitionsAdded, Topic, TopicCreated, TopicDeleted
from ottla.cluster.state import ClusterState
from ottla.groups.machine import GroupsMachine
from ottla.groups.modern.topics_changed import TopicsChanged
from ottla.groups.offsets.remove import ForgetTopics
from ottla.groups.share.state_partitions import ForgetShares
from ottla.groups.state import GroupsState
from ottla.groups.view import TopicInfo, View
from ottla.machine.keyed import types_of
from ottla.model.names import CONSUMER_OFFSETS_TOPIC
from ottla.model.settings.groups import OFFSETS_COMMIT_TIMEOUT_MS
from ottla.server.coordination.hosts import Coordinators
from ottla.server.groups import streams_groups
from ottla.server.shares import group_requests as share_groups
from ottla.server.shares.coordinators import share_coordinators
from ottla.server.shares.share_partitions import SharePartitions
from ottla.server.shares.states import ShareStates
from ottla.server.txns.coordinators import transaction_coordinators
from ottla.server.txns.verification import Verification
from ottla.shares.state.upkeep import TopicsDeleted
from ottla.wire.journal import consumer_group, consumer_offsets, share_group, streams_group

if TYPE_CHECKING:
    from ottla.server.api.context import Services
    from ottla.server.dead_letters.dead_letters import DeadLetters

GroupCoordinators = Coordinators[GroupsMachine]
_OF_TOPICS = (TopicCreated, TopicDeleted, PartitionsAdded)


class ClusterTopics:
    """The cluster's topics as the group coordinator's assignors want them.

    `state` is asked each time: a snapshot from another node puts a new one in its place.
    """

    def __init__(self, state: Callable[[], ClusterState]) -> None:
        self._state = state

    def by_name(self, name: str) -> TopicInfo | None:
        return self._info(self._state().topics.get(name))

    def by_id(self, topic_id: bytes) -> TopicInfo | None:
        return self._info(self._state().topic_by_id.get(topic_id))

    def names(self) -> Iterable[str]:
        return self._state().topics

    def _info(self, topic: Topic | None) -> TopicInfo | None:
        if topic is None:
            return None
        brokers = self._state().brokers
        if all(broker.rack is None for broker in brokers.values()):
            return TopicInfo(topic.name, topic.id, len(topic.partitions))
        racks = tuple(
            frozenset(rack for id in partition.replicas if id in brokers and (rack := brokers[id].rack) is not None)
            for partition in topic.partitions
        )
        return TopicInfo(topic.name, topic.id, len(topic.partitions), racks)


class Parts:
    """The coordinators of a node, and the live share partitions they keep the state of."""

    def __init__(self, loop: Any, services: Services, rng: Any, dead_letters: DeadLetters) -> None:
        self.groups = group_coordinators(loop, services, rng)
        self.shares = share_coordinators(loop, services)
        self.txns = transaction_coordinators(loop, services)
        self.verification = Verification(services)
        self.share_states = ShareStates(loop, services)
        self.share_partitions = SharePartitions(
            services.runtime, services.configs, services.storage, services.metadata, self.share_states, dead_letters
        )
        self._all: tuple[Coordinators[Any], ...] = (self.groups, self.shares, self.txns)

    def follow(self) -> None:
        """Take up the partitions of internal topics that are new."""
        for each in self._all:
            each.follow()

    def reload(self) -> None:
        """Nobody knows what changed: all begin anew, with the world as it is."""
        for each in self._all:
            each.resign_all()
            each.follow()
        self.share_partitions.follow()

    def tell(self, changes: Sequence[Change]) -> None:
        """What changed in the cluster, to whom it concerns."""
        touched = [change.topic.name for change in changes if isinstance(change, _OF_TOPICS)]
        if touched:
            self.groups.submit_to_all(TopicsChanged(frozenset(touched)))
        deleted = [change.topic for change in changes if isinstance(change, TopicDeleted)]
        if deleted:
            ids = frozenset(topic.id for topic in deleted)
            self.groups.submit_to_all(ForgetTopics(frozenset(topic.name for topic in deleted)))
            self.groups.submit_to_all(ForgetShares(ids))
            self.shares.submit_to_all(TopicsDeleted(ids))
        if deleted or any(isinstance(change, PartitionChanged) for change in changes):
            self.share_partitions.follow()

    def close(self) -> None:
        self.share_partitions.close()
        for each in self._all:
            each.close()


def group_coordinators(loop: Any, services: Services, rng: Any) -> GroupCoordinators:
    """The machines on `__consumer_offsets`."""
    configs = services.configs
    topics = ClusterTopics(lambda: services.metadata.state)

    def make(_: int) -> GroupsMachine:
        return GroupsMachine(View(GroupsState(), topics, lambda: configs.broker, configs.group, rng))

    types = types_of(consumer_offsets, consumer_group, share_group, streams_group)
    made: GroupCoordinators = Coordinators(
        loop, services, CONSUMER_OFFSETS_TOPIC, types, make, lambda: configs.broker[OFFSETS_COMMIT_TIMEOUT_MS]
    )
    share_groups.perform_effects(services, made)
    streams_groups.perform_effects(services, made)
    return made
