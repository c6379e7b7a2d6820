"""The leader of a partition for a client that asked the wrong node (KIP-951): sent with the error, so that the client
need not fetch the metadata first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from ottla.cluster import leadership
from ottla.cluster.entities import Broker
from ottla.cluster.leadership import PartitionLeader
from ottla.model.errors import ErrorCode
from ottla.model.ids import LeaderEpoch
from ottla.server.api.advertised_brokers import listed_brokers
from ottla.server.api.context import Context
from ottla.wire.messages.shares.share_acknowledge import ShareAcknowledgeResponse
from ottla.wire.messages.shares.share_fetch import ShareFetchResponse

EndpointT = TypeVar("EndpointT")
ShareResponseT = TypeVar("ShareResponseT", ShareFetchResponse, ShareAcknowledgeResponse)


def leader_of(context: Context, topic: str | bytes, index: int) -> PartitionLeader | None:
    """Return the leader by the topic's name or id, as this node knows it."""
    return leadership.leader_of(context.member.state, topic, index)


def reachable(context: Context, ids: set[int]) -> list[tuple[Broker, str, int]]:
    """Return (broker, host, port) of those brokers that a client of this connection can reach."""
    return [entry for entry in listed_brokers(context) if entry[0].id in ids]


class HintedLeader(Protocol):
    leader_id: int
    leader_epoch: LeaderEpoch


class RefusedPartition(Protocol):
    """The answer for a partition, in which its leader is named."""

    @property
    def current_leader(self) -> HintedLeader: ...


class HintingResponse(Protocol[EndpointT]):
    """A response that has the addresses of leaders."""

    node_endpoints: list[EndpointT]


def name_share_leaders(response: ShareResponseT, context: Context) -> None:
    """Name the leaders of partitions that are not led here in the response to a ShareFetch or ShareAcknowledge."""
    name_leaders(
        response,
        type(response).NodeEndpoint,
        context,
        (
            (topic.topic_id, each.partition_index, each)
            for topic in response.responses
            for each in topic.partitions
            if ErrorCode.NOT_LEADER_OR_FOLLOWER in (each.error_code, getattr(each, "acknowledge_error_code", 0))
        ),
    )


def name_leaders(
    response: HintingResponse[EndpointT],
    endpoint: Callable[..., EndpointT],
    context: Context,
    refused: Iterable[tuple[str | bytes, int, RefusedPartition]],
) -> None:
    """Set the leader in each partition's answer, and the addresses of these leaders, as `endpoint`s, in the response.

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
            endpoint(node_id=broker.id, host=host, port=port, rack=broker.rack)
            for broker, host, port in reachable(context, leaders)
        ]
