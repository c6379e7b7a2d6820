"""The handlers about topics and their partitions, in every version."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.server.admin import DIALLED, Admin

from ottla.model import limits
from ottla.model.errors import ErrorCode
from ottla.model.ids import NO_ID
from ottla.server.api.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from ottla.sim.world.disk import DiskFaults, SimDisk
from ottla.wire.messages.topics.create_partitions import CreatePartitionsRequest
from ottla.wire.messages.topics.create_topics import CreateTopicsRequest
from ottla.wire.messages.topics.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.topics.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.topics.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

UNKNOWN_ID = b"\x07" * 16


@pytest.fixture
def admin() -> Admin:
    admin = Admin(properties={"num.partitions": "2"})
    admin.create("t", 3)
    admin.create("u", 1)
    return admin


def metadata(admin: Admin, *names: str, version: int = 13, auto: bool = False, ids: Any = (), **more: Any) -> Any:
    topic = MetadataRequest.Topic
    topics = [topic(name=name) for name in names] + [topic(name=None, topic_id=id) for id in ids]
    if version < 4:
        auto = True
    return admin.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=auto, **more), version)


class TestMetadata:
    @pytest.mark.parametrize("version", range(14))
    def test_every_version(self, admin: Admin, version: int) -> None:
        answer = metadata(admin, "t", version=version)
        (broker,) = answer.brokers
        assert (broker.node_id, broker.host, broker.port) == (1, *DIALLED)
        assert answer.cluster_id == (admin.host.cluster_id if version >= 2 else None)
        (topic,) = answer.topics
        assert (topic.error_code, topic.name) == (0, "t")
        assert topic.topic_id == (admin.host.state.topics["t"].id if version >= 10 else NO_ID)
        assert [(each.partition_index, each.leader_id, each.replica_nodes) for each in topic.partitions] == [
            (0, 1, [1]),
            (1, 1, [1]),
            (2, 1, [1]),
        ]

    def test_all_topics(self, admin: Admin) -> None:
        for version, none in ((13, None), (1, None), (0, [])):
            answer = admin.ask(MetadataRequest(topics=none), version)
            assert [topic.name for topic in answer.topics] == ["t", "u"]

    def test_a_topic_that_is_named_very_often_is_told_of_once(self, admin: Admin) -> None:
        admin.create("often", 3)
        named = [MetadataRequest.Topic(name="often")] * (2 * limits.ITEMS_PER_SLICE)
        answer = admin.ask(MetadataRequest(topics=named, allow_auto_topic_creation=False), 12)
        assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [("often", 3)]

    def test_no_topics(self, admin: Admin) -> None:
        answer = admin.ask(MetadataRequest(topics=[]), 13)
        assert answer.topics == [] and len(answer.brokers) == 1

    def test_the_advertised_address(self) -> None:
        admin = Admin(advertised=("example", 1234))
        (broker,) = metadata(admin).brokers
        assert (broker.host, broker.port) == ("example", 1234)

    def test_unknown_and_bad_names(self, admin: Admin) -> None:
        topics = metadata(admin, "t", "nope", "a b", "").topics
        assert [(topic.name, topic.error_code) for topic in topics] == [("t", 0), ("nope", 3), ("a b", 17), ("", 17)]
        assert all(topic.topic_id == NO_ID for topic in topics[1:])

    def test_by_id(self, admin: Admin) -> None:
        known = admin.host.state.topics["t"].id
        unknown, found = metadata(admin, "u", ids=(known, UNKNOWN_ID)).topics
        assert (unknown.error_code, unknown.name, unknown.topic_id) == (100, None, UNKNOWN_ID)
        assert (found.error_code, found.name) == (0, "t")

    def test_ids_were_not_answered_before_version_12(self, admin: Admin) -> None:
        answer = metadata(admin, ids=(UNKNOWN_ID,), version=12)
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        for version in (10, 11):
            answer = metadata(admin, ids=(UNKNOWN_ID,), version=version)
            assert answer.brokers == [] and answer.topics[0].error_code == ErrorCode.INVALID_REQUEST

    def test_topics_are_created_on_the_way(self, admin: Admin) -> None:
        """The first answer says that they are not there yet, as Kafka's does; the next one has them."""
        for name, version in (("new", 12), ("older", 0)):
            (topic,) = metadata(admin, name, auto=True, version=version).topics
            assert (topic.error_code, topic.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
            assert name in admin.host.state.topics
            (topic,) = metadata(admin, name, version=version).topics
            assert (topic.error_code, len(topic.partitions)) == (0, 2)

    def test_but_not_bad_colliding_or_unwanted_ones(self, admin: Admin) -> None:
        metadata(admin, "x.y", auto=True)
        topics = metadata(admin, "a b", "x_y", auto=True).topics
        assert [(topic.name, topic.error_code) for topic in topics] == [("a b", 17), ("x_y", 3)]
        assert "x_y" not in admin.host.state.topics
        off = Admin(properties={"auto.create.topics.enable": "false"})
        assert metadata(off, "new", auto=True).topics[0].error_code == 3
        assert not off.host.state.topics

    @pytest.mark.parametrize(
        ("name", "policy"),
        [("__consumer_offsets", "compact"), ("__transaction_state", "compact"), ("__share_group_state", "delete")],
    )
    def test_internal_topics_have_their_own_settings(self, name: str, policy: str) -> None:
        admin = Admin(
            properties={
                "offsets.topic.replication.factor": "1",
                "transaction.state.log.replication.factor": "1",
                "share.coordinator.state.topic.replication.factor": "1",
                "transaction.state.log.min.isr": "1",
            }
        )
        (topic,) = metadata(admin, name, auto=True).topics
        assert (topic.error_code, topic.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)
        (topic,) = metadata(admin, name).topics
        assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (0, True, 50)
        assert admin.configs.overrides(name)["cleanup.policy"] == policy

    def test_an_internal_topic_has_as_many_replicas_as_there_can_be(self, admin: Admin) -> None:
        metadata(admin, "__consumer_offsets", auto=True)
        (topic,) = metadata(admin, "__consumer_offsets").topics
        assert topic.error_code == 0
        assert {tuple(partition.replica_nodes) for partition in topic.partitions} == {(1,)}

    @pytest.mark.parametrize("name", ["__consumer_offsets", "mine"])
    def test_a_topic_that_cannot_be_replicated_as_told_is_not_there(
        self, name: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Kafka does not say why either; here the log does, once."""
        properties = {"offsets.topic.replication.factor": "3", "default.replication.factor": "3"}
        admin = Admin(properties=properties)
        for _ in range(3):
            (topic,) = metadata(admin, name, auto=True).topics
            assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        (warning,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert "INVALID_REPLICATION_FACTOR" in warning.getMessage()

    def test_a_failing_disk_is_an_answer_too(self, caplog: pytest.LogCaptureFixture) -> None:
        disk = SimDisk(faults=DiskFaults())
        admin = Admin({"data": disk})
        disk.faults.read_only = True
        (topic,) = metadata(admin, "new", auto=True).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert "KAFKA_STORAGE_ERROR" in caplog.text

    def test_authorized_operations_when_asked(self, admin: Admin) -> None:
        answer = metadata(admin, "t", version=8)
        assert (answer.cluster_authorized_operations, answer.topics[0].topic_authorized_operations) == (
            NOT_ASKED,
            NOT_ASKED,
        )
        answer = metadata(
            admin,
            "t",
            version=8,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
        )
        assert answer.cluster_authorized_operations == CLUSTER_OPERATIONS == 8096
        assert answer.topics[0].topic_authorized_operations == TOPIC_OPERATIONS == 3576


class TestDescribeTopicPartitions:
    def ask(self, admin: Admin, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
        request = DescribeTopicPartitionsRequest
        return admin.ask(
            request(
                topics=[request.TopicRequest(name=name) for name in names],
                response_partition_limit=limit,
                cursor=None if cursor is None else request.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
            )
        )

    def test_in_order_with_errors(self, admin: Admin) -> None:
        answer = self.ask(admin, "u", "nope", "a b", "t")
        assert [(topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics] == [
            ("a b", 17, 0),
            ("nope", 3, 0),
            ("t", 0, 3),
            ("u", 0, 1),
        ]
        assert answer.next_cursor is None

    def test_page_by_page(self, admin: Admin) -> None:
        pages, cursor = [], None
        while True:
            answer = self.ask(admin, limit=1, cursor=cursor)
            pages += [(topic.name, each.partition_index) for topic in answer.topics for each in topic.partitions]
            if answer.next_cursor is None:
                break
            cursor = (answer.next_cursor.topic_name, answer.next_cursor.partition_index)
        assert pages == [("t", 0), ("t", 1), ("t", 2), ("u", 0)]

    @pytest.mark.parametrize("cursor", [("v", 0), ("t", -1)])
    def test_a_cursor_that_cannot_be(self, admin: Admin, cursor: tuple[str, int]) -> None:
        answer = self.ask(admin, "t", "u", cursor=cursor)
        assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST] * 2


class TestCreateTopics:
    def ask(self, admin: Admin, *topics: Any, version: int = 7, validate_only: bool = False) -> Any:
        return admin.ask(CreateTopicsRequest(topics=list(topics), validate_only=validate_only), version).topics

    def topic(self, name: str, partitions: int = 1, **more: Any) -> Any:
        creatable = CreateTopicsRequest.CreatableTopic
        configs = [creatable.CreatableTopicConfig(name=key, value=value) for key, value in more.pop("configs", ())]
        return creatable(
            name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=configs, **more
        )

    @pytest.mark.parametrize("version", range(2, 8))
    def test_every_version(self, admin: Admin, version: int) -> None:
        (answer,) = self.ask(admin, self.topic("new", 4), version=version)
        assert (answer.name, answer.error_code, answer.error_message) == ("new", 0, None)
        assert answer.num_partitions == (4 if version >= 5 else -1)
        assert (answer.topic_id != NO_ID) == (version >= 7)
        assert admin.host.state.topics["new"].partitions[3].index == 3

    def test_the_answer_tells_the_whole_configuration(self, admin: Admin) -> None:
        (answer,) = self.ask(admin, self.topic("new", configs=[("retention.ms", "1"), ("retention.ms", "5")]))
        found = {entry.name: (entry.value, entry.config_source) for entry in answer.configs}
        assert list(found) == sorted(found) and len(found) >= 33
        assert found["retention.ms"] == ("5", 1)
        assert found["min.insync.replicas"] == ("1", 3)
        assert found["segment.bytes"] == ("1073741824", 5)

    def test_errors_have_words(self, admin: Admin) -> None:
        (answer,) = self.ask(admin, self.topic("t"))
        assert (answer.error_code, answer.error_message) == (36, "Topic 't' already exists.")
        assert answer.configs == []

    def test_a_failing_disk_is_an_answer_too(self) -> None:
        disk = SimDisk(faults=DiskFaults())
        admin = Admin({"data": disk})
        disk.faults.read_only = True
        (answer,) = self.ask(admin, self.topic("new"))
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR


class TestDeleteTopics:
    @pytest.mark.parametrize("version", range(1, 6))
    def test_by_name(self, admin: Admin, version: int) -> None:
        request = DeleteTopicsRequest(topic_names=["nope", "t"], timeout_ms=1000)
        first, second = admin.ask(request, version).responses
        assert (first.name, first.error_code, second.name, second.error_code) == ("nope", 3, "t", 0)
        assert (first.error_message is not None) == (version >= 5)

    def test_by_id(self, admin: Admin) -> None:
        state = DeleteTopicsRequest.DeleteTopicState
        known = admin.host.state.topics["t"].id
        topics = [state(name=None, topic_id=known), state(name=None, topic_id=UNKNOWN_ID)]
        unknown, deleted = admin.ask(DeleteTopicsRequest(topics=topics, timeout_ms=1000)).responses
        assert (unknown.name, unknown.topic_id, unknown.error_code) == (None, UNKNOWN_ID, 100)
        assert (deleted.name, deleted.topic_id, deleted.error_code) == ("t", known, 0)

    @pytest.mark.parametrize(("version", "code"), [(1, 42), (2, 42), (3, 73), (5, 73)])
    def test_switched_off(self, version: int, code: int) -> None:
        admin = Admin(properties={"delete.topic.enable": "false"})
        admin.create("t")
        (answer,) = admin.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), version).responses
        assert (answer.name, answer.error_code) == ("t", code)
        assert "t" in admin.host.state.topics


@pytest.mark.parametrize("version", range(4))
def test_create_partitions(admin: Admin, version: int) -> None:
    topic = CreatePartitionsRequest.Topic
    topics = [
        topic(name="t", count=5, assignments=None),
        topic(name="u", count=2, assignments=[topic.Assignment(broker_ids=[9])]),
        topic(name="nope", count=2, assignments=None),
    ]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=1000, validate_only=False)
    answers = admin.ask(request, version).results
    assert [(each.name, each.error_code) for each in answers] == [("t", 0), ("u", 39), ("nope", 3)]
    assert answers[2].error_message is None
    assert len(admin.host.state.topics["t"].partitions) == 5
    assert admin.partitions.get("t", 4) is not None


@pytest.mark.parametrize("version", range(1, 6))
def test_describe_log_dirs(admin: Admin, version: int) -> None:
    admin.write(10)
    (result,) = admin.ask(DescribeLogDirsRequest(topics=None), version).results
    assert (result.error_code, result.log_dir) == (0, "data")
    sizes = {
        (topic.name, each.partition_index): each.partition_size for topic in result.topics for each in topic.partitions
    }
    assert sorted(sizes) == [("t", 0), ("t", 1), ("t", 2), ("u", 0)]
    assert sizes["t", 0] > 0 == sizes["t", 1]
    wanted = DescribeLogDirsRequest.DescribableLogDirTopic(topic="t", partitions=[0, 9])
    (result,) = admin.ask(DescribeLogDirsRequest(topics=[wanted]), version).results
    assert [(topic.name, len(topic.partitions)) for topic in result.topics] == [("t", 1)]
