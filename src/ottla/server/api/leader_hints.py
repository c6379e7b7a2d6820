"""Who leads a partition, for a client that asked the wrong node (KIP-951): told with the error, so that it need not ask
for the metadata first.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.cluster.entities import Broker, Topic
from ottla.server.api.advertised_brokers import listed_brokers
from ottla.server.api.context import Context


class Leader(NamedTuple):
    id: int
    epoch: int


def leader_of(context: Context, topic: str | bytes, index: int) -> Leader | None:
    """By the topic's name or id, as this node knows it."""
    state = context.metadata.state
    found: Topic | None = state.topics.get(topic) if isinstance(topic, str) else state.topic_by_id.get(topic)
    if found is None or not 0 <= index < len(found.partitions):
        return None
    partition = found.partitions[index]
    return Leader(partition.leader, partition.leader_epoch)


def reachable(context: Context, ids: set[int]) -> list[tuple[Broker, str, int]]:
    """(broker, host, port) of those brokers that a client of this connection can reach."""
    return [entry for entry in listed_brokers(context) if entry[0].id in ids]
