"""The admin clients of the Python libraries: make, look at, change and delete topics."""

import asyncio
from typing import Any

import confluent_kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewPartitions as AioNewPartitions
from aiokafka.admin import NewTopic as AioNewTopic
from aiokafka.admin.config_resource import ConfigResource as AioConfigResource
from aiokafka.admin.config_resource import ConfigResourceType as AioConfigResourceType
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic
from tests.compat.conftest import Names, Node
from tests.support.clients.assigned import Aio, Confluent, KafkaPython, kafka
from tests.support.waiting import WAIT_S, until, until_async


def retention(found: Any) -> str:
    """The value in an answer to DescribeConfigs, which aiokafka gives as it came."""
    entries = found[0].resources[0][4]
    return str({entry[0]: entry[1] for entry in entries}["retention.ms"])


class TestConfluent:
    @pytest.fixture
    def client(self) -> Confluent:
        return Confluent()

    @pytest.mark.feature("topics")
    def test_topics(self, client: Confluent, node: Node, new_name: Names) -> None:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        name = new_name("confluent")
        admin.create_topics([NewTopic(name, 2, 1, config={"retention.ms": "7200000"})])[name].result(WAIT_S)
        until(lambda: name in admin.list_topics(timeout=WAIT_S).topics)
        assert sorted(admin.list_topics(name, timeout=WAIT_S).topics[name].partitions) == [0, 1]
        admin.create_partitions([NewPartitions(name, 3)])[name].result(WAIT_S)
        until(lambda: len(admin.list_topics(name, timeout=WAIT_S).topics[name].partitions) == 3)
        with pytest.raises(confluent_kafka.KafkaException) as caught:
            admin.create_topics([NewTopic(name, 2, 1)])[name].result(WAIT_S)
        assert caught.value.args[0].code() == confluent_kafka.KafkaError.TOPIC_ALREADY_EXISTS
        admin.delete_topics([name])[name].result(WAIT_S)
        until(lambda: name not in admin.list_topics(timeout=WAIT_S).topics)

    @pytest.mark.feature("configs")
    def test_configs(self, client: Confluent, node: Node, new_name: Names) -> None:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        name = new_name("confluent")
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(WAIT_S)
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        until(lambda: name in admin.list_topics(timeout=WAIT_S).topics)

        def value() -> Any:
            return admin.describe_configs([resource])[resource].result(WAIT_S)["retention.ms"].value

        until(lambda: value() == "604800000")
        change = ConfigResource(ConfigResource.Type.TOPIC, name)
        change.add_incremental_config(
            confluent_kafka.admin.ConfigEntry(
                "retention.ms", "123", incremental_operation=confluent_kafka.admin.AlterConfigOpType.SET
            )
        )
        admin.incremental_alter_configs([change])[change].result(WAIT_S)
        until(lambda: value() == "123")

    @pytest.mark.feature("offsets and delete-records")
    def test_records(self, client: Confluent, node: Node, new_name: Names) -> None:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        name = new_name("confluent")
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(WAIT_S)
        producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap})
        for _ in range(5):
            producer.produce(name, b"x")
        assert producer.flush(WAIT_S) == 0
        where = confluent_kafka.TopicPartition(name, 0, 3)
        assert admin.delete_records([where])[where].result(WAIT_S).low_watermark == 3
        wanted = {confluent_kafka.TopicPartition(name, 0): confluent_kafka.admin.OffsetSpec.earliest()}
        [found] = admin.list_offsets(wanted).values()
        assert found.result(WAIT_S).offset == 3

    @pytest.mark.feature("cluster, log dirs, quorum, features")
    def test_cluster(self, client: Confluent, node: Node) -> None:
        admin = AdminClient({"bootstrap.servers": node.bootstrap})
        found = admin.describe_cluster().result(WAIT_S)
        assert [f"{each.host}:{each.port}" for each in found.nodes] == [node.bootstrap]


class TestAio:
    @pytest.fixture
    def client(self) -> Aio:
        return Aio()

    @pytest.mark.feature("topics")
    def test_topics(self, client: Aio, node: Node, new_name: Names) -> None:
        async def run() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=node.bootstrap)
            await admin.start()
            try:
                name = new_name("aio")
                await admin.create_topics([AioNewTopic(name, 2, 1)])
                await until_async(admin.list_topics, lambda topics: name in topics)
                await admin.create_partitions({name: AioNewPartitions(3)})
                await until_async(lambda: admin.describe_topics([name]), lambda found: len(found[0]["partitions"]) == 3)
                await admin.delete_topics([name])
                await until_async(admin.list_topics, lambda topics: name not in topics)
            finally:
                await admin.close()

        asyncio.run(asyncio.wait_for(run(), 60))

    @pytest.mark.feature("configs")
    def test_configs(self, client: Aio, node: Node, new_name: Names) -> None:
        async def run() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=node.bootstrap)
            await admin.start()
            try:
                name = new_name("aio")
                await admin.create_topics([AioNewTopic(name, 1, 1)])
                change = AioConfigResource(AioConfigResourceType.TOPIC, name, configs={"retention.ms": "99999"})
                await admin.alter_configs([change])
                resource = AioConfigResource(AioConfigResourceType.TOPIC, name)
                await until_async(lambda: admin.describe_configs([resource]), lambda found: retention(found) == "99999")
            finally:
                await admin.close()

        asyncio.run(asyncio.wait_for(run(), 60))


class TestKafkaPython:
    @pytest.fixture
    def client(self) -> KafkaPython:
        return KafkaPython()

    @pytest.mark.feature("topics")
    def test_topics(self, client: KafkaPython, node: Node, new_name: Names) -> None:
        admin = kafka.KafkaAdminClient(bootstrap_servers=node.bootstrap)
        try:
            name = new_name("kafka-python")
            admin.create_topics([kafka.admin.NewTopic(name, 2, 1)])
            until(lambda: name in admin.list_topics())
            admin.create_partitions({name: kafka.admin.NewPartitions(3)})
            until(lambda: len(admin.describe_topics([name])[0]["partitions"]) == 3)
            admin.delete_topics([name])
            until(lambda: name not in admin.list_topics())
        finally:
            admin.close()
