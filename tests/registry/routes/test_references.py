"""Schemas that refer to others: resolved, of all types, over contexts, nested, and refused when that cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.registry.memory import Registry
from tests.registry.schemas import optional, record

from ottla.model.limits import REFERENCES_DEPTH_MAX, REFERENCES_PER_SCHEMA_MAX

ADDRESS = record("zip", name="Address")
PARCEL = record({"name": "to", "type": "Address"}, name="Parcel")


@pytest.fixture
def registry() -> Registry:
    return Registry()


def ref(name: str, subject: str, version: int = 1) -> dict[str, Any]:
    return {"name": name, "subject": subject, "version": version}


def test_references_are_given_out_with_the_schema(registry: Registry) -> None:
    registry.register("address", ADDRESS)
    registry.register("parcel", PARCEL, references=[ref("Address", "address")])
    got = registry.get("/subjects/parcel/versions/1")
    assert (got["schema"], got["references"]) == (PARCEL, [ref("Address", "address")])
    assert registry.get("/schemas/ids/2")["references"] == [ref("Address", "address")]
    resolved = json.loads(registry.get("/subjects/parcel/versions/1?format=resolved")["schema"])
    assert resolved["fields"][0]["type"] == json.loads(ADDRESS)
    assert registry.get("/subjects/parcel/versions/1?format=anything")["schema"] == PARCEL
    assert json.loads(registry.ask("GET", "/schemas/ids/2/schema?format=resolved").body) == resolved


def test_the_latest_version_of_a_reference_is_the_one_of_now(registry: Registry) -> None:
    registry.register("address", ADDRESS)
    registry.register("address", record("zip", optional("city", "", "string"), name="Address"))
    registry.register("parcel", PARCEL, references=[ref("Address", "address", -1)])
    assert registry.get("/subjects/parcel/versions/1")["references"] == [ref("Address", "address", 2)]
    assert registry.post("/subjects/parcel", {"schema": PARCEL, "references": [ref("Address", "address", -1)]})


def test_a_schema_sent_with_its_references_written_out_is_found(registry: Registry) -> None:
    registry.register("address", ADDRESS)
    registry.register("parcel", PARCEL, references=[ref("Address", "address")])
    written_out = record({"name": "to", "type": json.loads(ADDRESS)}, name="Parcel")
    assert registry.post("/subjects/parcel", {"schema": written_out})["id"] == 2
    assert registry.register("parcel", written_out) == 2


def test_references_over_several_levels(registry: Registry) -> None:
    registry.register("a", record("x", name="A"))
    registry.register("b", record({"name": "a", "type": "A"}, name="B"), references=[ref("A", "a")])
    both = record({"name": "b", "type": "B"}, {"name": "a", "type": "A"}, name="C")
    assert registry.refused("POST", "/subjects/c/versions", {"schema": both})[0] == 42201
    assert registry.register("c", both, references=[ref("B", "b"), ref("A", "a")]) == 3
    assert registry.get("/subjects/a/versions/1/referencedby") == [2, 3]


def test_references_in_contexts(registry: Registry) -> None:
    """A reference without a context is one to the context of the schema."""
    registry.register("address", record("other", name="Address"))
    registry.register(":.west:address", ADDRESS)
    registry.register(":.west:parcel", PARCEL, references=[ref("Address", "address")])
    assert registry.get("/subjects/address/versions/1/referencedby") == []
    assert registry.get("/subjects/:.west:address/versions/1/referencedby") == [2]
    path = "/subjects/:.west:parcel/versions/1"
    assert registry.get(path)["references"] == [ref("Address", "address")]
    assert registry.get(f"{path}?referenceFormat=qualified")["references"] == [ref("Address", ":.west:address")]
    registry.register("far", PARCEL, references=[ref("Address", ":.west:address")])
    assert registry.get("/subjects/:.west:address/versions/1/referencedby") == [2, 2]
    assert registry.refused("DELETE", "/subjects/:.west:address")[0] == 42206


@pytest.mark.parametrize(
    ("schema_type", "inner", "outer", "name"),
    [
        (
            "JSON",
            '{"type":"object","properties":{"zip":{"type":"string"}}}',
            '{"type":"object","properties":{"to":{"$ref":"address.json"}}}',
            "address.json",
        ),
        (
            "PROTOBUF",
            'syntax = "proto3";\npackage shop;\n\nmessage Address {\n  string zip = 1;\n}\n',
            'syntax = "proto3";\npackage shop;\n\nimport "address.proto";\n\nmessage Parcel {\n  Address to = 1;\n}\n',
            "address.proto",
        ),
    ],
)
def test_references_of_other_types(registry: Registry, schema_type: str, inner: str, outer: str, name: str) -> None:
    pytest.importorskip(f"ottla.schemas.{schema_type.lower()}", exc_type=ImportError)
    registry.register("address", inner, schemaType=schema_type)
    body = {"schema": outer, "schemaType": schema_type, "references": [ref(name, "address")]}
    assert registry.post("/subjects/parcel/versions", body)["id"] == 2
    assert registry.get("/subjects/parcel/versions/1")["schemaType"] == schema_type
    assert registry.refused("DELETE", "/subjects/address")[0] == 42206


def test_bounds(registry: Registry) -> None:
    registry.register("s0", record("x", name="R0"))
    for number in range(1, REFERENCES_DEPTH_MAX + 1):
        schema = record({"name": "r", "type": f"R{number - 1}"}, name=f"R{number}")
        registry.register(f"s{number}", schema, references=[ref(f"R{number - 1}", f"s{number - 1}")])
    deep = REFERENCES_DEPTH_MAX
    schema = record({"name": "r", "type": f"R{deep}"}, name="Last")
    code, message = registry.refused(
        "POST", "/subjects/last/versions", {"schema": schema, "references": [ref(f"R{deep}", f"s{deep}")]}
    )
    assert (code, "nested" in message) == (42201, True)
    many = [ref(f"R{number}", "s0") for number in range(REFERENCES_PER_SCHEMA_MAX + 1)]
    assert registry.refused("POST", "/subjects/many/versions", {"schema": ADDRESS, "references": many})[0] == 42201
