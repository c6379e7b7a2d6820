"""Every API with very many elements on a node with an authorizer: the guard does not hold up others either."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.stalls.measuring.crowds import TOPIC, Crowd
from tests.stalls.measuring.measure import BUDGET_MS, MeasuredNode, best_of
from tests.stalls.test_apis import CASES
from tests.support.ports import free_ports
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import WAIT_S

from ottla.security.acls import AclOperation, AclPermission, AclResourceType, PatternType
from ottla.wire.api import API_NAMES, request_class
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.security.create_acls import CreateAclsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest

COUNT = 6_000
ADMIN, CLIENT = "127.0.0.1", "127.0.0.2"
# Only the newest version, and only what clients ask.
NEWEST = [case for case in CASES if not case.values[3]]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredNode]:
    client, controller = free_ports(2)
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with MeasuredNode(tmp_path_factory.mktemp("node"), settings) as node:
        with node.connect() as connection:
            connection.call(CreateAclsRequest(creations=list(entries())), 3)
            topic = CreateTopicsRequest.CreatableTopic(
                name=TOPIC, num_partitions=100, replication_factor=1, assignments=[], configs=[]
            )
            connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
            for kind in (0, 1):
                connection.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=["crowd"]), 4)
        yield node


def entries() -> Iterator[CreateAclsRequest.AclCreation]:
    """The administrator may do everything; the client has rights by prefixes of every length, which are the slowest."""
    kinds = (AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.TRANSACTIONAL_ID)
    for kind, name in ((AclResourceType.CLUSTER, "kafka-cluster"), *((kind, "*") for kind in kinds)):
        yield entry(kind, name, PatternType.LITERAL, ADMIN)
    for kind in kinds:
        for length in range(1, 20):
            yield entry(kind, "big-4000-and-more-letters"[:length], PatternType.PREFIXED, CLIENT)


def entry(kind: AclResourceType, name: str, pattern: PatternType, host: str) -> CreateAclsRequest.AclCreation:
    return CreateAclsRequest.AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal="User:ANONYMOUS",
        host=host,
        operation=AclOperation.ALL,
        permission_type=AclPermission.ALLOW,
    )


@pytest.mark.parametrize("source", [ADMIN, CLIENT])
@pytest.mark.parametrize(("key", "version", "path", "controllers"), NEWEST)
def test_a_crowd_holds_up_nobody(
    node: MeasuredNode, key: int, version: int, path: tuple[str, ...], controllers: bool, source: str
) -> None:
    topic = node.node.metadata.state.topics.get(TOPIC)
    topic_id = topic.id if topic is not None else bytes(16)
    crowd = Crowd(request_class(key), version, path, COUNT, topic_id)
    if hasattr(crowd.request, "allow_auto_topic_creation"):
        crowd.request.allow_auto_topic_creation = False
    if hasattr(crowd.request, "max_wait_ms"):
        crowd.request.max_wait_ms = 0
    host, port = node.node.addresses[0]

    def ask() -> None:
        with RawConnection(f"{host}:{port}", timeout_s=WAIT_S, source=source) as connection, suppress(Closed):
            connection.call(crowd.request, version)

    worst = best_of(lambda: node.cost(ask))
    assert worst.cpu_ms <= BUDGET_MS, f"{API_NAMES[key]}: {worst}"
