"""Dead letters: a client cannot have the broker write where the client itself may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.server.security.secured import plain_jaas
from tests.support.requests.raw import RawConnection

from ottla.client.blocking.blocking import Blocking
from ottla.model.errors import ErrorCode
from ottla.model.resources import ResourceType
from ottla.model.tenancy.tenants import TenantLimits
from ottla.security.acls import AclOperation, AclPermission, AclResourceType
from ottla.testing.broker import EmbeddedBroker
from ottla.wire.messages.groups.streams_group_heartbeat import KeyValue, StreamsGroupHeartbeatRequest, TopicInfo
from ottla.wire.messages.security.create_acls import CreateAclsRequest
from ottla.wire.messages.security.sasl_authenticate import SaslAuthenticateRequest
from ottla.wire.messages.security.sasl_handshake import SaslHandshakeRequest
from ottla.wire.messages.topics.alter_configs import AlterConfigsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest

PASSWORDS = {"admin": "a", "acme.app": "b", "evil.app": "c", "plain": "d"}
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
DLQ, SHARE_DLQ = "ottla.schema.validation.dlq", "ottla.share.dlq.topic"
ACTION = "ottla.schema.validation.action"
RESERVED = ["_schemas", "__ottla_audit", "__consumer_offsets", "__share_group_state", "__cluster_metadata"]
DENIED, INVALID, POLICY = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_CONFIG, ErrorCode.POLICY_VIOLATION

Told = tuple[int, str]
Change = Callable[[RawConnection, ResourceType, str, dict[str, str]], Told]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": plain_jaas("admin", PASSWORDS),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
        "offsets.topic.num.partitions": 1,
    }
    security = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": PASSWORDS["admin"],
    }
    with EmbeddedBroker(tmp_path_factory.mktemp("letters"), settings) as running:
        with Blocking(running.bootstrap, security=security) as client:
            for tenant in ("acme", "evil"):
                client.admin.tenants.create(tenant, TenantLimits(-1, -1, -1))
                client.admin.tenants.add_user(tenant, f"{tenant}.app", {"request_percentage": 1000})
            for topic in ("acme.orders", "evil.src", "evil.dead", "plain", "shared", "written"):
                client.admin.topics.create(topic, partitions=1)
            # `plain` belongs to no tenant: it may do everything with its own names, and write to a few others.
            rights = [
                (AclResourceType.TOPIC, "plain", AclOperation.ALL),
                (AclResourceType.TOPIC, "fresh", AclOperation.ALL),
                (AclResourceType.GROUP, "plain", AclOperation.ALL),
                (AclResourceType.TOPIC, "written", AclOperation.WRITE),
                (AclResourceType.TOPIC, "not-there", AclOperation.WRITE),
                (AclResourceType.TOPIC, "to-be-made", AclOperation.WRITE),
                (AclResourceType.TOPIC, "to-be-made", AclOperation.CREATE),
            ]
        creations = [
            CreateAclsRequest.AclCreation(
                resource_type=kind,
                resource_name=name,
                principal="User:plain",
                host="*",
                operation=operation,
                permission_type=AclPermission.ALLOW,
            )
            for kind, name, operation in rights
        ]
        with connected(running, "admin") as connection:
            told: Any = connection.call(CreateAclsRequest(creations=creations), 3)
            assert not any(each.error_code for each in told.results)
        yield running


def connected(broker: EmbeddedBroker, user: str) -> RawConnection:
    connection = RawConnection(broker.bootstrap)
    connection.call(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    told: Any = connection.call(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{PASSWORDS[user]}".encode()), 2)
    assert told.error_code == 0
    return connection


def incremental(connection: RawConnection, kind: ResourceType, name: str, settings: dict[str, str]) -> Told:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [resource.AlterableConfig(name=key, config_operation=0, value=text) for key, text in settings.items()]
    item = resource(resource_type=kind, resource_name=name, configs=configs)
    # The other one shows that answers stay in their places.
    other = resource(resource_type=TOPIC, resource_name="shared", configs=[])
    request = IncrementalAlterConfigsRequest(resources=[other, item], validate_only=True)
    answer: Any = connection.call(request, 1)
    assert [each.resource_name for each in answer.responses] == ["shared", name]
    return answer.responses[1].error_code, answer.responses[1].error_message or ""


def whole(connection: RawConnection, kind: ResourceType, name: str, settings: dict[str, str]) -> Told:
    resource = AlterConfigsRequest.Resource
    configs = [resource.AlterableConfig(name=key, value=text) for key, text in settings.items()]
    item = resource(resource_type=kind, resource_name=name, configs=configs)
    answer: Any = connection.call(AlterConfigsRequest(resources=[item], validate_only=True), 2)
    return answer.responses[0].error_code, answer.responses[0].error_message or ""


def creation(connection: RawConnection, kind: ResourceType, name: str, settings: dict[str, str]) -> Told:
    assert kind == TOPIC
    made = CreateTopicsRequest.CreatableTopic
    configs = [made.CreatableTopicConfig(name=key, value=text) for key, text in settings.items()]
    fresh = "fresh" if name == "plain" else f"{name}.fresh"
    topic = made(name=fresh, num_partitions=1, replication_factor=1, assignments=[], configs=configs)
    answer: Any = connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=5_000, validate_only=True), 7)
    return answer.topics[0].error_code, answer.topics[0].error_message or ""


WAYS = [
    pytest.param(incremental, TOPIC, id="incremental-topic"),
    pytest.param(incremental, GROUP, id="incremental-group"),
    pytest.param(whole, TOPIC, id="whole-topic"),
    pytest.param(whole, GROUP, id="whole-group"),
    pytest.param(creation, TOPIC, id="creation"),
]


def named(kind: ResourceType, target: str) -> dict[str, str]:
    return {DLQ if kind == TOPIC else SHARE_DLQ: target}


@pytest.mark.parametrize(("change", "kind"), WAYS)
def test_a_tenant_names_its_own_topics_only(broker: EmbeddedBroker, change: Change, kind: ResourceType) -> None:
    with connected(broker, "evil.app") as connection:
        for target in ("acme.orders", "acme.made-by-evil", "nobodys-topic", " acme.orders", "shared"):
            code, text = change(connection, kind, "evil.src", named(kind, target))
            assert code == DENIED, target
            assert target.strip() in text and "WRITE" in text
        for target in ("evil.dead", "evil.not-there", ""):
            assert change(connection, kind, "evil.src", named(kind, target))[0] == 0, target
        for target in RESERVED:
            assert change(connection, kind, "evil.src", named(kind, target))[0] == INVALID, target


@pytest.mark.parametrize(("change", "kind"), WAYS)
def test_letters_stay_in_their_tenant_whatever_the_rights(
    broker: EmbeddedBroker, change: Change, kind: ResourceType
) -> None:
    with connected(broker, "admin") as connection:
        for target in ("acme.orders", "nobodys-topic", "evil"):
            code, text = change(connection, kind, "evil.src", named(kind, target))
            assert (code, "tenant evil" in text) == (POLICY, True), target
        assert change(connection, kind, "evil.src", named(kind, "evil.dead"))[0] == 0
        assert change(connection, kind, "plain", named(kind, "acme.orders"))[0] == 0, "it belongs to no tenant"
        for target in RESERVED:
            assert change(connection, kind, "plain", named(kind, target))[0] == INVALID, target


@pytest.mark.parametrize(("change", "kind"), WAYS)
def test_write_and_create_are_needed(broker: EmbeddedBroker, change: Change, kind: ResourceType) -> None:
    with connected(broker, "plain") as connection:
        assert change(connection, kind, "plain", named(kind, "shared"))[0] == DENIED
        assert change(connection, kind, "plain", named(kind, "written"))[0] == 0
        code, text = change(connection, kind, "plain", named(kind, "not-there"))
        assert (code, "CREATE" in text) == (DENIED, True)
        assert change(connection, kind, "plain", named(kind, "to-be-made"))[0] == 0


@pytest.mark.parametrize("change", [incremental, whole, creation])
def test_the_default_name_needs_the_rights_too(broker: EmbeddedBroker, change: Change) -> None:
    with connected(broker, "plain") as connection:
        code, text = change(connection, TOPIC, "plain", {ACTION: "dlq"})
        assert code == DENIED and (".dlq, which needs the permission WRITE" in text)
        assert change(connection, TOPIC, "plain", {ACTION: "dlq", DLQ: "written"})[0] == 0
        assert change(connection, TOPIC, "plain", {ACTION: "tag"})[0] == 0
    with connected(broker, "evil.app") as connection:
        assert change(connection, TOPIC, "evil.src", {ACTION: "dlq"})[0] == 0


def test_internal_topics_of_streams_groups(broker: EmbeddedBroker) -> None:
    def told(target: str) -> tuple[int, str]:
        changelog = TopicInfo(
            name="evil.g-changelog",
            partitions=0,
            replication_factor=0,
            topic_configs=[KeyValue(key=DLQ, value=target)],
        )
        subtopology = StreamsGroupHeartbeatRequest.Topology.Subtopology(
            subtopology_id="0",
            source_topics=["evil.src"],
            source_topic_regex=[],
            state_changelog_topics=[changelog],
            repartition_sink_topics=[],
            repartition_source_topics=[],
            copartition_groups=[],
        )
        request = StreamsGroupHeartbeatRequest(
            group_id="evil.streams",
            member_id="m",
            member_epoch=0,
            endpoint_information_epoch=0,
            rebalance_timeout_ms=1_000,
            topology=StreamsGroupHeartbeatRequest.Topology(epoch=0, subtopologies=[subtopology]),
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
            process_id="p",
            client_tags=[],
        )
        with connected(broker, "evil.app") as connection:
            answer: Any = connection.call(request, 0)
            return answer.error_code, answer.error_message or ""

    code, text = told("acme.orders")
    assert code == DENIED and "acme.orders" in text
    assert told("evil.dead")[0] != DENIED
