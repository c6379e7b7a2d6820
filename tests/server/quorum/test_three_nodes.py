"""Three nodes: a quorum forms, brokers join, requests find the controller, and the end of a node is no end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.nodes import active, alter, ask, create, listener_of, run, running, settings, until
from tests.server.talk import BROKER, TOPIC, eventually
from tests.support.processes.clusters import OttlaCluster
from tests.support.waiting import WAIT_S

from ottla.client.connection import Address
from ottla.client.errors import ConnectionLost, UnsupportedApi
from ottla.cluster.commands.create_topics import CreateTopics
from ottla.cluster.journal import Item
from ottla.cluster.snapshot import snapshot
from ottla.machine.stepped import in_one_go
from ottla.model.errors import ErrorCode
from ottla.model.limits import REQUEST_ELEMENTS_MAX
from ottla.security.principal import ANONYMOUS
from ottla.server.api.security.forwarded_principal import principal_bytes
from ottla.server.loop.later import Later
from ottla.server.node import Node
from ottla.server.ports.ports import system_ports
from ottla.server.storage.partitions import Partitions
from ottla.server.storage.recovery import recover
from ottla.server.storage.replica_changes import ReplicaChanges
from ottla.wire.frame import request_frame
from ottla.wire.journal.cluster_metadata import ConfigRecord
from ottla.wire.messages.cluster.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.cluster.envelope import EnvelopeRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.topics.metadata import MetadataRequest


def test_a_quorum_forms_and_any_broker_takes_requests(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(tmp_path, 3)) as nodes:
            assert len({node.metadata.cluster_id for node in nodes.values()}) == 1
            for node in nodes.values():
                await until(lambda node=node: sorted(node.metadata.state.controllers) == [1, 2, 3])
                await until(
                    lambda node=node: [broker.fenced for broker in node.metadata.state.brokers.values()] == [False] * 3
                )
            for number, node in nodes.items():
                made = await create(node, f"t{number}")
                assert made.error_code == 0, made
                assert (made.num_partitions, made.replication_factor) == (3, 3)
            twice = await create(next(node for node in nodes.values() if node is not active(nodes)), "t1")
            assert twice.error_code == 36 and "already exists" in twice.error_message
            for node in nodes.values():
                await until(lambda node=node: sorted(node.metadata.state.topics) == ["t1", "t2", "t3"])
                answer = await ask(
                    node, MetadataRequest(topics=[MetadataRequest.Topic(name="t1")], allow_auto_topic_creation=False)
                )
                assert sorted(broker.node_id for broker in answer.brokers) == [1, 2, 3]
                assert answer.controller_id in nodes
                (topic,) = answer.topics
                assert sorted(partition.leader_id for partition in topic.partitions) == [1, 2, 3]
                assert all(sorted(partition.isr_nodes) == [1, 2, 3] for partition in topic.partitions)
            described = await ask(nodes[1], DescribeClusterRequest(include_cluster_authorized_operations=False))
            assert len(described.brokers) == 3 and described.cluster_id == nodes[1].metadata.cluster_id

    run(test)


def test_of_five_controllers_two_may_go(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(tmp_path, 5)) as nodes:
            for node in nodes.values():
                await until(lambda node=node: sorted(node.metadata.state.controllers) == [1, 2, 3, 4, 5])
            for number in range(2):
                await nodes.pop(active(nodes).metadata.node_id).stop()
                await until(lambda: any(node.member.controller.active for node in nodes.values()))
                made = await create(next(iter(nodes.values())), f"t{number}", 2, 1)
                assert made.error_code == 0, made
            for node in nodes.values():
                await until(lambda node=node: sorted(node.metadata.state.topics) == ["t0", "t1"])

    run(test)


def test_a_node_that_stops_in_order_hands_everything_over(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(tmp_path, 3)) as nodes:
            assert (await create(nodes[1], "t", 6)).error_code == 0
            leaving = active(nodes)
            number = leaving.metadata.node_id
            await until(lambda: "t" in leaving.metadata.state.topics)
            await leaving.stop()
            others = {id: node for id, node in nodes.items() if id != number}
            for node in others.values():
                await until(lambda node=node: node.metadata.state.brokers[number].fenced)
                partitions = node.metadata.state.topics["t"].partitions
                assert {partition.leader for partition in partitions} == set(others)
                assert all(number not in partition.isr for partition in partitions)
            await until(lambda: any(node.member.controller.active for node in others.values()))
            assert (await create(next(iter(others.values())), "u", 1)).error_code == 0
            # It comes back, and is told what it missed.
            again = nodes[number] = Node(leaving.values, system_ports(leaving.values))
            await again.start()
            assert sorted(again.metadata.state.topics) == ["t", "u"]
            assert not again.metadata.state.brokers[number].fenced
            await until(
                lambda: all(len(each.isr) == 3 for each in again.metadata.state.topics["t"].partitions),
            )

    run(test)


def test_nodes_may_have_one_role_each(tmp_path: Path) -> None:
    """One controller, two brokers that know it by `controller.quorum.voters`."""
    values = settings(tmp_path, 3)
    voters = values[0]["controller.quorum.voters"].split(",")[0]
    for each in values:
        each["controller.quorum.voters"] = voters
    for each, role, kept in zip(values, ("controller", "broker", "broker"), (1, 0, 0), strict=True):
        each["process.roles"] = role
        each["listeners"] = each["listeners"].split(",")[kept]

    async def test() -> None:
        async with running(values) as nodes:
            assert nodes[1].member.controller.active
            made = await create(nodes[3], "t", 4, 2)
            assert made.error_code == 0, made
            await until(lambda: "t" in nodes[2].metadata.state.topics)
            answer = await ask(nodes[2], MetadataRequest(topics=None, allow_auto_topic_creation=False))
            assert sorted(broker.node_id for broker in answer.brokers) == [2, 3]
            assert {partition.leader_id for partition in answer.topics[0].partitions} == {2, 3}
            # A topic that nobody made is made when it is asked for, by way of the controller.
            wanted = MetadataRequest(topics=[MetadataRequest.Topic(name="auto")], allow_auto_topic_creation=True)
            answer = await ask(nodes[3], wanted)
            assert [(topic.name, topic.error_code) for topic in answer.topics] == [("auto", 3)], "not yet"
            await until(lambda: "auto" in nodes[3].metadata.state.topics)
            answer = await ask(nodes[3], wanted)
            assert [(topic.name, topic.error_code) for topic in answer.topics] == [("auto", 0)]
            await nodes[3].stop()
            await until(lambda: nodes[2].metadata.state.brokers[3].fenced)
            assert {each.leader for each in nodes[2].metadata.state.topics["t"].partitions} == {2}

    run(test)


def test_the_end_of_a_process_is_noticed_at_once(tmp_path: Path) -> None:
    """Three processes, of which the active controller's is killed. Its session would last longer than anybody waits."""
    cluster = OttlaCluster(tmp_path, properties={"broker.session.timeout.ms": "3600000"})
    try:
        cluster.start()
        _make_topic(cluster)
        gone = cluster.controller()
        cluster.kill(gone)
        eventually(lambda: not {gone, -1} & {cluster.leader_of("t", index) for index in range(6)}, "others lead")
        eventually(lambda: cluster.controller() not in (gone, -1), "there is another controller")
        cluster.start_node(gone)
        eventually(lambda: _isr_is_full(cluster), "it has caught up")
    finally:
        cluster.stop()


