"""Subjects and versions over REST: registering, looking up, listing, getting; ids are shared, versions are not."""

from __future__ import annotations

import json

import pytest
from tests.registry.memory import Registry
from tests.registry.schemas import LOOSE, ONE, STRICT, THREE, TWO, record


@pytest.fixture
def registry() -> Registry:
    return Registry()


def test_registering_gives_ids_in_order_and_versions_per_subject(registry: Registry) -> None:
    assert [registry.register("orders", schema) for schema in (ONE, TWO, THREE)] == [1, 2, 3]
    assert registry.register("others", TWO) == 2
    assert registry.get("/subjects/orders/versions") == [1, 2, 3]
    assert registry.get("/subjects/others/versions") == [1]
    assert registry.get("/subjects") == ["orders", "others"]


def test_registering_again_changes_nothing(registry: Registry) -> None:
    first = registry.post("/subjects/orders/versions", {"schema": ONE})
    written = len(registry.store.records)
    registry.store.now_ms += 1_000
    spaced = json.dumps(json.loads(ONE), indent=4)
    assert registry.post("/subjects/orders/versions", {"schema": spaced, "schemaType": "AVRO"}) == first
    assert len(registry.store.records) == written
    assert first == {
        "id": 1,
        "version": 1,
        "guid": first["guid"],
        "schemaType": "AVRO",
        "schema": ONE,
        "ts": 1_700_000_000_000,
        "deleted": False,
    }


def test_a_version_as_it_is_given_out(registry: Registry) -> None:
    registry.register("orders", ONE)
    one = registry.get("/subjects/orders/versions/1")
    assert list(one) == ["subject", "version", "id", "guid", "schemaType", "schema", "ts", "deleted"]
    assert (one["subject"], one["version"], one["id"], one["schema"]) == ("orders", 1, 1, ONE)
    for spelt in ("latest", "-1", "LATEST", "1"):
        assert registry.get(f"/subjects/orders/versions/{spelt}") == one
    assert registry.ask("GET", "/subjects/orders/versions/latest/schema").body.decode() == ONE


def test_looking_up_finds_the_version_or_says_what_is_missing(registry: Registry) -> None:
    registry.register("orders", ONE)
    registry.register("orders", TWO)
    found = registry.post("/subjects/orders", {"schema": TWO})
    assert (found["subject"], found["version"], found["id"]) == ("orders", 2, 2)
    assert registry.refused("POST", "/subjects/orders", {"schema": THREE}) == (40403, "Schema not found")
    assert registry.refused("POST", "/subjects/nobody", {"schema": ONE}) == (40401, "Subject 'nobody' not found.")
    assert registry.refused("POST", "/subjects/orders", {"schema": "{"})[0] == 42201


REFUSALS = [
    ("GET", "/subjects/nobody/versions", 40401, "Subject 'nobody' not found."),
    ("GET", "/subjects/nobody/versions/1", 40401, "Subject 'nobody' not found."),
    ("GET", "/subjects/nobody/versions/latest", 40401, "Subject 'nobody' not found."),
    ("GET", "/subjects/orders/versions/7", 40402, "Version 7 not found."),
    ("GET", "/subjects/orders/versions/7/schema", 40402, "Version 7 not found."),
    ("GET", "/subjects/orders/versions/7/referencedby", 40402, "Version 7 not found."),
    ("DELETE", "/subjects/orders/versions/7", 40402, "Version 7 not found."),
    ("DELETE", "/subjects/nobody/versions/1", 40401, "Subject 'nobody' not found."),
    ("DELETE", "/subjects/nobody", 40401, "Subject 'nobody' not found."),
    ("GET", "/schemas/ids/99", 40403, "Schema 99 not found"),
    ("GET", "/schemas/ids/99/schema", 40403, "Schema 99 not found"),
    ("GET", "/schemas/ids/99/subjects", 40403, "Schema not found"),
    ("GET", "/schemas/ids/99/versions", 40403, "Schema not found"),
    ("GET", "/schemas/guids/nonsense", 40403, "Schema nonsense not found"),
    ("GET", "/schemas/ids/one", 404, "HTTP 404 Not Found"),
    ("GET", "/schemas/ids/99999999999", 404, "HTTP 404 Not Found"),
    ("GET", "/subjects/orders/metadata?key=a&value=b", 40403, "Schema not found"),
    ("GET", "/subjects/nobody/metadata?key=a&value=b", 40401, "Subject 'nobody' not found."),
    ("GET", "/config/orders", 40408, "Subject 'orders' does not have subject-level compatibility configured"),
    ("GET", "/mode/orders", 40409, "Subject 'orders' does not have subject-level mode configured"),
    ("DELETE", "/config/orders", 40401, "Subject 'orders' not found."),
    ("DELETE", "/mode/orders", 40401, "Subject 'orders' not found."),
    *(
        (
            method,
            f"/subjects/orders/versions/{version}",
            42202,
            f"The specified version '{version}' is not a valid version id. Allowed values are between [1, 2^31-1] and"
            ' the string "latest"',
        )
        for method in ("GET", "DELETE")
        for version in ("earliest", "0", "-2", "1.5", "99999999999")
    ),
]


