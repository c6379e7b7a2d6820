"""confluent-kafka's registry client and serializers, unchanged: records travel through a broker of ours."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
    header_schema_id_serializer,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from tests.support.waiting import WAIT_S

from ottla.schemas import framing
from ottla.testing.broker import EmbeddedBroker

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
}
ORDER_JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["id"],
}
FIRST = {"id": 1, "note": "first"}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[SchemaRegistryClient]:
    client = SchemaRegistryClient({"url": broker.registry.url})
    yield client
    client.close()


class Topic:
    """A topic that serializers write and deserializers read, through the broker."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self.name = f"orders-{next(_numbers)}"
        self.subject = f"{self.name}-value"
        self._bootstrap = broker.bootstrap
        self._reads = itertools.count()

    def write(self, serializer: Any, *values: Any) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap})
        for value in values:
            headers: list[Any] = []
            context = SerializationContext(self.name, MessageField.VALUE, headers)
            producer.produce(self.name, serializer(value, context), headers=headers)
        assert producer.flush(WAIT_S) == 0

    def messages(self, count: int) -> list[Message]:
        """The first `count` records."""
        group = f"{self.name}-{next(self._reads)}"
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
        try:
            consumer.subscribe([self.name])
            found = consumer.consume(count, 20)
            assert len(found) == count and all(each.error() is None for each in found)
            return found
        finally:
            consumer.close()

    def read(self, deserializer: Any, count: int) -> list[Any]:
        return [
            deserializer(each.value(), SerializationContext(self.name, MessageField.VALUE, each.headers() or []))
            for each in self.messages(count)
        ]


@pytest.fixture
def topic(broker: EmbeddedBroker) -> Topic:
    return Topic(broker)


def test_avro(client: SchemaRegistryClient, topic: Topic) -> None:
    second = {**ORDER, "fields": [*ORDER["fields"], {"name": "price", "type": "double", "default": 0.5}]}
    priced = {"id": 2, "note": None, "price": 9.5}
    topic.write(AvroSerializer(client, json.dumps(ORDER)), FIRST)
    topic.write(AvroSerializer(client, json.dumps(second)), priced)
    assert topic.read(AvroDeserializer(client), 2) == [FIRST, priced]
    # Read with the second version: what the first lacks has its default.
    assert topic.read(AvroDeserializer(client, json.dumps(second)), 2) == [{**FIRST, "price": 0.5}, priced]
    assert client.get_versions(topic.subject) == [1, 2]
    latest = client.get_latest_version(topic.subject)
    assert (latest.version, json.loads(latest.schema.schema_str or "")) == (2, second)


def test_ids_in_payloads_and_in_headers(client: SchemaRegistryClient, topic: Topic) -> None:
    topic.write(AvroSerializer(client, json.dumps(ORDER)), FIRST)
    conf = {"schema.id.serializer": header_schema_id_serializer}
    topic.write(AvroSerializer(client, json.dumps(ORDER), conf=conf), FIRST)
    assert topic.read(AvroDeserializer(client), 2) == [FIRST, FIRST]
    first, second = topic.messages(2)
    known = client.lookup_schema(topic.subject, Schema(json.dumps(ORDER), "AVRO"))
    assert framing.unframe(first.value()).schema_id == known.schema_id
    assert first.value()[5:] == second.value()  # nothing but the fields
    ((name, value),) = second.headers()
    assert name == framing.VALUE_HEADER and str(framing.unframe(value).guid) == known.guid
    assert json.loads(client.get_schema_by_guid(known.guid).schema_str or "") == ORDER


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [(topic_record_subject_name_strategy, "{topic}-shop.Order"), (record_subject_name_strategy, "shop.Order")],
)
def test_subject_strategies(client: SchemaRegistryClient, topic: Topic, strategy: Any, subject: str) -> None:
    conf = {"subject.name.strategy": strategy}
    topic.write(AvroSerializer(client, json.dumps(ORDER), conf=conf), FIRST)
    assert topic.read(AvroDeserializer(client, conf=conf), 1) == [FIRST]
    assert client.get_latest_version(subject.format(topic=topic.name)).version == 1
    assert topic.subject not in client.get_subjects()


