"""Registry clients of other languages: kafkajs's and Confluent's for JavaScript, franz-go's; they read each other."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from tests.support import tools
from tests.support.clients import go, nodejs
from tests.support.lines import HarnessError, LineServer
from tests.support.waiting import WAIT_S

from ottla.testing.broker import EmbeddedBroker

pytestmark = pytest.mark.compat

AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "int"}, {"name": "item", "type": "string"}],
}
JSON = {"type": "object", "properties": {"id": {"type": "integer"}, "item": {"type": "string"}}, "required": ["id"]}
PROTO = 'syntax = "proto3"; package shop; message Order { int32 id = 1; string item = 2; }'
OBJECTS = [{"id": 1, "item": "tea"}, {"id": 2, "item": "milk"}]
SCHEMAS = {"AVRO": json.dumps(AVRO), "JSON": json.dumps(JSON), "PROTOBUF": PROTO}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineServer]:
    tools.require(tools.missing_node())
    server = nodejs.harness(tmp_path_factory.mktemp("node") / "err.log")
    yield server
    server.close()


@pytest.fixture(scope="module")
def golang(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineServer]:
    tools.require(tools.missing_go())
    server = go.harness(tmp_path_factory.mktemp("go") / "err.log")
    yield server
    server.close()


@pytest.fixture
def request_of(broker: EmbeddedBroker) -> dict[str, Any]:
    """What every request says."""
    topic = f"orders-{next(_numbers)}"
    return {
        "bootstrap": broker.bootstrap,
        "url": broker.registry.url,
        "topic": topic,
        "subject": f"{topic}-value",
        "group": topic,
        "count": len(OBJECTS),
        "objects": OBJECTS,
    }


@pytest.mark.parametrize(
    ("client", "kind"),
    [("kafkajs", "AVRO"), ("kafkajs", "JSON"), ("kafkajs", "PROTOBUF"), ("confluent", "AVRO"), ("confluent", "JSON")],
)
def test_javascript(
    node: LineServer, broker: EmbeddedBroker, request_of: dict[str, Any], client: str, kind: str
) -> None:
    asked = {**request_of, "client": client, "type": kind, "schema": SCHEMAS[kind]}
    made = node.ask({"verb": "sr_write", **asked})
    assert node.ask({"verb": "sr_read", **asked})["objects"] == OBJECTS
    with SchemaRegistryClient({"url": broker.registry.url}) as python:
        found = python.get_latest_version(asked["subject"])
        assert (found.schema_id, found.version, found.schema.schema_type) == (made["id"], 1, kind)


def test_javascript_reads_what_python_wrote(
    node: LineServer, broker: EmbeddedBroker, request_of: dict[str, Any]
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    with SchemaRegistryClient({"url": broker.registry.url}) as python:
        serializer = AvroSerializer(python, SCHEMAS["AVRO"])
        for each in OBJECTS:
            context = SerializationContext(request_of["topic"], MessageField.VALUE)
            producer.produce(request_of["topic"], serializer(each, context))
    assert producer.flush(WAIT_S) == 0
    for client in ("kafkajs", "confluent"):
        asked = {**request_of, "verb": "sr_read", "client": client, "type": "AVRO", "group": client}
        assert node.ask(asked)["objects"] == OBJECTS


def test_go(golang: LineServer, request_of: dict[str, Any]) -> None:
    asked = {**request_of, "type": "JSON", "schema": SCHEMAS["JSON"]}
    made = golang.ask({"verb": "sr_write", **asked})
    assert made["version"] == 1
    assert golang.ask({"verb": "sr_read", **asked}) == {"objects": OBJECTS, "types": ["JSON", "JSON"]}


def test_go_tours_the_api(golang: LineServer, request_of: dict[str, Any]) -> None:
    own = {**AVRO, "name": "Toured"}  # no other subject has it
    wider = {**own, "fields": [*AVRO["fields"], {"name": "price", "type": "double"}]}
    asked = {**request_of, "type": "AVRO", "schema": json.dumps(own), "values": [json.dumps(wider)]}
    seen = golang.ask({"verb": "sr_tour", **asked})
    messages = seen.pop("messages")
    assert any("price" in each for each in messages), messages
    assert seen == {
        "version": 1,
        "level": "FULL",
        "default": "BACKWARD",
        "compatible": False,
        "refused": "40901",
        "found": True,
        "mode": "READWRITE",
        "types": ["AVRO", "PROTOBUF", "JSON"],
        "deleted": [1],
        "gone": "40401",
        "forgotten": "40403",
    }


def test_the_harnesses_are_told_what_is_wrong(node: LineServer, golang: LineServer, request_of: dict[str, Any]) -> None:
    """An unparsable schema is an error of the client, with the registry's words."""
    asked = {**request_of, "verb": "sr_write", "type": "AVRO", "schema": '{"type": "recrod"}', "client": "confluent"}
    for server in (node, golang):
        with pytest.raises(HarnessError, match="recrod"):
            server.ask(asked)
