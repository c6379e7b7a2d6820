"""`early.start.listeners`: which listeners of controllers open before the ACLs are loaded, and what they serve then."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.server.nodes import listener_of, run, running, settings, until
from tests.server.security.secured import log_in, plain_jaas
from tests.support.requests.acls import STANDARD_AUTHORIZER
from tests.support.requests.raw import RawConnection

from ottla.model.errors import ErrorCode
from ottla.server.node import Node
from ottla.server.ports.ports import system_ports
from ottla.wire.messages.quorum.describe_quorum import DescribeQuorumRequest

TOPIC = DescribeQuorumRequest.TopicData
ASKED = DescribeQuorumRequest(
    topics=[TOPIC(topic_name="__cluster_metadata", partitions=[TOPIC.PartitionData(partition_index=0)])]
)
# Clients of controllers log in. With these rules alice may ask whatever she likes, once they are loaded.
GUARDED = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:admin;User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": plain_jaas(),
}


async def refused(node: Node, user: str) -> bool:
    """Whether a client of the controllers' listener has no right to ask; the node runs in this thread."""
    address = listener_of(node, "CONTROLLER")

    def ask() -> bool:
        with log_in(RawConnection(f"{address.host}:{address.port}"), user) as connection:
            answer: Any = connection.call(ASKED, 2)
        return bool(answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    return await asyncio.to_thread(ask)


def is_open(node: Node, name: str = "CONTROLLER") -> bool:
    return node.composed is not None and listener_of(node, name)[1:] in node.composed.addresses


def test_by_default_they_open_first_and_serve_super_users(tmp_path: Path) -> None:
    first, second = [each | GUARDED for each in settings(tmp_path, 2)]

    async def test() -> None:
        node, other = Node(first, system_ports(first)), Node(second, system_ports(second))
        starting = asyncio.create_task(node.start())
        try:
            await until(lambda: is_open(node))
            assert await refused(node, "alice")
            assert not await refused(node, "admin")
            assert not is_open(node, "PLAINTEXT")
            await other.start()
            await starting
            assert not await refused(node, "alice"), "the ACLs are loaded"
        finally:
            await asyncio.gather(node.stop(), other.stop())

    run(test)


def test_one_that_is_left_out_waits_for_the_acls(tmp_path: Path) -> None:
    """It opens when its node has read the metadata from others, which are open."""
    values = [each | GUARDED for each in settings(tmp_path, 3)]
    late = values[0] | {"early.start.listeners": ""}

    async def test() -> None:
        async with running(values):
            pass  # the first start of a cluster needs all of its controllers
        node = Node(late, system_ports(late))
        starting = asyncio.create_task(node.start())
        try:
            await until(lambda: node.composed is not None and node.member.quorum._is_serving)
            assert not is_open(node), "it takes part in the quorum, and the others are down"
            async with running(values[1:]):
                await starting
                assert is_open(node)
                assert not await refused(node, "alice")
        finally:
            await node.stop()

    run(test)


def test_without_an_authorizer_nothing_waits(tmp_path: Path) -> None:
    plain = {name: value for name, value in GUARDED.items() if name != "authorizer.class.name"}
    first, _ = [each | plain | {"early.start.listeners": "PLAINTEXT"} for each in settings(tmp_path, 2)]

    async def test() -> None:
        node = Node(first, system_ports(first))
        starting = asyncio.create_task(node.start())
        try:
            await until(lambda: is_open(node))
            assert not is_open(node, "PLAINTEXT"), "listeners for clients open last, named or not"
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await node.stop()

    run(test)
