"""Three nodes for the tests of coordinators in a cluster: lively, and with few partitions of the internal topics."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tests.client.consuming import LIVELY
from tests.support.processes.clusters import OttlaCluster
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import WAIT_S

from ottla.client.admin.topics import NewTopic
from ottla.client.blocking.blocking import Blocking
from ottla.model.errors import ErrorCode
from ottla.wire.message import Request
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest

T = TypeVar("T")
GROUP, TRANSACTION = 0, 1

PROPERTIES = LIVELY | {
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "share.coordinator.state.topic.num.partitions": "6",
    # A node that is paused is noticed soon; Kafka's default is 9 s.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    "auto.leader.rebalance.enable": "false",
}


def until(condition: Callable[[], T], timeout_s: float = WAIT_S) -> T:
    """What it gives once that is something."""
    end = time.monotonic() + timeout_s
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.05)


def ask(cluster: OttlaCluster, id: int, request: Request, version: int) -> Any:
    """One node's answer."""
    with RawConnection(cluster.address(id)) as connection:
        return connection.call(request, version)


def coordinator(cluster: OttlaCluster, kind: int, key: str, id: int | None = None) -> int:
    """Who coordinates, once somebody does; as one node sees it, or any that runs."""

    def found() -> int:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        try:
            answer = cluster.ask(request, 4) if id is None else ask(cluster, id, request, 4)
        except (OSError, Closed):
            return 0
        (one,) = answer.coordinators
        if one.error_code:
            assert one.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            return 0
        assert (one.host, str(one.port)) == tuple(cluster.address(one.node_id).split(":"))
        return int(one.node_id)

    return until(found)


def create(cluster: OttlaCluster, name: str, *replicas: Sequence[int], **configs: str) -> None:
    """A topic whose partitions have these replicas; the first of each leads it."""
    with Blocking(cluster.bootstrap) as client:
        client.admin.topics.create_each(
            [NewTopic(name, -1, -1, assignments=dict(enumerate(map(list, replicas))), configs=configs)]
        )
    until(lambda: all(cluster.leader_of(name, index) == each[0] for index, each in enumerate(replicas)))


def around(*first: int) -> list[list[int]]:
    """Replicas on all three, with these leaders."""
    return [[each, *(other for other in (1, 2, 3) if other != each)] for each in first]
