"""Who leads a partition, as the cluster's state says: what a client that asked another node is told (KIP-951)."""

from __future__ import annotations

from typing import NamedTuple

from ottla.cluster.entities import Topic
from ottla.cluster.state import ClusterState


class Leader(NamedTuple):
    id: int
    epoch: int


def leader_of(state: ClusterState, topic: str | bytes, index: int) -> Leader | None:
    """By the topic's name or id; None if there is no such partition."""
    found: Topic | None = state.topics.get(topic) if isinstance(topic, str) else state.topic_by_id.get(topic)
    if found is None or not 0 <= index < len(found.partitions):
        return None
    partition = found.partitions[index]
    return Leader(partition.leader, partition.leader_epoch)