def test_a_cluster_that_lost_its_power_waits_for_no_session(tmp_path: Path) -> None:
    """Its journal says that all brokers live; their next lives come while a new controller still presumes so."""
    cluster = OttlaCluster(tmp_path, properties={"broker.session.timeout.ms": "3600000"})
    try:
        cluster.start()
        _make_topic(cluster)
        for id in cluster.ids:
            cluster.pause(id)  # so that nobody hears of the end of another
        for id in cluster.ids:
            cluster.kill(id)
        cluster.start()
        eventually(lambda: _isr_is_full(cluster), "all are back")
    finally:
        cluster.stop()


def _make_topic(cluster: OttlaCluster) -> None:
    topic = CreateTopicsRequest.CreatableTopic(
        name="t", num_partitions=6, replication_factor=3, assignments=[], configs=[]
    )
    made = cluster.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    assert made.topics[0].error_code == 0, made


def _isr_is_full(cluster: OttlaCluster) -> bool:
    request = MetadataRequest(topics=[MetadataRequest.Topic(name="t")], allow_auto_topic_creation=False)
    answer = cluster.ask(request, 12)
    return all(len(partition.isr_nodes) == 3 for partition in answer.topics[0].partitions)


def test_without_a_majority_requests_are_refused_in_time(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(tmp_path, 3)) as nodes:
            for number in (2, 3):
                await nodes[number].stop()
            topic = CreateTopicsRequest.CreatableTopic(
                name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[]
            )
            answer = await ask(nodes[1], CreateTopicsRequest(topics=[topic], timeout_ms=200))
            (refused,) = answer.topics
            assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
            # What is known is still told.
            answer = await ask(nodes[1], MetadataRequest(topics=None, allow_auto_topic_creation=False))
            assert 1 in [broker.node_id for broker in answer.brokers]

    run(test)


