"""Requests that are well formed and make no sense, to the nodes of a cluster, on the listeners of its controllers too.

Whoever is let in there may elect and register whom it likes, as with Kafka: what it says may cost an election or a
registration, but no node may fail inside or stay confused. When it is over the cluster is as good as before.
"""

from __future__ import annotations

import asyncio
import logging
import random
import select
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.faults.test_absurd_requests import LONG, Absurd, is_alarming
from tests.faults.test_fuzzed_frames import damaged, valid_frames
from tests.server.nodes import ask, listener_of, run, running, settings, until
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import WAIT_S

from ottla.model.errors import ErrorCode
from ottla.model.ids import METADATA_TOPIC_ID
from ottla.server.api import dispatch
from ottla.server.node import Node
from ottla.wire.frame import request_frame
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.types import Fixed

REQUESTS_PER_API = 12  # to each node
DAMAGED_FRAMES = 150
TO_CONTROLLERS = [
    "AddRaftVoter",
    "AllocateProducerIds",
    "AlterPartition",
    "AlterPartitionReassignments",
    "AssignReplicasToDirs",
    "BeginQuorumEpoch",
    "BrokerHeartbeat",
    "BrokerRegistration",
    "ControllerRegistration",
    "DescribeQuorum",
    "ElectLeaders",
    "EndQuorumEpoch",
    "Envelope",
    "Fetch",
    "FetchSnapshot",
    "ListPartitionReassignments",
    "RemoveRaftVoter",
    "UnregisterBroker",
    "UpdateRaftVoter",
    "Vote",
]
TO_BROKERS = [
    "AddRaftVoter",
    "AlterPartitionReassignments",
    "AlterReplicaLogDirs",
    "DescribeLogDirs",
    "DescribeQuorum",
    "ElectLeaders",
    "Fetch",
    "ListOffsets",
    "ListPartitionReassignments",
    "OffsetForLeaderEpoch",
    "RemoveRaftVoter",
    "WriteTxnMarkers",
]
# Their answers may be long in coming.
PARKED = ("Fetch", "AddRaftVoter", "RemoveRaftVoter", "WriteTxnMarkers")


class Stranger(Absurd):
    """Knows the cluster's id and journal, and mostly names them."""

    def __init__(self, rng: random.Random, topic_id: bytes, cluster_id: str) -> None:
        super().__init__(rng, topic_id)
        self._known = {"cluster_id": cluster_id, "topic_name": "__cluster_metadata", "name": "__cluster_metadata"}
        self.topic_ids.append(METADATA_TOPIC_ID)

    def _value(self, field: Any, version: int) -> Any:
        if field.is_list and self.rng.random() < 0.7:
            return [self._one(field, version)]
        return super()._value(field, version)

    def _one(self, field: Any, version: int) -> Any:
        if field.name in self._known and self.rng.random() < 0.8:
            return self._known[field.name]
        if field.name.endswith("epoch") and isinstance(field.type, Fixed) and self.rng.random() < 0.6:
            return self.rng.randrange(12)
        return super()._one(field, version)


def test_absurd_requests_hurt_no_cluster(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    dispatch.load_handlers()

    async def test() -> None:
        async with running(settings(tmp_path, 3, broker_session_timeout_ms="3000")) as nodes:
            topic_id = await create(nodes[1], "absurd")
            absurd = Stranger(random.Random(6), topic_id, nodes[1].metadata.cluster_id)
            frames = await asyncio.to_thread(valid_frames, absurd.rng)
            for node in nodes.values():
                for listener, names in (("CONTROLLER", TO_CONTROLLERS), ("PLAINTEXT", TO_BROKERS)):
                    end = listener_of(node, listener)
                    for name in names:
                        await asyncio.to_thread(storm, f"{end.host}:{end.port}", name, absurd)
                    await asyncio.to_thread(fuzz, (end.host, end.port), frames, absurd.rng)
            await until(lambda: all(is_settled(node, nodes) for node in nodes.values()))
            await create(nodes[2], "after")
            await until(lambda: len({node.metadata.end_offset for node in nodes.values()}) == 1)
            states = [vars_of(node) for node in nodes.values()]
            assert states[0] == states[1] == states[2]

    run(test)
    assert [line for line in (record.getMessage() for record in caplog.records) if is_alarming(line)] == []


def is_settled(node: Node, nodes: dict[int, Node]) -> bool:
    brokers = node.metadata.state.brokers
    return node.member.quorum.leader_id in nodes and all(
        id in brokers
        and not brokers[id].fenced
        and brokers[id].incarnation_id == nodes[id].member.broker.incarnation_id
        for id in nodes
    )


def vars_of(node: Node) -> tuple[Any, ...]:
    state = node.metadata.state
    return state.topics, state.brokers, state.configs, state.features, state.next_producer_id


async def create(node: Node, name: str) -> bytes:
    """A topic on the three brokers, whoever else says that it is one."""
    topic = CreateTopicsRequest.CreatableTopic
    wanted = topic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[topic.CreatableReplicaAssignment(partition_index=0, broker_ids=[1, 2, 3])],
        configs=[],
    )
    answer = await ask(node, CreateTopicsRequest(topics=[wanted], timeout_ms=20_000))
    (created,) = answer.topics
    assert created.error_code == ErrorCode.NONE, created
    return bytes(created.topic_id)


def storm(address: str, name: str, absurd: Absurd) -> None:
    endpoint = next(each for each in dispatch.ENDPOINTS.values() if each.name.removesuffix("Request") == name)
    connection = RawConnection(address, timeout_s=WAIT_S)
    for number in range(REQUESTS_PER_API):
        version = absurd.rng.randint(endpoint.low, endpoint.high)
        request = absurd.request(endpoint.request, version)
        connection.send(request_frame(request, version, number, absurd.rng.choice(["", "absurd", LONG])))
        wait_s = 0.02 if name in PARKED else WAIT_S
        if select.select([connection._socket], [], [], wait_s)[0]:
            try:
                connection.decode(endpoint.key, version, connection.receive(), number)
            except Closed:
                pytest.fail(f"closed by v{version} {request!r:.2000}")
            continue
        assert name in PARKED, f"no answer to v{version} {request!r:.2000}"
        connection.close()
        connection = RawConnection(address, timeout_s=WAIT_S)
    connection.close()


def fuzz(address: tuple[str, int], frames: list[bytes], rng: random.Random) -> None:
    for _ in range(DAMAGED_FRAMES):
        with socket.create_connection(address, timeout=WAIT_S) as sock, suppress(TimeoutError, ConnectionError):
            sock.sendall(damaged(rng.choice(frames), rng))
            sock.settimeout(0.005)
            sock.recv(65_536)
