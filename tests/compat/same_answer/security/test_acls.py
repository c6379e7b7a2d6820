"""ACLs: the same request gets the same answer from Ottla as from a real Kafka with the same authorizer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.compat.conftest import Names, Node, versions_of
from tests.support.clients.assigned import Java
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.requests.acls import (
    ANY,
    CLUSTER,
    DENY,
    GROUP,
    GUARDED,
    MATCH,
    PREFIXED,
    TOPIC,
    creation,
    described,
    filter_of,
)
from tests.support.requests.same import Both, Plain, Side

from ottla.model.errors import ErrorCode
from ottla.wire.messages.security.create_acls import CreateAclsRequest
from ottla.wire.messages.security.delete_acls import DeleteAclsRequest
from ottla.wire.messages.security.describe_acls import DescribeAclsRequest

VERSION = 3


@pytest.fixture(scope="module")
def guarded(against: str, java_tools: None, java_431: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """A real Kafka and its twin, both with an authorizer whose super user is every client."""
    kafka = RealKafka(tmp_path_factory.mktemp("guarded"), properties=GUARDED)
    directory = tmp_path_factory.mktemp("guarded-twin")
    twin: Node = (
        RealKafka(directory, properties=GUARDED)
        if against == "kafka"
        else OttlaNode(directory, properties=kafka.properties)
    )
    try:
        kafka.start()
        twin.start()
        texts = java_431.ask("error_texts", kafka.bootstrap)
        sides = Both(Side("kafka", kafka.bootstrap), Side("ottla", twin.bootstrap), texts)
        yield sides
        sides.kafka.close()
        sides.ottla.close()
    finally:
        kafka.stop()
        twin.stop()


def create(side: Side, *creations: CreateAclsRequest.AclCreation, version: int = VERSION) -> Plain:
    answer = side.call(CreateAclsRequest(creations=list(creations)), version)
    side.settle()
    return answer


@pytest.mark.parametrize("version", versions_of(CreateAclsRequest))
def test_create_describe_and_delete(guarded: Both, new_name: Names, version: int) -> None:
    name = new_name("acl")

    def script(side: Side) -> Iterator[Plain]:
        yield create(
            side,
            creation(name),
            creation(name),
            creation(name, operation=15, host="10.0.0.1"),
            creation(name, resource_pattern_type=PREFIXED, permission_type=DENY, principal="User:*"),
            creation(name, resource_type=GROUP, operation=2),
            creation("kafka-cluster", resource_type=CLUSTER, principal=f"User:{name}"),
            *[creation(name, resource_type=7, operation=14)] * (version >= 3),
            version=version,
        )
        yield create(side, creation(name), version=version)
        for wanted in (
            {"resource_name_filter": name},
            {"resource_name_filter": name + "-1", "pattern_type_filter": MATCH},
            {"resource_name_filter": name, "pattern_type_filter": PREFIXED},
            {"resource_name_filter": name, "resource_type_filter": TOPIC, "principal_filter": "User:alice"},
            {"principal_filter": f"User:{name}"},
            {"resource_name_filter": name, "permission_type": DENY},
            {"resource_name_filter": name, "operation": 15, "host_filter": "10.0.0.1"},
            {"resource_name_filter": name, "operation": 99},
            {"resource_name_filter": name, "resource_type_filter": 99},
        ):
            yield side.call(described(**wanted), version)
        filters = [
            filter_of(resource_name_filter=name, pattern_type_filter=PREFIXED),
            filter_of(resource_name_filter=name, pattern_type_filter=MATCH),
            filter_of(principal_filter=f"User:{name}"),
            filter_of(resource_name_filter="never"),
        ]
        yield side.call(DeleteAclsRequest(filters=filters), version)
        yield side.call(DeleteAclsRequest(filters=filters), version)

    guarded.same(script)


BAD_CREATIONS: dict[str, dict[str, Any]] = {
    "unknown resource": {"resource_type": 99},
    "unknown pattern": {"resource_pattern_type": 99},
    "unknown operation": {"operation": 99},
    "unknown permission": {"permission_type": 99},
    "empty name": {"name": ""},
    "empty prefix": {"name": "", "resource_pattern_type": PREFIXED},
    "another cluster": {"resource_type": CLUSTER, "name": "c"},
    "a prefix of the cluster": {
        "resource_type": CLUSTER,
        "name": "kafka-cluster",
        "resource_pattern_type": PREFIXED,
        "principal": "User:never",
    },
    "zero as a resource": {"resource_type": 0},
    "zero as a pattern": {"resource_pattern_type": 0},
    "zero as an operation": {"operation": 0},
    "zero as a permission": {"permission_type": 0},
    "no principal type": {"principal": "alice"},
    "empty principal": {"principal": ""},
    "only a principal type": {"principal": "User:"},
    "no type of principal": {"principal": ":alice"},
    "empty host": {"host": ""},
}


@pytest.mark.parametrize("bad", BAD_CREATIONS)
def test_what_cannot_be_created(guarded: Both, new_name: Names, bad: str) -> None:
    name = new_name("acl")

    def script(side: Side) -> Iterator[Plain]:
        yield create(side, creation(name), creation(**BAD_CREATIONS[bad]))
        yield side.call(DeleteAclsRequest(filters=[filter_of()]), VERSION)

    guarded.same(script)


@pytest.mark.parametrize(
    "only_in_filters",
    [{"resource_type": ANY}, {"resource_pattern_type": MATCH}, {"operation": ANY}, {"permission_type": ANY}],
    ids=str,
)
def test_what_only_filters_may_have(
    guarded: Both, against: str, new_name: Names, only_in_filters: dict[str, int]
) -> None:
    """Kafka answers the whole request with UNKNOWN_SERVER_ERROR; we refuse the entry alone and say why."""
    name = new_name("acl")
    wrong = CreateAclsRequest(creations=[creation(name), creation(name, **only_in_filters)])
    theirs, ours = (side.call(wrong, VERSION)["results"] for side in (guarded.kafka, guarded.ottla))
    assert [each["error_code"] for each in theirs] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    if against == "kafka":
        assert ours == theirs
    else:
        assert [each["error_code"] for each in ours] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    guarded.ottla.call(DeleteAclsRequest(filters=[filter_of()]), VERSION)


BAD_FILTERS: dict[str, dict[str, Any]] = {
    "unknown resource": {"resource_type_filter": 99},
    "unknown pattern": {"pattern_type_filter": 99},
    "unknown operation": {"operation": 99},
    "unknown permission": {"permission_type": 99},
    "zero as a resource": {"resource_type_filter": 0},
    "zero as a permission": {"permission_type": 0},
}


@pytest.mark.parametrize("bad", BAD_FILTERS)
def test_filters_that_mean_nothing(guarded: Both, new_name: Names, bad: str) -> None:
    name = new_name("acl")

    def script(side: Side) -> Iterator[Plain]:
        yield create(side, creation(name))
        good = filter_of(resource_name_filter=name)
        yield side.call(described(**BAD_FILTERS[bad]), VERSION)
        yield side.call(DeleteAclsRequest(filters=[filter_of(**BAD_FILTERS[bad]), good]), VERSION)
        yield side.call(DeleteAclsRequest(filters=[good]), VERSION)

    guarded.same(script)


@pytest.mark.parametrize("version", versions_of(DescribeAclsRequest))
def test_without_an_authorizer(both: Both, version: int) -> None:
    def script(side: Side) -> Iterator[Plain]:
        yield side.call(described(), version)
        yield side.call(CreateAclsRequest(creations=[creation(), creation("u")]), version)
        yield side.call(DeleteAclsRequest(filters=[filter_of(), filter_of()]), version)
        yield side.call(CreateAclsRequest(creations=[]), version)

    both.same(script)