def test_controllers_answer_on_their_own_listener(tmp_path: Path) -> None:
    """And a stranger's envelope, or what no broker forwards, is refused."""

    async def test() -> None:
        async with running(settings(tmp_path, 3)) as nodes:
            leader = active(nodes)
            await until(lambda: len(leader.metadata.state.controllers) == 3)
            other = next(node for node in nodes.values() if node is not leader)
            want = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=2)
            described = await ask(leader, want, "CONTROLLER")
            assert described.controller_id == leader.metadata.node_id
            assert sorted(each.broker_id for each in described.brokers) == [1, 2, 3]
            ports = {listener_of(node, "CONTROLLER").port for node in nodes.values()}
            assert {each.port for each in described.brokers} == ports
            mismatched = await ask(leader, want)
            assert mismatched.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
            inner = request_frame(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12, 7, "x")
            sealed = EnvelopeRequest(
                request_data=bytes(inner)[4:],
                request_principal=principal_bytes(ANONYMOUS),
                client_host_address=bytes([127, 0, 0, 1]),
            )
            assert (await ask(leader, sealed, "CONTROLLER")).error_code == ErrorCode.INVALID_REQUEST
            assert (await ask(other, sealed, "CONTROLLER")).error_code == ErrorCode.NOT_CONTROLLER
            # What nobody looks at costs its sender the connection, and nobody else.
            many = [ElectLeadersRequest.TopicPartitions(topic="", partitions=[])] * (REQUEST_ELEMENTS_MAX + 1)
            absurd = ElectLeadersRequest(election_type=0, topic_partitions=many, timeout_ms=30_000)
            lost: list[int] = []
            end = listener_of(leader, "CONTROLLER")
            other.rooms.peers.on_lost(Address(end.host, end.port), lambda: lost.append(1))
            with pytest.raises(ConnectionLost):
                await ask(other, absurd)
            assert not lost
            with pytest.raises(UnsupportedApi):
                await ask(leader, sealed)
            with pytest.raises(UnsupportedApi):
                await ask(leader, MetadataRequest(topics=None, allow_auto_topic_creation=False), "CONTROLLER")

    run(test)


