"""Requests that are forwarded to the active controller keep their principal, and are checked with its rights there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.server.nodes import active, ask, run, running, settings, until

from ottla.model.errors import ErrorCode
from ottla.security.acls import AclOperation, AclPermission, AclResourceType
from ottla.security.principal import ANONYMOUS, Principal
from ottla.server.api.context import ClientConnection, Context, Peer
from ottla.server.api.security.forwarded_principal import principal_bytes, read_principal
from ottla.server.handlers.cluster import envelope
from ottla.server.node import Node
from ottla.server.rooms import Rooms
from ottla.wire.api import response_class
from ottla.wire.compile import decoder
from ottla.wire.frame import request_frame
from ottla.wire.messages.cluster.envelope import EnvelopeRequest
from ottla.wire.messages.security.create_acls import CreateAclsRequest
from ottla.wire.messages.topics.alter_configs import AlterConfigsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest

ALICE = Principal.user("alice")
SECURED = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:ANONYMOUS",
}
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
HOST = bytes([10, 1, 2, 3])


def creation(name: str) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def entry(operation: AclOperation, name: str, host: str = "*") -> CreateAclsRequest:
    acl = CreateAclsRequest.AclCreation(
        resource_type=AclResourceType.TOPIC,
        resource_name=name,
        principal=str(ALICE),
        host=host,
        operation=operation,
        permission_type=AclPermission.ALLOW,
    )
    return CreateAclsRequest(creations=[acl])


async def enveloped(node: Node, request: Any, principal: bytes | None) -> tuple[int, Any]:
    """Send a request in an envelope, as a broker does; return the envelope's error and the answer in it."""
    key, version = type(request).key, type(request).versions.high
    frame = bytes(request_frame(request, version, 7, "x"))[4:]
    sealed = EnvelopeRequest(request_data=frame, request_principal=principal, client_host_address=HOST)
    reply: Any = await ask(node, sealed, "CONTROLLER")
    if reply.error_code:
        return reply.error_code, None
    # correlation id and no tags, then the response
    answer, _ = decoder(response_class(key), version)(memoryview(reply.response_data), 5)
    return 0, answer


@pytest.mark.parametrize("principal", [ALICE, ANONYMOUS, Principal("Group", "zoë", token_authenticated=True)])
def test_a_principal_survives_its_journey(principal: Principal) -> None:
    assert read_principal(principal_bytes(principal)) == principal


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x01\x05User\x02a\x00\x00", b"\x00\x00\x05Us", b"\xff\xff\x00"])
def test_bytes_that_are_no_principal(data: bytes) -> None:
    assert read_principal(data) is None


def test_the_request_in_an_envelope_is_checked_as_its_own_principal(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(tmp_path, 1, **SECURED)) as nodes:
            (node,) = nodes.values()
            assert (await enveloped(node, creation("t"), None))[0] == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
            assert (await enveloped(node, creation("t"), b"\x00"))[0] == ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
            error, answer = await enveloped(node, creation("t"), principal_bytes(ALICE))
            assert (error, answer.topics[0].error_code) == (0, REFUSED)
            # The address of the client behind the broker counts, and not the broker's.
            await ask(node, entry(AclOperation.CREATE, "t", "127.0.0.1"))
            error, answer = await enveloped(node, creation("t"), principal_bytes(ALICE))
            assert (error, answer.topics[0].error_code) == (0, REFUSED)
            await ask(node, entry(AclOperation.CREATE, "t", "10.1.2.3"))
            error, answer = await enveloped(node, creation("t"), principal_bytes(ALICE))
            assert (error, answer.topics[0].error_code) == (0, 0)

    run(test)


