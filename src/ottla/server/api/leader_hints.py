"""The leader of a partition for a client that asked the wrong node (KIP-951): sent with the error, so that the client
need not fetch the metadata first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ottla.cluster import leadership
from ottla.cluster.entities import Broker
from ottla.cluster.leadership import Leader
from ottla.model.errors import ErrorCode
from ottla.server.api.advertised_brokers import listed_brokers
from ottla.server.api.context import Context


def leader_of(context: Context, topic: str | bytes, index: int) -> Leader | None:
    """Return the leader by the topic's name or id, as this node knows it."""
    return leadership.leader_of(context.member.state, topic, index)


def reachable(context: Context, ids: set[int]) -> list[tuple[Broker, str, int]]:
    """Return (broker, host, port) of those brokers that a client of this connection can reach."""
    return [entry for entry in listed_brokers(context) if entry[0].id in ids]


def name_share_leaders(response: Any, context: Context) -> None:
    """Name the leaders of partitions that are not led here in the response to a ShareFetch or ShareAcknowledge."""
    name_leaders(
        response,
        context,
        (
            (topic.topic_id, each.partition_index, each)
            for topic in response.responses
            for each in topic.partitions
            if ErrorCode.NOT_LEADER_OR_FOLLOWER in (each.error_code, getattr(each, "acknowledge_error_code", 0))
        ),
    )


def name_leaders(response: Any, context: Context, refused: Iterable[tuple[str | bytes, int, Any]]) -> None:
    """Set the leader in each partition's answer, and the addresses of these leaders in the response.

    `refused` are the partitions that are not led here: (topic's name or id, partition, answer).
    """
    leaders: set[int] = set()
    for topic, index, answer in refused:
        leader = leader_of(context, topic, index)
        if leader is not None:
            answer.current_leader.leader_id, answer.current_leader.leader_epoch = leader
            leaders.add(leader.id)
    if leaders:
        response.node_endpoints = [
            type(response).NodeEndpoint(node_id=broker.id, host=host, port=port, rack=broker.rack)
            for broker, host, port in reachable(context, leaders)
        ]
