"""What changes the cluster, asked of brokers that are not the controller: one cluster of three nodes for all of it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.server.nodes import active, ask, create, run, running, settings, until

from ottla.client.connection import Address, Connection
from ottla.cluster.commands.create_topics import CreateTopics
from ottla.cluster.commands.delete_topics import DeleteTopics
from ottla.model.errors import ErrorCode
from ottla.model.resources import ResourceType
from ottla.server.loop.later import settled
from ottla.server.node import Node
from ottla.server.quorum.active_controller import ActiveController
from ottla.server.quorum.controller_link import ControllerLink
from ottla.server.quorum.not_controller import NotController
from ottla.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest
from ottla.wire.messages.cluster.update_features import UpdateFeaturesRequest
from ottla.wire.messages.topics.alter_configs import AlterConfigsRequest
from ottla.wire.messages.topics.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.messages.topics.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.topics.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.messages.topics.list_partition_reassignments import ListPartitionReassignmentsRequest

Changed = IncrementalAlterConfigsRequest.AlterConfigsResource
Replaced = AlterConfigsRequest.Resource
Wanted = AlterPartitionReassignmentsRequest.ReassignableTopic
LOGGER = "ottla.cluster"


def test_any_broker_takes_what_the_controller_decides(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(tmp_path, 3)) as nodes:
            asked, other = [node for node in nodes.values() if node is not active(nodes)]
            assert (await create(asked, "t", 2, 1)).error_code == 0
            await _settings_change(asked, other)
            await _partitions_move(asked, nodes)
            await _others(asked, nodes)

    before = logging.getLogger(LOGGER).level
    try:
        run(test)
    finally:
        logging.getLogger(LOGGER).setLevel(before)


def test_requests_that_are_forwarded_count_as_memory_and_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that sends many ahead while no controller answers takes no more memory than one of them."""
    reached: list[str] = []
    answering = asyncio.Event()
    reach = ControllerLink.reach

    async def slow(self: ControllerLink, *parts: Any, name: str, **more: Any) -> Any:
        if name.startswith("IncrementalAlterConfigs"):
            reached.append(name)
            await answering.wait()
        return await reach(self, *parts, name=name, **more)

    async def test() -> None:
        async with running(settings(tmp_path, 3)) as nodes:
            asked = next(node for node in nodes.values() if node is not active(nodes))
            assert (await create(asked, "t", 1, 1)).error_code == 0
            monkeypatch.setattr(ControllerLink, "reach", slow)
            client = await Connection.open(Address(*asked.addresses[0]))
            large = [_changed(ResourceType.TOPIC, "t", "retention.ms", str(number)) for number in range(8)]
            for each in large:
                each.configs.append(Changed.AlterableConfig(name="x" * 32_000, config_operation=0, value="y" * 32_000))
                each.configs *= 16
            answers = asyncio.gather(
                *(
                    client.request(IncrementalAlterConfigsRequest(resources=[each], validate_only=True))
                    for each in large
                )
            )
            await until(lambda: reached)
            memory = asked.connections.memory
            await until(lambda: memory.used_bytes > 500_000)
            assert len(reached) == 1 and memory.used_bytes < 2_000_000
            answering.set()
            for answer in await answers:
                assert [each.error_code for each in answer.responses] == [ErrorCode.INVALID_REQUEST]
            assert len(reached) == len(large)
            client.close()

    run(test)


def test_settings_change_also_while_the_controller_steps_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a moment it takes itself for the active one, and its quorum does not: the client hears nothing of that."""
    lost = [NotController()]
    submit = ActiveController.submit

    def unsure(self: ActiveController, command: Any) -> Any:
        return settled(lost.pop()) if lost else submit(self, command)

    async def test() -> None:
        async with running(settings(tmp_path, 1)) as nodes:
            assert (await create(nodes[1], "t", 1, 1)).error_code == 0
            monkeypatch.setattr(ActiveController, "submit", unsure)
            change = _changed(ResourceType.TOPIC, "t", "retention.ms", "77")
            answer = await ask(nodes[1], IncrementalAlterConfigsRequest(resources=[change], validate_only=False))
            assert [each.error_code for each in answer.responses] == [ErrorCode.NONE] and not lost

    run(test)


@pytest.mark.parametrize("asks_controller", [True, False])
def test_what_was_decided_stays_so_when_the_controller_is_lost_in_the_middle(
    asks_controller: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request for very many topics is decided in portions: the next controller gets only those that are left."""
    commands: list[Any] = []
    submit = ActiveController.submit

    def unsure(self: ActiveController, command: Any) -> Any:
        if not isinstance(command, CreateTopics | DeleteTopics):
            return submit(self, command)
        commands.append(command)
        return settled(NotController()) if len(commands) == 2 else submit(self, command)

    async def test() -> None:
        async with running(settings(tmp_path, 3)) as nodes:
            asked = next(node for node in nodes.values() if (node is active(nodes)) == asks_controller)
            names = [f"t{number}" for number in range(100)]
            topics = [
                CreateTopicsRequest.CreatableTopic(
                    name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
                )
                for name in names
            ]
            with monkeypatch.context() as patch:
                patch.setattr(ActiveController, "submit", unsure)
                created = await ask(asked, CreateTopicsRequest(topics=topics, timeout_ms=30_000))
            assert [(each.name, each.error_code) for each in created.topics] == [(name, 0) for name in names]
            assert len(commands) > 4
            commands.clear()
            doomed = [DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=bytes(16)) for name in names]
            with monkeypatch.context() as patch:
                patch.setattr(ActiveController, "submit", unsure)
                deleted = await ask(asked, DeleteTopicsRequest(topics=doomed, timeout_ms=30_000))
            assert [(each.name, each.error_code) for each in deleted.responses] == [(name, 0) for name in names]
            assert len(commands) > 4

    run(test)


def _changed(type: int, name: str, key: str, value: str) -> Changed:
    setting = Changed.AlterableConfig(name=key, config_operation=0, value=value)
    return Changed(resource_type=type, resource_name=name, configs=[setting])


async def _settings_change(asked: Node, other: Node) -> None:
    """A broker judges what is its own, the controller the rest; the answers stand in the order of the questions."""
    me, you = str(asked.metadata.node_id), str(other.metadata.node_id)
    resources = [
        _changed(ResourceType.TOPIC, "t", "retention.ms", "77"),
        _changed(ResourceType.BROKER, you, "log.retention.ms", "5"),
        _changed(ResourceType.BROKER_LOGGER, me, LOGGER, "ERROR"),
        _changed(ResourceType.TOPIC, "nope", "retention.ms", "77"),
        _changed(ResourceType.BROKER, me, "log.retention.ms", "6"),
    ]
    answer = await ask(asked, IncrementalAlterConfigsRequest(resources=resources, validate_only=False))
    assert [(each.resource_name, each.error_code) for each in answer.responses] == [
        ("t", ErrorCode.NONE),
        (you, ErrorCode.INVALID_REQUEST),
        (me, ErrorCode.NONE),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (me, ErrorCode.NONE),
    ]
    assert answer.responses[1].error_message == f"Unexpected broker id, expected {me}, but received {you}"
    assert logging.getLogger(LOGGER).level == logging.ERROR
    for node in (asked, other):
        state = node.metadata.state
        await until(lambda state=state: state.config(ResourceType.TOPIC, "t") == {"retention.ms": "77"})
        await until(lambda state=state: state.config(ResourceType.BROKER, me) == {"log.retention.ms": "6"})
        assert state.config(ResourceType.BROKER, you) == {}
    setting = Replaced.AlterableConfig(name="segment.ms", value="9999")
    resource = Replaced(resource_type=ResourceType.TOPIC, resource_name="t", configs=[setting])
    answer = await ask(asked, AlterConfigsRequest(resources=[resource], validate_only=False))
    assert [each.error_code for each in answer.responses] == [ErrorCode.NONE]
    await until(lambda: asked.metadata.state.config(ResourceType.TOPIC, "t") == {"segment.ms": "9999"})


async def _partitions_move(asked: Node, nodes: dict[int, Node]) -> None:
    state = asked.metadata.state
    await until(lambda: "t" in state.topics)
    (first,) = state.topics["t"].partitions[0].replicas
    target = next(id for id in nodes if id != first)
    assert await _move(asked, 0, [target]) == (ErrorCode.NONE, None)
    assert await _move(asked, 7, [target]) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "Unable to find partition t:7.",
    )

    def arrived() -> bool:
        found = state.topics["t"].partitions[0]
        return (found.replicas, found.isr, found.leader, found.moving) == ((target,), (target,), target, False)

    await until(arrived)
    listed = await ask(asked, ListPartitionReassignmentsRequest(topics=None))
    assert (listed.error_code, listed.topics) == (ErrorCode.NONE, [])
    assert (await _move(asked, 0, None))[0] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


async def _move(asked: Node, index: int, replicas: list[int] | None) -> tuple[int, str | None]:
    partition = Wanted.ReassignablePartition(partition_index=index, replicas=replicas)
    topics = [Wanted(name="t", partitions=[partition])]
    answer = await ask(asked, AlterPartitionReassignmentsRequest(topics=topics))
    ((result,),) = [each.partitions for each in answer.responses]
    return result.error_code, result.error_message


async def _others(asked: Node, nodes: dict[int, Node]) -> None:
    everything = ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0])
    answer: Any = await ask(asked, ElectLeadersRequest(election_type=0, topic_partitions=[everything]))
    ((result,),) = [each.partition_result for each in answer.replica_election_results]
    assert result.error_code == ErrorCode.ELECTION_NOT_NEEDED
    answer = await ask(asked, UnregisterBrokerRequest(broker_id=77))
    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    growth = CreatePartitionsRequest.Topic(name="t", count=3, assignments=None)
    answer = await ask(asked, CreatePartitionsRequest(topics=[growth], timeout_ms=10_000, validate_only=False))
    assert [each.error_code for each in answer.results] == [ErrorCode.NONE]
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)
    answer = await ask(asked, UpdateFeaturesRequest(feature_updates=[update]))
    assert answer.error_code == ErrorCode.NONE
    for node in nodes.values():
        await until(lambda node=node: len(node.metadata.state.topics["t"].partitions) == 3)
        await until(lambda node=node: "share.version" not in node.metadata.state.features)
    doomed = DeleteTopicsRequest.DeleteTopicState(name="t", topic_id=bytes(16))
    answer = await ask(asked, DeleteTopicsRequest(topics=[doomed], timeout_ms=10_000))
    assert [each.error_code for each in answer.responses] == [ErrorCode.NONE]
    for node in nodes.values():
        await until(lambda node=node: "t" not in node.metadata.state.topics)