def test_an_envelope_needs_cluster_action(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _authenticate(monkeypatch, controllers=True)

    async def test() -> None:
        async with running(settings(tmp_path, 1, **SECURED)) as nodes:
            (node,) = nodes.values()
            error, _ = await enveloped(node, creation("t"), principal_bytes(ANONYMOUS))
            assert error == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    run(test)


def test_every_broker_forwards_the_principal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of the brokers are alice; brokers are ANONYMOUS to controllers, a super user."""
    _authenticate(monkeypatch, controllers=False)

    async def test() -> None:
        async with running(settings(tmp_path, 3, **SECURED)) as nodes:
            leader = active(nodes)
            for node in nodes.values():
                answer: Any = await ask(node, creation("mine"))
                assert answer.topics[0].error_code == REFUSED
            for operation in (AclOperation.CREATE, AclOperation.ALTER_CONFIGS):
                granted: Any = await ask_controller(leader, entry(operation, "mine"))
                assert granted.results[0].error_code == 0
            other = next(node for node in nodes.values() if node is not leader)
            answer = await ask(other, creation("mine"))
            assert answer.topics[0].error_code == 0
            await until(lambda: all(len(node.metadata.state.acls) == 2 for node in nodes.values()))
            for node in nodes.values():
                assert await alter(node, "mine") == 0
                assert await alter(node, "other") == REFUSED

    run(test)


def test_changes_of_settings_are_accepted_in_an_envelope(tmp_path: Path) -> None:
    """Kafka's brokers send them so; the client's rights count, not the broker's."""

    async def test() -> None:
        async with running(settings(tmp_path, 1, **SECURED)) as nodes:
            (node,) = nodes.values()
            await ask(node, creation("mine"))
            for request in (change("mine"), change_all("mine")):
                error, answer = await enveloped(node, request, principal_bytes(ALICE))
                assert (error, answer.responses[0].error_code) == (0, REFUSED)
            # With this right a broker may speak for its clients; a client that has it may not.
            acting = entry(AclOperation.CLUSTER_ACTION, "kafka-cluster")
            acting.creations[0].resource_type = AclResourceType.CLUSTER
            await ask(node, acting)
            for request in (change("mine"), change_all("mine")):
                error, answer = await enveloped(node, request, principal_bytes(ALICE))
                assert (error, answer.responses[0].error_code) == (0, REFUSED)
            await ask(node, entry(AclOperation.ALTER_CONFIGS, "mine", "10.1.2.3"))
            for request in (change("mine"), change_all("mine")):
                error, answer = await enveloped(node, request, principal_bytes(ALICE))
                assert (error, answer.responses[0].error_code) == (0, 0)

    run(test)


def test_a_controller_sees_who_changes_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the broker that was asked: its rights would allow everything."""
    _authenticate(monkeypatch, controllers=False)
    seen: list[str] = []
    decode = envelope.read_principal

    def read(data: bytes) -> Principal | None:
        seen.append(str(decode(data)))
        return decode(data)

    monkeypatch.setattr(envelope, "read_principal", read)

    async def test() -> None:
        async with running(settings(tmp_path, 3, **SECURED)) as nodes:
            leader = active(nodes)
            await ask_controller(leader, entry(AclOperation.ALTER_CONFIGS, "mine"))
            await until(lambda: all(len(node.metadata.state.acls) == 1 for node in nodes.values()))
            await ask(leader, creation("mine"), "CONTROLLER")
            other = next(node for node in nodes.values() if node is not leader)
            await until(lambda: "mine" in other.metadata.state.topics)
            assert await alter(other, "mine") == 0
            assert seen == [str(ALICE)]

    run(test)


def change(name: str) -> IncrementalAlterConfigsRequest:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    setting = resource.AlterableConfig(name="retention.ms", config_operation=0, value="60000")
    return IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=2, resource_name=name, configs=[setting])], validate_only=False
    )


def change_all(name: str) -> AlterConfigsRequest:
    resource = AlterConfigsRequest.Resource
    setting = resource.AlterableConfig(name="retention.ms", value="70000")
    return AlterConfigsRequest(
        resources=[resource(resource_type=2, resource_name=name, configs=[setting])], validate_only=False
    )


async def ask_controller(node: Node, request: CreateAclsRequest) -> Any:
    return await ask(node, request, "CONTROLLER")


async def alter(node: Node, name: str) -> int:
    answer: Any = await ask(node, change(name))
    code: int = answer.responses[0].error_code
    return code


def _authenticate(monkeypatch: pytest.MonkeyPatch, *, controllers: bool) -> None:
    """Have the clients of one kind of listener authenticated as alice."""
    plain = Rooms.new_context

    def new_context(self: Rooms, peer: Peer, client: ClientConnection) -> Context:
        context = plain(self, peer, client)
        if peer.controller == controllers:
            context.principal = ALICE
        return context

    monkeypatch.setattr(Rooms, "new_context", new_context)
