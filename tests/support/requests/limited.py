"""Clients without rights on a real Kafka and on Ottla, and administrators who grant them some.

Both nodes have a plaintext listener only, so all clients are User:ANONYMOUS. ACLs tell them apart by their addresses:
one that connects from 127.0.0.1, as the nodes do themselves, may do everything, and one from 127.0.0.2 what a test
grants it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.support.requests.acl_entries import allow
from tests.support.requests.same import Both, Plain, Side
from tests.support.waiting import until

from ottla.security.acls import CLUSTER_NAME, AclOperation, AclPermission, AclResourceType, PatternType
from ottla.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.security.describe_acls import DescribeAclsRequest

SECURED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "log.retention.ms": "-1",  # records of the tests are from 1970
}
ADMIN, CLIENT = "127.0.0.1", "127.0.0.2"
EVERY_TYPE = (
    (AclResourceType.CLUSTER, CLUSTER_NAME),
    (AclResourceType.TOPIC, "*"),
    (AclResourceType.GROUP, "*"),
    (AclResourceType.TRANSACTIONAL_ID, "*"),
)
UNKNOWN_ID = bytes(range(16))
# The text of Kafka's errors describes the request as Java shows it.
TEXT = ("error_message",)
# Kafka has no such API, or its answer depends on what it has loaded.
NOT_COMPARED = {"ApiVersions"}


class Sides:
    """An administrator and a client without rights on each of the two nodes."""

    def __init__(self, kafka: str, ottla: str, texts: list[str], controllers: tuple[str, str]) -> None:
        """`controllers` are the addresses of the two nodes' listeners of controllers."""
        self._controllers = controllers
        self._texts = texts
        self.admins = {"kafka": Side("kafka", kafka), "ottla": Side("ottla", ottla)}
        self.both = Both(Side("kafka", kafka, source=CLIENT), Side("ottla", ottla, source=CLIENT), texts)

    def same(self, script: Callable[[Side, Side], Iterator[Plain]]) -> list[Plain]:
        """Run a script that is given the client and the administrator of one node."""
        return self.both.same(lambda side: script(side, self.admins[side.name]))

    def of_controllers(self, source: str) -> Both:
        """Clients of the two listeners of controllers, who connect from this address and know the topics' ids."""
        kafka, ottla = (
            Side(name, at, source=source) for name, at in zip(("kafka", "ottla"), self._controllers, strict=True)
        )
        for side in (kafka, ottla):
            side.ids = self.admins[side.name].ids
        return Both(kafka, ottla, self._texts)

    def close(self) -> None:
        for side in (*self.admins.values(), self.both.kafka, self.both.ottla):
            side.close()


def grant(admin: Side, operation: AclOperation, resource: AclResourceType, name: str, host: str = CLIENT) -> None:
    answer: Any = admin.answer(allow(operation, resource, name, host), 3)
    assert answer.results[0].error_code == 0, answer
    # Kafka's broker learns of it a moment after the controller.
    ask = DescribeAclsRequest(
        resource_type_filter=resource,
        resource_name_filter=name,
        pattern_type_filter=PatternType.LITERAL,
        principal_filter="User:ANONYMOUS",
        host_filter=host,
        operation=operation,
        permission_type=AclPermission.ALLOW,
    )
    until(lambda: admin.call(ask, 3)["resources"], bool)


def wait_for_coordinator(admin: Side, kind: int, key: str) -> None:
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
    until(lambda: admin.call(request, 6)["coordinators"][0]["error_code"], lambda code: code == 0)


def own(client: Side, admin: Side, *names: str) -> None:
    """Create topics and let the client look them up by id."""
    for name in names:
        admin.create(name)
    client.ids = admin.ids
