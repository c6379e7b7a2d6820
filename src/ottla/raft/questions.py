"""What all requests to a replica have in common: they name the cluster and exactly one partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ottla.model.errors import ErrorCode
from ottla.model.names import CLUSTER_METADATA_TOPIC


def refusal(own_cluster: str, cluster_id: str | None, topics: Sequence[Any], name: str = "topic_name") -> ErrorCode:
    """Why a request cannot be for this replica at all; NONE if it can."""
    if cluster_id is not None and cluster_id != own_cluster:
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if len(topics) != 1 or getattr(topics[0], name) != CLUSTER_METADATA_TOPIC or len(topics[0].partitions) != 1:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE
