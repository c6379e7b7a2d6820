"""Registrations that are not to be had, or not yet: a broker that nobody registers, clusters of older versions."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.server.nodes import ask, run, running, settings, until

from ottla.client.connection import Address, Connection
from ottla.client.errors import ClientError
from ottla.cluster.snapshot import feature
from ottla.model.errors import ApiError, ErrorCode
from ottla.server.node import Node
from ottla.server.ports.ports import system_ports
from ottla.server.quorum import quorum_member as member
from ottla.wire.messages.cluster.controller_registration import ControllerRegistrationRequest
from ottla.wire.messages.cluster.update_features import UpdateFeaturesRequest
from ottla.wire.messages.topics.metadata import MetadataRequest, MetadataResponse


def test_a_broker_that_nobody_registers_ends_and_says_why(tmp_path: Path) -> None:
    async def test() -> None:
        (values, *_) = settings(tmp_path, 3, initial_broker_registration_timeout_ms="300")
        node = Node(values, system_ports(values))
        try:
            with pytest.raises(ApiError, match=r"broker 1 was not registered within 300 ms .*no controller answers"):
                await node.start()
        finally:
            await node.stop()

    run(test)


def test_controllers_are_not_registered_before_3_7(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "_bootstrap", lambda _: (feature("metadata.version", 14),))

    async def test() -> None:
        (values,) = settings(tmp_path, 1)
        node = Node(values, system_ports(values))
        try:
            await node.start()
            request = ControllerRegistrationRequest(
                controller_id=7, incarnation_id=bytes(16), zk_migration_ready=False, listeners=[], features=[]
            )
            answer = await ask(node, request, "CONTROLLER")
            assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
            assert "too old to support controller registrations" in answer.error_message
            assert not node.metadata.state.controllers
        finally:
            await node.stop()

    run(test)


@pytest.mark.parametrize("count", [1, 3])
def test_a_port_that_the_system_chose_is_registered(count: int, tmp_path: Path) -> None:
    """Other brokers tell it to clients, also those that join a node that was alone."""

    async def test() -> None:
        chosen = [
            {**each, "listeners": "PLAINTEXT://127.0.0.1:0," + each["listeners"].partition(",")[2]}
            for each in settings(tmp_path, count)
        ]
        async with running(chosen) as nodes:
            for node in nodes.values():
                (endpoint,) = node.metadata.state.brokers[node.metadata.node_id].endpoints
                assert (endpoint.host, endpoint.port) == node.addresses[0]

    run(test)


def test_the_first_answer_of_a_cluster_that_starts_names_brokers_and_controller(tmp_path: Path) -> None:
    """As in Kafka, whose brokers let clients in when they are unfenced."""

    async def first_answer(address: Address) -> MetadataResponse:
        while True:
            try:
                client = await Connection.open(address)
            except ClientError:
                await asyncio.sleep(0.001)  # nobody listens yet
                continue
            try:
                return await client.request(MetadataRequest(topics=[]))
            finally:
                client.close()

    async def test() -> None:
        values = settings(tmp_path, 3)
        ports = [int(each["listeners"].partition(",")[0].rpartition(":")[2]) for each in values]
        asking = [asyncio.create_task(first_answer(Address("127.0.0.1", port))) for port in ports]
        async with running(values) as nodes:
            for id, answer in zip(nodes, await asyncio.gather(*asking), strict=True):
                assert id in {broker.node_id for broker in answer.brokers}
                assert answer.controller_id in nodes

    run(test)


@pytest.mark.parametrize("count", [1, 3])
def test_brokers_tell_their_directories_when_the_cluster_can_know_them(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nobody would hear of a disk that fails before the next restart."""
    monkeypatch.setattr(member, "_bootstrap", lambda _: (feature("metadata.version", 14),))
    update = UpdateFeaturesRequest.FeatureUpdateKey(feature="metadata.version", max_version_level=30, upgrade_type=1)

    async def test() -> None:
        async with running(settings(tmp_path, count)) as nodes:
            state = nodes[1].metadata.state
            await until(lambda: [each.fenced for each in state.brokers.values()] == [False] * count)
            assert not any(each.directories or each.cordoned for each in state.brokers.values())
            epochs = {each.id: each.epoch for each in state.brokers.values()}
            answer = await ask(nodes[1], UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update]))
            assert answer.error_code == 0, answer
            await until(lambda: all(each.directories for each in state.brokers.values()))
            told = {each.id: each.directories for each in state.brokers.values()}
            assert told == {id: tuple(node.metadata.directory_ids) for id, node in nodes.items()}
            assert {each.id: each.epoch for each in state.brokers.values()} == epochs
            assert not any(each.fenced for each in state.brokers.values())

    run(test)
