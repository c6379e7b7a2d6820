"""Checks of requests to a replica: each names the cluster, exactly one partition, and an epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.model.errors import ErrorCode
from ottla.model.ids import LeaderEpoch
from ottla.model.limits import RAFT_EPOCH_ANY_MAX, RAFT_EPOCH_LEAP_MAX
from ottla.model.names import CLUSTER_METADATA_TOPIC
from ottla.raft.state import RaftState


def refusal(own_cluster: str, cluster_id: str | None, topics: Sequence[Any], name: str = "topic_name") -> ErrorCode:
    """Return why a request cannot be for this replica at all; NONE if it can."""
    if cluster_id is not None and cluster_id != own_cluster:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if len(topics) != 1 or getattr(topics[0], name) != CLUSTER_METADATA_TOPIC or len(topics[0].partitions) != 1:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def is_absurd(epoch: LeaderEpoch, own: LeaderEpoch) -> bool:
    """Whether no election can have led to this epoch.

    Every replica adopts a higher epoch that it hears of, so one absurd message could use up all epochs.
    """
    return epoch > max(RAFT_EPOCH_ANY_MAX, own + RAFT_EPOCH_LEAP_MAX)


def leader_refusal(node: RaftState, epoch: LeaderEpoch) -> ErrorCode:
    """Return why a request for the leader of `epoch` is not for this node; NONE if it is."""
    if epoch < node.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > node.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if node.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER
