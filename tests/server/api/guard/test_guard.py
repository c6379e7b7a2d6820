"""Changes of ACLs and of the principal count at once, and a node without an authorizer has no guard."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.api.guard.granted import Grants
from tests.server.storages import facades_of
from tests.support.requests.acl_entries import allow
from tests.support.requests.one_of_each import TOPIC
from tests.support.requests.raw import Closed, RawConnection

from ottla.model.errors import ErrorCode
from ottla.records.build import build_batch
from ottla.security.acls import AclOperation, AclResourceType
from ottla.security.principal import Principal
from ottla.server.api import dispatch
from ottla.server.api.context import Context, Peer
from ottla.server.api.guard.guarded import guarded
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.records.produce import ProduceRequest
from ottla.wire.messages.security.delete_acls import DeleteAclsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest

HERE = ("127.0.0.1", 1)
ADMIN, CLIENT = "127.0.0.1", "127.0.0.2"


def test_a_node_without_an_authorizer_does_not_load_it() -> None:
    code = (
        "import sys; from ottla.server.api import dispatch; dispatch.load_handlers(); dispatch.ROUTES.find(0, 9);"
        "print([name for name in sys.modules if name.startswith('ottla.server.api.guard')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_routes_without_an_authorizer_hold_the_handlers_themselves() -> None:
    route = dispatch.ROUTES.find(0, 9)
    assert route is not None
    assert route.handler is dispatch.ENDPOINTS[0].handler
    behind = dispatch.GUARDED_ROUTES.find(0, 9)
    assert behind is not None
    assert behind.handler is not route.handler
    assert behind is dispatch.GUARDED_ROUTES.find(0, 9)


def produce(topic: str, acks: int = 1, id: str | None = None) -> ProduceRequest:
    data = ProduceRequest.TopicProduceData
    part = data.PartitionProduceData(index=0, records=bytes(build_batch([(b"k", b"v")], timestamp=1)))
    return ProduceRequest(
        transactional_id=id, acks=acks, timeout_ms=5_000, topic_data=[data(name=topic, partition_data=[part])]
    )


def test_another_principal_is_decided_about_anew() -> None:
    """What was known of the one must not be used for the other."""
    grants = Grants()
    dispatch.load_handler(ProduceRequest.key)
    endpoint = dispatch.ENDPOINTS[ProduceRequest.key]
    facades: Any = facades_of(SimpleNamespace(), authorization=SimpleNamespace(authorizer=grants, silent=None))  # type: ignore[arg-type]
    context = Context(facades, Peer("PLAINTEXT", HERE, HERE))
    context.request_version = 9
    handled: list[object] = []
    guard = guarded(lambda request, _: handled.append(request), endpoint.request, endpoint.needs, None)
    for _ in range(3):
        guard(produce("t"), context)
    assert len(handled) == 3
    # The rules do not change, but they say no to the next one.
    grants._granted = frozenset()
    context.principal = Principal.user("mallory")
    answer: Any = guard(produce("t"), context)
    assert len(handled) == 3
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_committed_acl_counts_for_the_next_request_of_an_open_connection(tmp_path: Path) -> None:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    broker = EmbeddedBroker(tmp_path, settings).start()
    try:
        with RawConnection(broker.bootstrap) as admin, RawConnection(broker.bootstrap, source=CLIENT) as client:
            for resource, name in ((AclResourceType.CLUSTER, "kafka-cluster"), (AclResourceType.TOPIC, "*")):
                admin.call(allow(AclOperation.ALL, resource, name, ADMIN), 3)
            topic = CreateTopicsRequest.CreatableTopic(
                name=TOPIC, num_partitions=1, replication_factor=1, assignments=[], configs=[]
            )
            admin.call(CreateTopicsRequest(topics=[topic], timeout_ms=5_000), 7)
            assert written(client) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            admin.call(allow(AclOperation.WRITE, AclResourceType.TOPIC, TOPIC, CLIENT), 3)
            assert written(client) == written(client) == ErrorCode.NONE
            gone = DeleteAclsRequest.Filter(
                resource_type_filter=AclResourceType.TOPIC,
                resource_name_filter=TOPIC,
                principal_filter=None,
                host_filter=CLIENT,
                operation=AclOperation.ANY,
                permission_type=1,
            )
            admin.call(DeleteAclsRequest(filters=[gone]), 3)
            assert written(client) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            with pytest.raises(Closed):
                client.call(produce(TOPIC, acks=0), 9)
    finally:
        broker.stop()


def written(client: RawConnection) -> int:
    answer: Any = client.call(produce(TOPIC), 9)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code
