"""ClusterTopics: the cluster's topics, as the assignors of the group coordinators need them."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.cluster.entities import Topic
from ottla.groups.view import GroupTopic
from ottla.server.quorum.metadata_host import MetadataHost


class ClusterTopics:
    """The state is read from `metadata` each time: a snapshot from another node replaces it."""

    def __init__(self, metadata: MetadataHost) -> None:
        self._metadata = metadata

    def by_name(self, name: str) -> GroupTopic | None:
        return self._info(self._metadata.state.topics.get(name))

    def by_id(self, topic_id: bytes) -> GroupTopic | None:
        return self._info(self._metadata.state.topic_by_id.get(topic_id))

    def names(self) -> Iterable[str]:
        return self._metadata.state.topics

    def _info(self, topic: Topic | None) -> GroupTopic | None:
        if topic is None:
            return None
        brokers = self._metadata.state.brokers
        if all(broker.rack is None for broker in brokers.values()):
            return GroupTopic(topic.name, topic.id, len(topic.partitions))
        racks = tuple(
            frozenset(rack for id in partition.replicas if id in brokers and (rack := brokers[id].rack) is not None)
            for partition in topic.partitions
        )
        return GroupTopic(topic.name, topic.id, len(topic.partitions), racks)
