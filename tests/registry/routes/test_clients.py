"""The real client library against the REST API on a socket: confluent-kafka's, its serializers included."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    ServerConfig,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.registry.memory import MemoryStore
from tests.registry.schemas import ONE, STRICT, TWO, record
from tests.support.waiting import WAIT_S

from ottla.registry.app import build
from ottla.web.serving import WebServer, listen


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A registry on loopback, in a thread of its own."""
    ports: queue.Queue[int] = queue.Queue()
    over: asyncio.Future[None]
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        nonlocal over
        over = loop.create_future()
        listening = await listen("127.0.0.1", 0)
        server = WebServer(build(MemoryStore()), listening)
        await server.start()
        ports.put(listening.getsockname()[1])
        await over
        await server.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{ports.get(timeout=WAIT_S)}"
    loop.call_soon_threadsafe(over.set_result, None)
    thread.join(WAIT_S)
    loop.close()


@pytest.fixture
def client(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url}) as made:
        yield made


def code_of(error: pytest.ExceptionInfo[SchemaRegistryError]) -> tuple[int, int]:
    return error.value.http_status_code, error.value.error_code


def test_schemas(client: SchemaRegistryClient) -> None:
    first = client.register_schema("orders/käse", Schema(ONE, "AVRO"))
    second = client.register_schema_full_response("orders/käse", Schema(TWO, "AVRO"), normalize_schemas=True)
    assert second.version == 2
    client.clear_caches()
    assert client.get_schema(first).schema_str == ONE
    assert client.get_schema_by_guid(second.guid).schema_str == TWO
    assert set(client.get_schema_types()) == {"AVRO", "JSON", "PROTOBUF"}
    assert client.get_subjects_by_schema_id(first) == ["orders/käse"]
    assert [(each.subject, each.version) for each in client.get_schema_versions(first)] == [("orders/käse", 1)]
    assert client.lookup_schema("orders/käse", Schema(TWO, "AVRO")).version == 2
    assert client.get_latest_version("orders/käse").schema_id == second.schema_id
    assert client.get_version("orders/käse", 1).schema_id == first
    assert client.get_versions("orders/käse") == [1, 2]
    assert "orders/käse" in client.get_subjects()
    with pytest.raises(SchemaRegistryError) as refused:
        client.register_schema("orders/käse", Schema(STRICT, "AVRO"))
    assert code_of(refused) == (409, 40901)
    assert client.test_compatibility("orders/käse", Schema(STRICT, "AVRO")) is False
    assert client.test_compatibility_all_versions("orders/käse", Schema(TWO, "AVRO")) is True
    assert client.delete_version("orders/käse", 1) == 1
    assert client.delete_version("orders/käse", 1, permanent=True) == 1
    assert client.delete_subject("orders/käse") == [2]
    assert client.delete_subject("orders/käse", permanent=True) == [2]
    client.clear_caches()
    with pytest.raises(SchemaRegistryError) as gone:
        client.get_latest_version("orders/käse")
    assert code_of(gone) == (404, 40401)


def test_references_and_metadata(client: SchemaRegistryClient) -> None:
    client.register_schema("address", Schema(record("zip", name="Address"), "AVRO"))
    owner = Metadata(None, MetadataProperties({"owner": "ann"}), None)
    parcel = Schema(
        record({"name": "to", "type": "Address"}, name="Parcel"),
        "AVRO",
        [SchemaReference("Address", "address", 1)],
        metadata=owner,
    )
    registered = client.register_schema("parcel", parcel)
    client.clear_caches()
    got = client.get_schema(registered)
    assert [(each.name, each.subject, each.version) for each in got.references] == [("Address", "address", 1)]
    assert client.get_latest_with_metadata("parcel", {"owner": "ann"}).schema_id == registered
    assert client.get_referenced_by("address", 1) == [registered]
    with pytest.raises(SchemaRegistryError) as refused:
        client.delete_subject("address")
    assert code_of(refused) == (422, 42206)


def test_settings_modes_and_contexts(client: SchemaRegistryClient) -> None:
    assert client.get_compatibility() == "BACKWARD"
    assert client.set_compatibility("settings", "FULL_TRANSITIVE") == {"compatibility": "FULL_TRANSITIVE"}
    assert client.get_compatibility("settings") == "FULL_TRANSITIVE"
    changed = client.set_config("settings", ServerConfig(ConfigCompatibilityLevel.NONE, compatibility_group="major"))
    assert changed == {"compatibility": "NONE", "compatibilityGroup": "major"}
    assert client.get_config("settings").compatibility_group == "major"
    assert client.delete_config("settings").compatibility_level is ConfigCompatibilityLevel.NONE
    assert client.get_global_mode() == "READWRITE"
    assert client.update_mode("settings", "READONLY") == "READONLY"
    assert client.get_mode("settings") == "READONLY"
    assert client.delete_mode("settings") == "READONLY"
    client.register_schema(":.west:orders", Schema(ONE, "AVRO"))
    assert client.get_contexts() == [".", ".west"]


CASES: list[tuple[str, Any, Any, dict[str, Any]]] = [
    ("avro", AvroSerializer, AvroDeserializer, {"schema_str": TWO}),
    (
        "json",
        JSONSerializer,
        JSONDeserializer,
        {"schema_str": json.dumps({"title": "T", "type": "object", "properties": {"a": {"type": "integer"}}})},
    ),
]


@pytest.mark.parametrize(("topic", "serializer", "deserializer", "options"), CASES)
def test_serializers(
    client: SchemaRegistryClient, topic: str, serializer: Any, deserializer: Any, options: dict[str, Any]
) -> None:
    context = SerializationContext(topic, MessageField.VALUE)
    value = {"a": 7, "b": 1} if topic == "avro" else {"a": 7}
    payload = serializer(schema_registry_client=client, **options)(value, context)
    schema_id = client.get_latest_version(f"{topic}-value").schema_id
    assert payload[:5] == b"\x00" + schema_id.to_bytes(4, "big")
    made = deserializer(schema_registry_client=client, **({} if topic == "avro" else {"schema_str": None}))
    assert made(payload, context) == value