def test_a_snapshot_that_comes_during_recovery_waits_for_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recovering, go_on = threading.Event(), threading.Event()
    loading = ReplicaChanges.loading

    def slowly(partitions: Partitions, *how: Any, **more: Any) -> None:
        if partitions.node_id == 3:
            recovering.set()
            assert go_on.wait(WAIT_S)
            recovering.clear()
        recover(partitions, *how, **more)

    def alone(self: ReplicaChanges, state: Any) -> Iterator[None]:
        assert self._node_id != 3 or not recovering.is_set(), "two threads are at it"
        return loading(self, state)

    monkeypatch.setattr("ottla.server.composed_node.recover", slowly)
    monkeypatch.setattr(ReplicaChanges, "loading", alone)

    async def test() -> None:
        *two, third = settings(tmp_path, 3)
        late = Node(third, system_ports(third))
        starting = asyncio.create_task(late.start())  # all three, or fresh voters elect nobody
        async with running(two) as nodes:
            try:
                await asyncio.to_thread(recovering.wait, WAIT_S)
                await create(nodes[1], "late", replicas=2)
                await until(lambda: late.metadata.end_offset == nodes[1].metadata.end_offset)
                host = late.metadata
                items = [Item(at, 1, 0, entry) for at, entry in enumerate(snapshot(host.state.copy()))]
                in_one_go(host.loading_snapshot(items, host.end_offset, host.last_epoch))
                go_on.set()
                await starting
                assert late.partitions.topic_id("late") == host.state.topics["late"].id
            finally:
                go_on.set()
                await late.stop()

    run(test)


def test_settings_come_with_the_start_and_with_snapshots(tmp_path: Path) -> None:
    """Not only with the change that is heard of: a broker that was away, or behind, must not go on without a quota."""

    def settings_of(quota: int, connections: int, retention_ms: int) -> list[tuple[int, str, str, str]]:
        return [
            (BROKER, "", "leader.replication.throttled.rate", str(quota)),
            (BROKER, "", "max.connections.per.ip", str(connections)),
            (TOPIC, "set", "retention.ms", str(retention_ms)),
        ]

    def limits_of(node: Node) -> tuple[Any, Any, Any]:
        replication = node.rooms.replication
        assert replication is not None
        partition = node.partitions.find("set", 0)
        return replication.quotas.leader.limit, node.connections._max_per_address, partition.log.config.retention_ms

    async def test() -> None:
        values = settings(tmp_path, 3)
        async with running(values) as nodes:
            assert (await create(nodes[1], "set", 1)).error_code == 0
            await alter(nodes[1], settings_of(1000, 99, 7))
            await nodes[2].stop()
            nodes[2] = Node(values[1], system_ports(values[1]))
            await nodes[2].start()
            assert limits_of(nodes[2]) == (1000, 99, 7)
            host = nodes[2].metadata
            behind = host.state.copy()
            for kind, name, key, value in settings_of(2000, 98, 8):
                behind.apply(ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value))
            items = [Item(at, 1, 0, entry) for at, entry in enumerate(snapshot(behind))]
            in_one_go(host.loading_snapshot(items, host.end_offset, host.last_epoch))
            assert limits_of(nodes[2]) == (2000, 98, 8)

    run(test)


def test_a_client_in_a_hurry_takes_the_controllers_answer_from_nobody_else(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(tmp_path, 3)) as nodes:
            leader = active(nodes)
            other = next(node for node in nodes.values() if node is not leader)
            await create(other, "before")  # so that there is a connection
            lost: list[int] = []
            end = listener_of(leader, "CONTROLLER")
            other.rooms.peers.on_lost(Address(end.host, end.port), lambda: lost.append(1))
            controller = leader.member.controller
            submit = controller.submit

            def never_made(command: Any) -> Later[Any]:
                return Later() if isinstance(command, CreateTopics) else submit(command)

            controller.submit = never_made  # type: ignore[method-assign]
            topic = CreateTopicsRequest.CreatableTopic(
                name="hurried", num_partitions=1, replication_factor=3, assignments=[], configs=[]
            )
            answer = await ask(other, CreateTopicsRequest(topics=[topic], timeout_ms=1))
            assert answer.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
            assert not lost

    run(test)