@pytest.mark.parametrize(("method", "target", "code", "message"), REFUSALS)
def test_what_is_not_there(registry: Registry, method: str, target: str, code: int, message: str) -> None:
    registry.register("orders", ONE)
    assert registry.refused(method, target) == (code, message)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"schema": "not a schema"}, 42201),
        ({"schema": '{"type":"record","name":"A","fields":[{"name":"a","type":"nothing"}]}'}, 42201),
        ({"schema": ""}, 42201),
        ({}, 42201),
        ({"schema": ONE, "schemaType": "XML"}, 42201),
        ({"schema": ONE, "references": [{"name": "X", "subject": "nobody", "version": 1}]}, 42201),
        ({"schema": ONE, "references": [{"name": "X"}]}, 42201),
        ({"schema": ONE, "references": [{"name": "X", "subject": "x", "version": 0}]}, 42201),
        ({"schema": ONE, "references": "X"}, 400),
        ({"schema": 7}, 400),
        ({"schema": ONE, "version": "seven"}, 400),
        ({"schema": ONE, "id": 2**40}, 400),
        ({"schema": ONE, "metadata": []}, 400),
        ({"schema": ONE, "metadata": {"properties": {"a": []}}}, 400),
        ({"schema": ONE, "metadata": {"tags": {"a": "b"}}}, 400),
        ({"schema": ONE, "ruleSet": {"domainRules": [{"name": "r", "mode": "SOMETIMES", "type": "T"}]}}, 400),
        ({"schema": ONE, "ruleSet": {"domainRules": [{"type": "T"}]}}, 42210),
        ({"schema": ONE, "ruleSet": {"domainRules": [{"name": "r"}]}}, 42210),
        ({"schema": ONE, "ruleSet": {"domainRules": [{"name": "a b", "type": "T"}]}}, 42210),
        ({"schema": ONE, "ruleSet": {"domainRules": [{"name": "r", "type": "T"}] * 2}}, 42210),
        ({"schema": ONE, "ruleSet": {"migrationRules": [{"name": "r", "type": "T", "mode": "READ"}]}}, 42210),
        ({"schema": "x" * 1_000_001}, 42209),
        ({"schema": ONE, "id": 7}, 42205),
        ({"schema": ONE, "version": 3}, 42201),
        ([], 400),
        (None, 422),
        (b"null", 422),
        (b"{", 400),
        (b"[" * 200_000, 400),
    ],
)
def test_what_cannot_be_registered(registry: Registry, body: object, code: int) -> None:
    assert registry.refused("POST", "/subjects/orders/versions", body)[0] == code
    assert registry.store.records == []
    assert registry.get("/subjects") == []


@pytest.mark.parametrize("subject", ["__GLOBAL", "__EMPTY", ":.__GLOBAL:orders", "a%0Ab", "x" * 1_025])
def test_names_that_no_subject_may_have(registry: Registry, subject: str) -> None:
    assert registry.refused("POST", f"/subjects/{subject}/versions", {"schema": ONE})[0] == 42208


@pytest.mark.parametrize("subject", ["a%2Fb", "a%20b", "%C3%BCber", "a%3Fb", "a+b", "%25", ":orders", "*"])
def test_names_with_anything_in_them(registry: Registry, subject: str) -> None:
    registry.register(subject, ONE)
    assert registry.get(f"/subjects/{subject}/versions/1")["id"] == 1
    assert len(registry.get("/subjects")) == 1
    assert registry.delete(f"/subjects/{subject}") == [1]