def test_the_latest_version_and_keys(client: SchemaRegistryClient, topic: Topic) -> None:
    """A program that registers nothing itself, and whose readers look for the latest version."""
    client.register_schema(topic.subject, Schema(json.dumps(ORDER), "AVRO"))
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    topic.write(AvroSerializer(client, None, conf=conf), FIRST)
    assert topic.read(AvroDeserializer(client, None, conf={"use.latest.version": True}), 1) == [FIRST]
    unknown = AvroSerializer(client, '{"type":"record","name":"X","fields":[]}', conf={"auto.register.schemas": False})
    with pytest.raises(SchemaRegistryError) as refused:
        unknown({}, SerializationContext(topic.name, MessageField.KEY))
    assert refused.value.error_code == 40401


def test_references_between_avro_schemas(client: SchemaRegistryClient, topic: Topic) -> None:
    place = {"type": "record", "name": "Place", "namespace": "geo", "fields": [{"name": "city", "type": "string"}]}
    trip = {
        "type": "record",
        "name": "Trip",
        "fields": [{"name": "start", "type": "geo.Place"}, {"name": "end", "type": "geo.Place"}],
    }
    client.register_schema(f"{topic.name}-place", Schema(json.dumps(place), "AVRO"))
    reference = SchemaReference("geo.Place", f"{topic.name}-place", 1)
    schema = Schema(json.dumps(trip), "AVRO", [reference])
    there = {"start": {"city": "Prague"}, "end": {"city": "Vienna"}}
    topic.write(AvroSerializer(client, schema), there)
    assert topic.read(AvroDeserializer(client), 1) == [there]
    (user,) = client.get_referenced_by(f"{topic.name}-place", 1)
    assert user == client.get_latest_version(topic.subject).schema_id
    with pytest.raises(SchemaRegistryError) as refused:
        client.delete_subject(f"{topic.name}-place")
    assert refused.value.error_code == 42206


def test_json_schema(client: SchemaRegistryClient, topic: Topic) -> None:
    text = json.dumps(ORDER_JSON)
    values = [FIRST, {"id": 2}]
    topic.write(JSONSerializer(text, client), *values)
    assert topic.read(JSONDeserializer(text, schema_registry_client=client), 2) == values
    found = client.get_latest_version(topic.subject)
    assert found.schema.schema_type == "JSON" and json.loads(found.schema.schema_str) == ORDER_JSON
    narrower = {**ORDER_JSON, "properties": {**ORDER_JSON["properties"], "id": {"type": "string"}}}
    assert not client.test_compatibility(topic.subject, Schema(json.dumps(narrower), "JSON"))


