"""Every served API in every version: refused without rights, in its own form; allowed with what it declares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.api.guard.granted import Granted, Grants
from tests.support.ports import free_ports
from tests.support.requests.one_of_each import TOPIC, one_of_each
from tests.support.requests.raw import RawConnection
from tests.support.requests.refusals import EVERYBODY, OPEN, REFUSALS, SILENT, codes

from ottla.model.ids import NO_ID
from ottla.security.acls import AclOperation
from ottla.security.audit_event import CHANGING_OPERATIONS
from ottla.server.api import dispatch
from ottla.server.api.api_table import SERVED, SERVED_TO_CONTROLLERS
from ottla.server.api.changes.names import shown
from ottla.server.api.context import Context, Peer
from ottla.server.api.guard.guarded import guarded
from ottla.server.api.needs import NOTHING, Needs, rights_of
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.api import API_NAMES, request_class
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
# Only a token of somebody else needs a right, and clients of a plaintext listener get no token at all.
HARMLESS = {("CreateDelegationToken", version) for version in (1, 2, 3)}
# With all rights these would change the quorum, remove the only broker, or wait for others.
DISRUPTIVE = {
    "Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "UpdateRaftVoter", "AddRaftVoter", "RemoveRaftVoter",
    "FetchSnapshot", "UnregisterBroker", "BrokerRegistration", "BrokerHeartbeat", "ControllerRegistration",
    "UpdateFeatures", "DeleteTopics", "AlterPartition", "AssignReplicasToDirs", "SyncGroup", "Envelope",
}  # fmt: skip
CASES = [
    pytest.param(key, version, controllers, id=f"{API_NAMES[key]}-v{version}{'-controller' if controllers else ''}")
    for controllers, served in ((False, SERVED), (True, SERVED_TO_CONTROLLERS))
    for key, (low, high) in served.items()
    for version in range(low, high + 1)
]

# A fetch of the metadata waits for changes.
HARMLESS_CASES = [
    case
    for case in CASES
    if (name := API_NAMES[case.values[0]]) not in DISRUPTIVE and not (name == "Fetch" and case.values[2])  # type: ignore[index]
]


@pytest.fixture(scope="module")
def grants() -> Grants:
    return Grants()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, grants: Grants) -> Iterator[EmbeddedBroker]:
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
        "authorizer.class.name": STANDARD,
        "super.users": "User:ANONYMOUS",
    }
    broker = EmbeddedBroker(tmp_path_factory.mktemp("walk"), settings).start()
    assert broker.node is not None
    with RawConnection(broker.bootstrap) as connection:
        topic = CreateTopicsRequest.CreatableTopic(
            name=TOPIC, num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        created: Any = connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 7)
        assert created.topics[0].error_code == 0
        for kind in (0, 1):
            connection.call(FindCoordinatorRequest(key="x", key_type=kind), 3)
    authorization = broker.node.rooms.security.authorization
    authorization._asked = authorization._silent = grants  # in place of those of the metadata
    yield broker
    broker.stop()


def ask(broker: EmbeddedBroker, key: int, version: int, controllers: bool) -> Any:
    assert broker.node is not None
    host, port = broker.node.addresses[1 if controllers else 0]
    with RawConnection(f"{host}:{port}") as connection:
        return connection.call(request_of(broker, key, version), version)


def request_of(broker: EmbeddedBroker, key: int, version: int) -> Any:
    assert broker.node is not None
    # These versions of Metadata have a field for the id, but may not use it.
    has_id = not (API_NAMES[key] == "Metadata" and version < 12)
    topic_id = broker.node.metadata.state.topics[TOPIC].id if has_id else NO_ID
    return one_of_each(request_class(key), version, topic_id)


def declared(needs: Needs, controllers: bool) -> set[Granted]:
    if needs.on_controllers is not None:
        rights = needs.on_controllers if controllers else needs.rights
        needs = needs._replace(rights=rights, on_controllers=None)
    return set(rights_of(needs))


def test_every_api_declares_its_needs() -> None:
    dispatch.load_handlers()
    assert set(dispatch.ENDPOINTS) == {*SERVED, *SERVED_TO_CONTROLLERS}
    without = {
        endpoint.name
        for endpoint in dispatch.ENDPOINTS.values()
        if endpoint.needs._replace(changes=None, refuses=()) == NOTHING
    }
    assert without == EVERYBODY


# What these do is not done to the cluster but with records, or by a transaction with its own partitions.
OF_TRANSACTIONS = {"AddPartitionsToTxn", "AddOffsetsToTxn"}
VERBS = [
    "Create",
    "Delete",
    "Alter",
    "IncrementalAlter",
    "Update",
    "Add",
    "Remove",
    "Renew",
    "Expire",
    "Elect",
    "Unregister",
    "OffsetDelete",
]


def test_every_change_is_declared_for_the_audit_log() -> None:
    dispatch.load_handlers()
    for endpoint in dispatch.ENDPOINTS.values():
        needs, name = endpoint.needs, endpoint.name
        operations = {operation for operation, _ in rights_of(needs)}
        is_of_clients = operations != {AclOperation.CLUSTER_ACTION} and name not in OF_TRANSACTIONS
        if operations & CHANGING_OPERATIONS or (name.startswith(tuple(VERBS)) and is_of_clients):
            assert (needs.changes is None) != (not needs.unnoted), f"{name} says what it changes, or why it does not"
        else:
            assert needs.changes is None, name
            assert not needs.unnoted, name


def test_what_requests_change_can_be_said_of_every_version() -> None:
    dispatch.load_handlers()
    for key, endpoint in dispatch.ENDPOINTS.items():
        for version in range(endpoint.low, endpoint.high + 1) if endpoint.needs.changes else ():
            assert shown(endpoint.needs.changes(one_of_each(request_class(key), version, NO_ID))), endpoint.name


def test_an_api_cannot_be_registered_without_its_needs() -> None:
    with pytest.raises(TypeError, match="needs"):
        dispatch.handles(CreateTopicsRequest)  # type: ignore[call-overload]


@pytest.mark.parametrize(("key", "version", "controllers"), CASES)
def test_refused_without_rights(
    broker: EmbeddedBroker, grants: Grants, key: int, version: int, controllers: bool
) -> None:
    grants.grant()
    found = set(codes(ask(broker, key, version, controllers), version))
    name = API_NAMES[key]
    endpoint = dispatch.ENDPOINTS[key]
    assert grants.asked or name in OPEN or (name, version) in HARMLESS
    assert grants.asked <= declared(endpoint.needs, controllers), "it asked for what it does not declare"
    if (name in OPEN and not (controllers and name == "DescribeCluster")) or (name, version) in SILENT | HARMLESS:
        assert not found & REFUSALS
    else:
        assert found & REFUSALS


@pytest.mark.parametrize(("key", "version", "controllers"), HARMLESS_CASES)
def test_allowed_with_the_declared_rights(
    broker: EmbeddedBroker, grants: Grants, key: int, version: int, controllers: bool
) -> None:
    grants.grant(*declared(dispatch.ENDPOINTS[key].needs, controllers))
    assert not set(codes(ask(broker, key, version, controllers), version)) & REFUSALS


@pytest.mark.parametrize(("key", "version", "controllers"), CASES)
def test_the_handler_gets_what_is_allowed_and_nothing_else(
    broker: EmbeddedBroker, grants: Grants, key: int, version: int, controllers: bool
) -> None:
    """The guard by itself, so that APIs can be tried that would change the cluster."""
    assert broker.node is not None
    dispatch.load_handlers()
    endpoint = dispatch.ENDPOINTS[key]
    here = ("127.0.0.1", 1)
    context = Context(broker.node.rooms._facades, Peer("PLAINTEXT", here, here, controller=controllers))
    context.request_version = version
    got: list[Any] = []

    def handler(request: Any, _: Context) -> None:
        got.append(request)

    guard = guarded(handler, endpoint.request, endpoint.needs, None)
    request = request_of(broker, key, version)
    grants.grant(*declared(endpoint.needs, controllers))
    guard(request, context)
    (allowed,) = got
    assert allowed == request