def test_the_message_of_an_incompatible_schema(registry: Registry) -> None:
    registry.register("orders", ONE)
    assert registry.refused("POST", "/subjects/orders/versions", {"schema": STRICT}) == (
        40901,
        'Schema being registered is incompatible with an earlier schema for subject "orders", details: ['
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'd' at path '/fields/1' in the new"
        " schema has no default value and is missing in the old schema', additionalInfo:'d'}, {oldSchemaVersion: 1},"
        f" {{oldSchema: '{ONE}'}}, {{validateFields: 'false', compatibility: 'BACKWARD'}}]",
    )
    assert registry.get("/subjects/orders/versions") == [1]
    assert registry.post("/subjects/orders/versions?force=true", {"schema": STRICT})["version"] == 2


def test_listing_with_prefixes_and_pages(registry: Registry) -> None:
    for subject in ("a-key", "a-value", "b-value", ":.west:a-value"):
        registry.register(subject, ONE)
    assert registry.get("/subjects") == [":.west:a-value", "a-key", "a-value", "b-value"]
    assert registry.get("/subjects?subjectPrefix=") == ["a-key", "a-value", "b-value"]
    assert registry.get("/subjects?subjectPrefix=a-") == ["a-key", "a-value"]
    assert registry.get("/subjects?subjectPrefix=:.west:") == [":.west:a-value"]
    assert registry.get("/subjects?subjectPrefix=:*:a") == [":.west:a-value", "a-key", "a-value"]
    assert registry.get("/subjects?offset=1&limit=2") == ["a-key", "a-value"]
    assert registry.get("/subjects?limit=-1") == registry.get("/subjects")


def test_schemas_by_id(registry: Registry) -> None:
    registry.register("orders", ONE)
    registry.register("orders", TWO)
    registry.register("more", TWO)
    two = registry.get("/schemas/ids/2")
    assert list(two) == ["guid", "schemaType", "schema", "ts", "deleted"]
    assert two["schema"] == TWO
    named = registry.get("/schemas/ids/2?subject=orders")
    assert (named["subject"], named["version"]) == ("orders", 2)
    assert registry.get("/schemas/ids/1?fetchMaxId=true")["maxId"] == 2
    assert registry.ask("GET", "/schemas/ids/2/schema").body.decode() == TWO
    assert registry.get("/schemas/ids/2/subjects") == ["more", "orders"]
    assert registry.get("/schemas/ids/2/versions") == [
        {"subject": "more", "version": 1},
        {"subject": "orders", "version": 2},
    ]
    assert registry.get("/schemas/types") == ["JSON", "PROTOBUF", "AVRO"]


def test_schemas_by_guid(registry: Registry) -> None:
    guid = registry.post("/subjects/orders/versions", {"schema": ONE})["guid"]
    registry.register(":.west:x", record("x", name="X"))
    registry.register(":.west:orders", ONE)
    assert registry.get(f"/schemas/guids/{guid}")["schema"] == ONE
    assert registry.get(f"/schemas/guids/{guid}/ids") == [{"context": ".", "id": 1}, {"context": ".west", "id": 2}]
    assert registry.get("/schemas/guids/nonsense/ids") == []


def test_all_schemas(registry: Registry) -> None:
    for schema in (ONE, TWO):
        registry.register("orders", schema)
    registry.register("others", ONE)
    registry.register(":.west:orders", THREE)
    registry.delete("/subjects/orders/versions/1")

    def keys(target: str) -> list[tuple[str, int]]:
        return [(each["subject"], each["version"]) for each in registry.get(target)]

    assert keys("/schemas") == [("orders", 2), ("others", 1)]
    assert keys("/schemas?deleted=true") == [("orders", 1), ("orders", 2), ("others", 1)]
    assert keys("/schemas?subjectPrefix=:*:&latestOnly=true") == [(":.west:orders", 1), ("orders", 2), ("others", 1)]
    assert keys("/schemas?subjectPrefix=oth") == [("others", 1)]
    assert keys("/schemas?limit=1&offset=1") == [("others", 1)]


