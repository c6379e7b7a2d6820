"""Every API with very many elements in each of its lists: no callback takes longer than its budget.

Requests are made from the declarations (`crowds.py`), so that no API can be forgotten. That each of them is refused or
carried out is of no importance here; whoever asks for so much must not hold up the others.
"""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.stalls.measuring.crowds import TOPIC, Crowd, paths
from tests.stalls.measuring.measure import BUDGET_MS, MeasuredNode, best_of
from tests.support.ports import free_ports
from tests.support.requests.acls import GUARDED
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import WAIT_S

from ottla.server.api.api_table import SERVED, SERVED_TO_CONTROLLERS
from ottla.wire.api import API_NAMES, request_class
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest

COUNT = 6_000  # above what is decoded in one go
MANY = 40_000
# What once did not slice everything, which shows only with more. (All others hold with as many, too, but take long.)
WITH_MANY = {
    "DescribeTopicPartitions", "CreateTopics", "DescribeQuorum", "UpdateFeatures", "ControllerRegistration",
    "AlterPartition", "AssignReplicasToDirs", "LeaveGroup",
}  # fmt: skip
PARTITIONS = 2_000

NO_LIST = {
    # These have no list of anything, and nothing that grows.
    "Heartbeat", "ApiVersions", "InitProducerId", "AddOffsetsToTxn", "EndTxn", "DescribeCluster", "UnregisterBroker",
    "AllocateProducerIds", "Envelope", "RemoveRaftVoter",
    # The events of one group are few: GROUP_EVENTS_PER_GROUP_MAX.
    "OttlaDescribeGroupEvents",
    # The requests of one client are few: REQUESTS_SEEN_MAX; so are the clients that are listed.
    "OttlaDescribeRequests",
    # They have no list; what is pushed, and subscriptions, grow: see test_telemetry.py.
    "GetTelemetrySubscriptions", "PushTelemetry",
    # It has no list; the number of ACLs grows: see test_acls.py.
    "DescribeAcls",
    # They have no list; the number of tokens grows: see test_credentials.py.
    "RenewDelegationToken", "ExpireDelegationToken", "SaslHandshake", "SaslAuthenticate",
}  # fmt: skip


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
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        **GUARDED,
    }
    with MeasuredNode(tmp_path_factory.mktemp("node"), settings) as node:
        with node.connect() as connection:
            topic = CreateTopicsRequest.CreatableTopic(
                name=TOPIC, num_partitions=PARTITIONS, replication_factor=1, assignments=[], configs=[]
            )
            connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
            for kind in (0, 1):
                connection.call(FindCoordinatorRequest(key_type=kind, coordinator_keys=["crowd"]), 4)
        yield node


CASES = [
    pytest.param(key, version, path, controllers, id=f"{API_NAMES[key]}-v{version}-{'.'.join(path)}")
    for controllers, served in ((False, SERVED), (True, SERVED_TO_CONTROLLERS))
    for key, (low, high) in served.items()
    if not (controllers and key in SERVED)
    for version in sorted({low, high})
    for path in paths(request_class(key), version)
    if version == high or path not in set(paths(request_class(key), high))
]


def test_every_api_has_a_case() -> None:
    measured = {API_NAMES[case.values[0]] for case in CASES}  # type: ignore[index]
    assert {API_NAMES[key] for key in (*SERVED, *SERVED_TO_CONTROLLERS)} - measured == NO_LIST


@pytest.mark.parametrize(("key", "version", "path", "controllers"), CASES)
def test_a_crowd_holds_up_nobody(
    node: MeasuredNode, key: int, version: int, path: tuple[str, ...], controllers: bool
) -> None:
    topic = node.node.metadata.state.topics.get(TOPIC)
    topic_id = topic.id if topic is not None else bytes(16)
    count = MANY if API_NAMES[key] in WITH_MANY else COUNT
    crowd = Crowd(request_class(key), version, path, count, topic_id)
    if hasattr(crowd.request, "allow_auto_topic_creation"):
        crowd.request.allow_auto_topic_creation = False
    if hasattr(crowd.request, "max_wait_ms"):
        crowd.request.max_wait_ms = 0
    host, port = node.node.addresses[1 if controllers else 0]

    def ask() -> None:
        with RawConnection(f"{host}:{port}", timeout_s=WAIT_S) as connection, suppress(Closed):
            connection.call(crowd.request, version)

    worst = best_of(lambda: node.cost(ask))
    assert worst.cpu_ms <= BUDGET_MS, worst
