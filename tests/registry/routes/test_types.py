"""All three types over REST: registered, normalised, found again, compared with the messages of their kind."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from tests.registry.memory import Registry
from tests.registry.schemas import ONE, STRICT, TWO

JSON_ONE = '{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}'
JSON_TWO = '{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"additionalProperties":false}'
JSON_BAD = '{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}'
PROTO_ONE = 'syntax = "proto3";\npackage shop;\n\nmessage Order {\n  string a = 1;\n}\n'
PROTO_TWO = 'syntax = "proto3";\npackage shop;\n\nmessage Order {\n  string a = 1;\n  string b = 2;\n}\n'
PROTO_BAD = 'syntax = "proto3";\npackage shop;\n\nmessage Order {\n  int64 a = 1;\n}\n'

TYPES = {
    "AVRO": (ONE, TWO, STRICT),
    "JSON": (JSON_ONE, JSON_TWO, JSON_BAD),
    "PROTOBUF": (PROTO_ONE, PROTO_TWO, PROTO_BAD),
}
SAID = {
    "AVRO": "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'd' at path '/fields/1' in the new"
    " schema has no default value and is missing in the old schema', additionalInfo:'d'}",
    "JSON": '{errorType:"TYPE_CHANGED", description:"A type at path \'#/properties/a\' is different between the new'
    " schema and the old schema'}",
    "PROTOBUF": '{errorType:"FIELD_SCALAR_KIND_CHANGED", description:"The kind of a SCALAR field at path \'#/Order/1\''
    ' in the new schema does not match its kind in the old schema"}',
}


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.mark.parametrize("schema_type", TYPES)
def test_a_type_from_registering_to_reading(registry: Registry, schema_type: str) -> None:
    one, two, bad = TYPES[schema_type]
    assert registry.register("s", one, schemaType=schema_type) == 1
    assert registry.register("s", two, schemaType=schema_type) == 2
    assert registry.register("s", one, schemaType=schema_type) == 1
    got = registry.get("/subjects/s/versions/latest")
    assert (got["schemaType"], got["schema"]) == (schema_type, two)
    assert registry.post("/subjects/s", {"schema": one, "schemaType": schema_type})["version"] == 1
    normalized = registry.post("/subjects/n/versions?normalize=true", {"schema": one, "schemaType": schema_type})
    again = {"schema": normalized["schema"], "schemaType": schema_type}
    assert registry.post("/subjects/n?normalize=true", again)["id"] == normalized["id"]
    assert registry.refused("POST", "/subjects/s/versions", {"schema": "!", "schemaType": schema_type})[0] == 42201
    code, message = registry.refused("POST", "/subjects/s/versions", {"schema": bad, "schemaType": schema_type})
    assert (code, SAID[schema_type] in message) == (40901, True), message
    told = registry.post(
        "/compatibility/subjects/s/versions/1?verbose=true", {"schema": bad, "schemaType": schema_type}
    )["messages"]
    assert told == [
        SAID[schema_type],
        "{oldSchemaVersion: 1}",
        f"{{oldSchema: '{one}'}}",
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    ]


@pytest.mark.parametrize("other", ["JSON", "PROTOBUF"])
def test_types_do_not_mix_in_a_subject(registry: Registry, other: str) -> None:
    registry.register("s", ONE)
    body = {"schema": TYPES[other][0], "schemaType": other}
    code, message = registry.refused("POST", "/subjects/s/versions", body)
    assert (code, "Incompatible because of different schema type" in message) == (40901, True)
    registry.put("/config/s", {"compatibility": "NONE"})
    assert registry.post("/subjects/s/versions", body)["version"] == 2


def test_the_same_text_of_two_types_is_two_schemas(registry: Registry) -> None:
    text = '{"type":"string"}'
    avro, json = registry.register("a", text), registry.register("j", text, schemaType="JSON")
    assert avro != json
    assert registry.get(f"/schemas/ids/{json}")["schemaType"] == "JSON"
    assert registry.register("k", text, schemaType="JSON") == json


def test_protobuf_as_a_descriptor(registry: Registry) -> None:
    registry.register("s", PROTO_ONE, schemaType="PROTOBUF")
    serialized = registry.get("/subjects/s/versions/1?format=serialized")["schema"]
    descriptor = FileDescriptorProto.FromString(base64.b64decode(serialized))
    assert [message.name for message in descriptor.message_type] == ["Order"]
    assert registry.ask("GET", "/schemas/ids/1/schema?format=serialized").body.decode() == serialized
    # Clients register such descriptors; they are the same schema.
    assert registry.register("s", serialized, schemaType="PROTOBUF") == 1


@pytest.mark.parametrize("schema_type", TYPES)
def test_reserved_fields(registry: Registry, schema_type: str) -> None:
    one, two, _ = TYPES[schema_type]

    def body(schema: str, reserved: str) -> dict[str, Any]:
        properties = {"owner": "ann", **({"confluent:reserved": reserved} if reserved else {})}
        return {"schema": schema, "schemaType": schema_type, "metadata": {"properties": properties}}

    path = "/subjects/s/versions"
    registry.put("/config/s", {"validateFields": True})
    registry.post(path, body(one, "b, c"))
    code, message = registry.refused("POST", path, body(two, "b, c"))
    assert (code, "The new schema has field that conflicts with the reserved field b." in message) == (40901, True)
    code, message = registry.refused("POST", path, body(two, "c"))
    assert (code, "has reserved field b removed from its metadata" in message) == (40901, True)
    assert message.endswith("{validateFields: 'true', compatibility: 'BACKWARD'}]")
    registry.put("/config/s", {"validateFields": False})
    assert registry.post(path, body(two, ""))["version"] == 2