def test_normalized_spellings_are_one_schema(registry: Registry) -> None:
    plain = record({"name": "a", "type": "int"}, name="Order", namespace="shop")
    spelt = json.dumps(
        {"fields": [{"type": {"type": "int"}, "name": "a"}], "name": "shop.Order", "type": "record"}, indent=1
    )
    registry.register("orders", plain)
    assert registry.post("/subjects/orders?normalize=true", {"schema": spelt})["id"] == 1
    assert registry.post("/subjects/orders/versions?normalize=true", {"schema": spelt})["id"] == 1
    registry.put("/config", {"normalize": True})
    assert registry.register("orders", spelt) == 1


def test_metadata_and_rules_are_part_of_what_a_schema_is(registry: Registry) -> None:
    metadata = {"tags": {"b": ["y", "x"], "a": ["z"]}, "properties": {"owner": "ann", "age": 7}, "sensitive": ["s"]}
    rule = {"name": "check", "type": "CEL", "kind": "CONDITION", "mode": "WRITE", "expr": "a > 0"}
    body = {"schema": ONE, "metadata": metadata, "ruleSet": {"domainRules": [rule]}}
    plain = registry.register("orders", ONE)
    answer = registry.post("/subjects/orders/versions", body)
    assert answer["id"] != plain
    one = registry.get("/subjects/orders/versions/2")
    assert one["metadata"] == {
        "tags": {"a": ["z"], "b": ["x", "y"]},
        "properties": {"age": "7", "owner": "ann"},
        "sensitive": ["s"],
    }
    assert one["ruleSet"] == {"domainRules": [{**rule, "disabled": False}]}
    assert registry.post("/subjects/orders/versions", body)["version"] == 2
    # Without metadata of its own a new version takes that of the latest.
    registry.post("/subjects/orders/versions", {"schema": TWO})
    assert registry.get("/subjects/orders/versions/3")["metadata"] == one["metadata"]
    found = registry.get("/subjects/orders/metadata?key=owner&value=ann")
    assert found["version"] == 3
    assert registry.refused("GET", "/subjects/orders/metadata?key=owner&value=bob")[0] == 40403
    assert [each["version"] for each in registry.get("/schemas?ruleType=CEL")] == [2, 3]
    # A schema without text is the latest one's, with other metadata.
    registry.post("/subjects/orders/versions", {"metadata": {"properties": {"owner": "bob"}}})
    assert registry.get("/subjects/orders/versions/4")["schema"] == TWO
    assert registry.get("/subjects/orders/metadata?key=owner&value=bob")["version"] == 4


def test_a_version_that_is_asked_for_is_noted_in_the_metadata(registry: Registry) -> None:
    """As Confluent's testConfluentVersion."""
    path, subject = "/subjects/orders/versions", "/subjects/orders"
    assert registry.register("orders", ONE) == 1
    assert registry.post(path, {"schema": ONE, "version": -1})["id"] == 1
    assert registry.post(path, {"schema": ONE, "version": 2})["id"] == 2
    assert registry.post(path, {"schema": ONE, "version": -1})["id"] == 2
    noted = {"properties": {"confluent:version": "2"}}
    assert registry.get(f"{path}/2")["metadata"] == noted
    assert registry.post(subject, {"schema": ONE})["version"] == 1
    of_one = {"properties": {"confluent:version": "1"}}
    assert registry.post(subject, {"schema": ONE, "metadata": of_one})["version"] == 1
    assert registry.post(subject, {"schema": ONE, "metadata": noted})["version"] == 2
    registry.delete(f"{path}/1")
    assert registry.post(subject, {"schema": ONE})["version"] == 2
    assert registry.register("orders", ONE) == 2
    assert registry.post(path, {"schema": ONE, "version": 3})["id"] == 3
    assert registry.refused("POST", path, {"schema": ONE, "version": 3})[0] == 42201
    assert registry.get(f"{path}/3")["metadata"] == {"properties": {"confluent:version": "3"}}


@pytest.mark.parametrize("schema", [STRICT, LOOSE])
def test_the_compatibility_of_a_subject_can_be_lifted(registry: Registry, schema: str) -> None:
    registry.register("orders", ONE)
    registry.put("/config/orders", {"compatibility": "none"})
    assert registry.register("orders", schema) == 2
