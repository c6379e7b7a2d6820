"""The current leader of a partition by the cluster's state: sent to clients that asked another node (KIP-951)."""

from __future__ import annotations

from typing import NamedTuple

from ottla.cluster.entities import Topic
from ottla.cluster.state import ClusterState
from ottla.model.ids import LeaderEpoch


class PartitionLeader(NamedTuple):
    id: int
    epoch: LeaderEpoch


def leader_of(state: ClusterState, topic: str | bytes, index: int) -> PartitionLeader | None:
    """Return the leader of a partition, whose topic is given by name or id; None if there is no such partition."""
    found: Topic | None = state.topics.get(topic) if isinstance(topic, str) else state.topic_by_id.get(topic)
    if found is None or not 0 <= index < len(found.partitions):
        return None
    partition = found.partitions[index]
    return PartitionLeader(partition.leader, partition.leader_epoch)
