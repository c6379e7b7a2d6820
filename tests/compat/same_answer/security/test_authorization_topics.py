"""Topics and their settings, with rights on some: the same answers as a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.compat.conftest import Names, versions_of
from tests.support.requests.limited import TEXT, UNKNOWN_ID, Sides, grant, own
from tests.support.requests.same import Plain, Side

from ottla.security.acls import AclOperation, AclResourceType
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.topics.describe_configs import DescribeConfigsRequest
from ottla.wire.messages.topics.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.wire.messages.topics.incremental_alter_configs import IncrementalAlterConfigsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest


@pytest.mark.parametrize("version", versions_of(MetadataRequest))
def test_metadata(sides: Sides, new_name: Names, version: int) -> None:
    mine, hidden, new, forbidden = (new_name(each) for each in ("mine", "hidden", "new", "forbidden"))

    def metadata(client: Side, topics: list[str] | None, *, by_id: bool = False, create: bool = False) -> Plain:
        asked = None
        if topics is not None:
            asked = [
                MetadataRequest.Topic(topic_id=client.ids.get(name, UNKNOWN_ID), name=None)
                if by_id
                else MetadataRequest.Topic(name=name)
                for name in topics
            ]
        if version == 0 and asked is None:
            asked = []
        request = MetadataRequest(
            topics=asked,
            allow_auto_topic_creation=create,
            include_cluster_authorized_operations=8 <= version <= 10,
            include_topic_authorized_operations=version >= 8,
        )
        answer = client.call(request, version)
        answer["topics"] = [each for each in answer["topics"] if not str(each["name"]).startswith("barrier")]
        return answer

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, hidden)
        yield metadata(client, [mine, hidden])
        grant(admin, AclOperation.READ, AclResourceType.TOPIC, mine)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.TOPIC, forbidden)
        yield metadata(client, [mine, hidden])
        everything = metadata(client, None)
        yield [each for each in everything["topics"] if each["name"] in (mine, hidden)]
        if version >= 12:
            yield metadata(client, [mine, hidden, "missing"], by_id=True)
        if version >= 4:
            yield metadata(client, [forbidden], create=False)
        yield metadata(client, [forbidden, mine], create=True)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.TOPIC, new)
        grant(admin, AclOperation.CREATE, AclResourceType.TOPIC, new)
        yield metadata(client, [new], create=True)
        if version >= 8:
            grant(admin, AclOperation.WRITE, AclResourceType.TOPIC, mine)
            yield metadata(client, [mine])

    sides.same(script)


@pytest.mark.parametrize("version", versions_of(CreateTopicsRequest))
def test_create_topics(sides: Sides, new_name: Names, version: int) -> None:
    mine, quiet, other = (new_name(each) for each in ("mine", "quiet", "other"))
    topic = CreateTopicsRequest.CreatableTopic

    def create(client: Side, *names: str) -> Plain:
        topics = [
            topic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]) for name in names
        ]
        answer = client.call(CreateTopicsRequest(topics=topics, timeout_ms=5_000), version, blank=("topic_id",))
        for each in answer["topics"]:
            each.pop("configs", None) if each["name"] == mine else None  # compared in another test
        return answer

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        grant(admin, AclOperation.CREATE, AclResourceType.TOPIC, mine)
        grant(admin, AclOperation.DESCRIBE_CONFIGS, AclResourceType.TOPIC, mine)
        grant(admin, AclOperation.CREATE, AclResourceType.TOPIC, quiet)
        yield create(client, other)
        yield create(client, mine, quiet, other, "no/name")
        yield create(client, other, other)
        yield create(client, mine)

    sides.same(script)


@pytest.mark.parametrize("version", versions_of(DeleteTopicsRequest))
def test_delete_topics(sides: Sides, new_name: Names, version: int) -> None:
    mine, seen, hidden, described = (new_name(each) for each in ("mine", "seen", "hidden", "described"))

    def delete(client: Side, *names: str, by_id: bool = False) -> Plain:
        if version < 6:
            return client.call(DeleteTopicsRequest(topic_names=list(names), timeout_ms=5_000), version)
        state = DeleteTopicsRequest.DeleteTopicState
        topics = [
            state(name=None if by_id else name, topic_id=client.ids.get(name, UNKNOWN_ID) if by_id else bytes(16))
            for name in names
        ]
        return client.call(DeleteTopicsRequest(topics=topics, timeout_ms=5_000), version)

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, seen, hidden)
        grant(admin, AclOperation.READ, AclResourceType.TOPIC, seen)
        grant(admin, AclOperation.DESCRIBE, AclResourceType.TOPIC, described)
        yield delete(client, mine)
        yield delete(client, seen, hidden, described, "missing")
        yield delete(client, hidden, hidden)
        if version >= 6:
            yield delete(client, seen, hidden, "missing", by_id=True)
        grant(admin, AclOperation.DELETE, AclResourceType.TOPIC, mine)
        yield delete(client, mine, hidden)

    sides.same(script)


@pytest.mark.parametrize("version", versions_of(DescribeConfigsRequest))
def test_describe_configs(sides: Sides, new_name: Names, version: int) -> None:
    mine, hidden = new_name("mine"), new_name("hidden")
    resource = DescribeConfigsRequest.Resource

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, hidden)
        grant(admin, AclOperation.DESCRIBE_CONFIGS, AclResourceType.TOPIC, mine)
        asked = [(2, mine), (2, hidden), (2, "missing"), (4, "1"), (4, ""), (8, "1"), (16, "metrics"), (32, "group")]
        for kind, name in asked:
            resources = [resource(resource_type=kind, resource_name=name, configuration_keys=["cleanup.policy"])]
            yield client.call(DescribeConfigsRequest(resources=resources), version, blank=TEXT)
        resources = [
            resource(resource_type=kind, resource_name=name, configuration_keys=["cleanup.policy"])
            for kind, name in asked
        ]
        yield client.call(DescribeConfigsRequest(resources=resources), version, blank=TEXT)

    sides.same(script)


@pytest.mark.parametrize("version", versions_of(IncrementalAlterConfigsRequest))
def test_alter_configs(sides: Sides, new_name: Names, version: int) -> None:
    mine, hidden = new_name("mine"), new_name("hidden")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, hidden)
        grant(admin, AclOperation.ALTER_CONFIGS, AclResourceType.TOPIC, mine)
        for kind, name, setting in (
            (2, mine, "retention.ms"),
            (2, hidden, "retention.ms"),
            (2, "missing", "retention.ms"),
            (4, "1", "message.max.bytes"),
            (8, "1", "kafka.server"),
            (16, "metrics", "interval.ms"),
            (32, "group", "consumer.session.timeout.ms"),
        ):
            change = resource.AlterableConfig(name=setting, config_operation=0, value="60000")
            resources = [resource(resource_type=kind, resource_name=name, configs=[change])]
            yield client.call(
                IncrementalAlterConfigsRequest(resources=resources, validate_only=False), version, blank=TEXT
            )

    sides.same(script)


def test_describe_topic_partitions(sides: Sides, new_name: Names) -> None:
    mine, hidden, other = new_name("a-mine"), new_name("b-hidden"), new_name("c-mine")
    request = DescribeTopicPartitionsRequest

    def describe(client: Side, names: list[str], limit: int = 100, cursor: str | None = None) -> Plain:
        at = None if cursor is None else request.Cursor(topic_name=cursor, partition_index=0)
        topics = [request.TopicRequest(name=name) for name in names]
        return client.call(request(topics=topics, response_partition_limit=limit, cursor=at), 0)

    def script(client: Side, admin: Side) -> Iterator[Plain]:
        own(client, admin, mine, hidden, other)
        for name in (mine, other):
            grant(admin, AclOperation.DESCRIBE, AclResourceType.TOPIC, name)
        yield describe(client, [mine, hidden, other, "missing"])
        yield describe(client, [mine, hidden, other], limit=1)
        yield describe(client, [mine, hidden, other], cursor=hidden)
        yield describe(client, [mine, other], cursor=other)
        everything = describe(client, [])
        yield [each for each in everything["topics"] if each["name"] in (mine, hidden, other)]

    sides.same(script)
