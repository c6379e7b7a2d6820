"""Tags inside of Avro schemas over REST: found, written in, taken out, handed on to the next version."""

from __future__ import annotations

from typing import Any

import pytest
from tests.registry.memory import Registry
from tests.registry.schemas import ONE, TWO, optional, record


@pytest.fixture
def registry() -> Registry:
    return Registry()


def place(path: str, *tags: str) -> dict[str, Any]:
    kind = "sr_field" if "." in path else "sr_record"
    return {"schemaEntity": {"entityPath": path, "entityType": kind}, "tags": list(tags)}


def test_tags_are_found(registry: Registry) -> None:
    field = {**optional("card", "", "string"), "confluent:tags": ["PII", "SECRET"]}
    registry.register("orders", record("a", field, **{"confluent:tags": ["SHOP"]}))
    assert "schemaTags" not in registry.get("/subjects/orders/versions/1")
    of_field = place("Order.card", "PII", "SECRET")
    assert registry.get("/subjects/orders/versions/1?findTags=PII")["schemaTags"] == [of_field]
    assert registry.get("/subjects/orders/versions/1?findTags=NONE&findTags=SECRET")["schemaTags"] == [of_field]
    assert registry.get("/schemas/ids/1?findTags=*")["schemaTags"] == [place("Order", "SHOP"), of_field]


def test_tags_are_written_when_registering(registry: Registry) -> None:
    """As Confluent's testRegisterSchemaTagsBasic."""
    path = "/subjects/orders/versions"
    registry.register("orders", ONE)
    added = registry.post(path, {"schema": ONE, "version": 2, "schemaTagsToAdd": [place("Order", "T1", "T2")]})
    assert added["id"] == 2
    tagged = record("a", **{"confluent:tags": ["T1", "T2"]})
    got = registry.get(f"{path}/latest?findTags=*")
    assert (got["schema"], got["schemaTags"]) == (tagged, [place("Order", "T1", "T2")])
    assert got["metadata"] == {"properties": {"confluent:version": "2"}}
    registry.post(path, {"schema": tagged, "schemaTagsToRemove": [place("Order", "T2")]})
    assert registry.get(f"{path}/3")["schema"] == record("a", **{"confluent:tags": ["T1"]})
    assert registry.get(f"{path}/3")["metadata"] == {"properties": {"confluent:version": "3"}}
    registry.post(path, {"schema": TWO, "propagateSchemaTags": True})
    assert registry.get(f"{path}/4?findTags=*")["schemaTags"] == [place("Order", "T1")]


def test_tags_metadata_and_rules_of_a_version_are_changed(registry: Registry) -> None:
    rules = {"domainRules": [{"name": "one", "type": "CEL"}, {"name": "two", "type": "CEL"}]}
    registry.register("orders", ONE, ruleSet=rules)
    registry.post(
        "/subjects/orders/versions/1/tags",
        {
            "newVersion": 2,
            "tagsToAdd": [place("Order.a", "PII")],
            "metadata": {"properties": {"owner": "ann"}},
            "rulesToMerge": {"domainRules": [{"name": "three", "type": "CEL"}]},
            "rulesToRemove": ["one"],
        },
    )
    got = registry.get("/subjects/orders/versions/2?findTags=*")
    assert got["schemaTags"] == [place("Order.a", "PII")]
    assert got["metadata"] == {"properties": {"confluent:version": "2", "owner": "ann"}}
    assert [rule["name"] for rule in got["ruleSet"]["domainRules"]] == ["two", "three"]
    registry.post("/subjects/orders/versions/latest/tags", {"newVersion": 3, "tagsToRemove": [place("Order.a", "PII")]})
    assert registry.get("/subjects/orders/versions/3")["schema"] == ONE


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"newVersion": 2, "tagsToAdd": [place("Order.nowhere", "T")]}, 42201),
        ({"newVersion": 2, "tagsToAdd": [{"tags": ["T"]}]}, 400),
        ({"newVersion": 2, "tagsToAdd": [place("Order", 7)]}, 400),  # type: ignore[arg-type]
        ({"newVersion": 2, "tagsToAdd": "T"}, 400),
        ({"newVersion": "2"}, 400),
        ({"newVersion": 7, "tagsToAdd": [place("Order", "T")]}, 42201),
        ({"newVersion": 2, "rulesToRemove": "one"}, 400),
        ({"newVersion": 2, "rulesToRemove": ["one"], "ruleSet": {}}, 42210),
    ],
)
def test_changes_that_are_none(registry: Registry, body: dict[str, Any], code: int) -> None:
    registry.register("orders", ONE)
    assert registry.refused("POST", "/subjects/orders/versions/1/tags", body)[0] == code
    assert registry.get("/subjects/orders/versions") == [1]


def test_tags_of_what_is_not_there(registry: Registry) -> None:
    assert registry.refused("POST", "/subjects/orders/versions/1/tags", {"newVersion": 2})[0] == 40401
    registry.register("orders", '{"type":"object"}', schemaType="JSON")
    assert registry.refused("POST", "/subjects/orders/versions/9/tags", {"newVersion": 2})[0] == 40402
    body = {"newVersion": 2, "tagsToAdd": [place("object", "T")]}
    assert registry.refused("POST", "/subjects/orders/versions/1/tags", body)[0] == 42201


def test_tags_are_found_in_other_types(registry: Registry) -> None:
    inner = (
        '"b":{"type":"object","confluent:tags":["DEEP"],"properties":{"c":{"type":"string","confluent:tags":["PII"]}}}'
    )
    many = '"d":{"type":"array","items":{"type":"object","confluent:tags":["MANY"]}}'
    text = f'{{"type":"object","confluent:tags":["TOP"],"properties":{{{inner},{many}}}}}'
    registry.register("json", text, schemaType="JSON")
    assert [(each["schemaEntity"]["entityPath"], each["tags"]) for each in _found(registry, "json")] == [
        ("object", ["TOP"]),
        ("object.b", ["DEEP"]),
        ("object.b.object.c", ["PII"]),
        ("object.d.array.object", ["MANY"]),
    ]
    proto = (
        'syntax = "proto3";\nimport "confluent/meta.proto";\n'
        'message Order {\n  string card = 1 [(confluent.field_meta).tags = "PII"];\n}\n'
    )
    registry.register("proto", proto, schemaType="PROTOBUF")
    assert _found(registry, "proto") == [place("Order.card", "PII")]


def _found(registry: Registry, subject: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = registry.get(f"/subjects/{subject}/versions/1?findTags=*")["schemaTags"]
    return found