def order_message() -> Any:
    """A message class with an import and a nested type, as protoc would make it."""
    file = descriptor_pb2.FileDescriptorProto(name="shop/order.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name in ("Unused", "Order"):
        message = file.message_type.add(name=name)
        message.field.add(name="id", number=1, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    message.field.add(
        name="at", number=2, type=kinds.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=kinds.LABEL_OPTIONAL
    )
    line = message.nested_type.add(name="Line")
    line.field.add(name="item", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    message.field.add(
        name="lines", number=3, type=kinds.TYPE_MESSAGE, type_name=".shop.Order.Line", label=kinds.LABEL_REPEATED
    )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_protobuf(client: SchemaRegistryClient, broker: EmbeddedBroker, topic: Topic) -> None:
    kind = order_message()
    value = kind(id=7, lines=[kind.Line(item="tea"), kind.Line(item="milk")])
    value.at.seconds = 1_700_000_000
    topic.write(ProtobufSerializer(kind, client, {"use.deprecated.format": False}), value)
    # Another client: the one that registered would take the text for the descriptor, out of its cache.
    with SchemaRegistryClient({"url": broker.registry.url}) as reader:
        assert topic.read(ProtobufDeserializer(kind, schema_registry_client=reader), 1) == [value]
    found = client.get_latest_version(topic.subject)
    assert found.schema.schema_type == "PROTOBUF" and "message Order {" in found.schema.schema_str
    (message,) = topic.messages(1)
    framed = framing.unframe(message.value(), with_indexes=True)
    assert (framed.schema_id, framed.message_indexes) == (found.schema_id, (1,))  # the second message of the file


def test_normalised_schemas_are_one(client: SchemaRegistryClient, topic: Topic) -> None:
    spaced = '{"fields": [{"type": "int", "name": "a"}], "name": "R", "type": "record"}'
    plain = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
    first = client.register_schema(topic.subject, Schema(spaced, "AVRO"), normalize_schemas=True)
    assert client.register_schema(topic.subject, Schema(plain, "AVRO"), normalize_schemas=True) == first
    assert client.get_versions(topic.subject) == [1]


def test_settings_modes_and_deletes(client: SchemaRegistryClient, topic: Topic) -> None:
    client.register_schema(topic.subject, Schema(json.dumps(ORDER), "AVRO"))
    client.set_config(topic.subject, ServerConfig(compatibility=ConfigCompatibilityLevel.FORWARD_TRANSITIVE))
    assert client.get_config(topic.subject).compatibility_level == "FORWARD_TRANSITIVE"
    assert client.get_compatibility() == "BACKWARD"
    # A field more without a default: old readers do not mind it.
    more = {**ORDER, "fields": [*ORDER["fields"], {"name": "price", "type": "double"}]}
    assert client.test_compatibility(topic.subject, Schema(json.dumps(more), "AVRO"))
    less = {**ORDER, "fields": ORDER["fields"][1:]}
    assert not client.test_compatibility(topic.subject, Schema(json.dumps(less), "AVRO"))
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema(topic.subject, Schema(json.dumps(less), "AVRO"))
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 40901)
    assert client.get_global_mode() == "READWRITE"
    client.update_mode(topic.subject, "READONLY")
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema(topic.subject, Schema(json.dumps(more), "AVRO"))
    assert refused.value.error_code == 42205
    client.delete_mode(topic.subject)
    assert client.delete_subject(topic.subject) == [1]
    with pytest.raises(SchemaRegistryError) as refused:
        client.get_latest_version(topic.subject)
    assert refused.value.error_code == 40401
    assert client.delete_subject(topic.subject, permanent=True) == [1]


def test_metadata_and_latest_with_it(client: SchemaRegistryClient, topic: Topic) -> None:
    for major in ("1", "2"):
        metadata = Metadata(None, MetadataProperties({"major": major}), None)
        client.register_schema(topic.subject, Schema(json.dumps({**ORDER, "doc": major}), "AVRO", metadata=metadata))
    found = client.get_latest_with_metadata(topic.subject, {"major": "1"})
    assert found.version == 1 and json.loads(found.schema.schema_str)["doc"] == "1"


def test_the_asyncio_client(broker: EmbeddedBroker, topic: Topic) -> None:
    async def run() -> tuple[int, list[int], str | None]:
        client = AsyncSchemaRegistryClient({"url": broker.registry.url})
        try:
            made = await client.register_schema(topic.subject, Schema(json.dumps(ORDER), "AVRO"))
            found = await client.get_schema(made)
            return made, await client.get_versions(topic.subject), found.schema_str
        finally:
            await client.aclose()

    made, versions, text = asyncio.run(run())
    assert made > 0 and versions == [1] and json.loads(text or "") == ORDER


def test_contexts(client: SchemaRegistryClient, topic: Topic) -> None:
    client.register_schema(f":.other:{topic.subject}", Schema('"string"', "AVRO"))
    assert client.get_contexts() == [".", ".other"]
    assert topic.subject not in client.get_subjects()
    assert client.get_latest_version(f":.other:{topic.subject}").version == 1
