"""Deleting over REST: softly, then permanently; what refers to something keeps it; ids are never given out twice."""

from __future__ import annotations

import pytest
from tests.registry.memory import MemoryStore, Registry
from tests.registry.schemas import ONE, THREE, TWO, record

from ottla.schemas.registry.machine import RegistryMachine


@pytest.fixture
def registry() -> Registry:
    return Registry()


def compacted(registry: Registry) -> Registry:
    """A registry that starts from what compaction leaves of the other one's records, its tombstones gone too."""
    newest = {record.key: record for record in registry.store.records}
    store = MemoryStore()
    for each in registry.store.records:
        if newest[each.key] is each and each.value is not None:
            store.records.append(each)
            store.machine.apply(each)
    return Registry(store)


def test_a_version_is_deleted_softly_then_permanently(registry: Registry) -> None:
    for schema in (ONE, TWO):
        registry.register("orders", schema)
    two = "/subjects/orders/versions/2"
    assert registry.refused("DELETE", f"{two}?permanent=true") == (
        40407,
        "Subject 'orders' Version 2 was not deleted first before being permanently deleted",
    )
    assert registry.delete(two) == 2
    assert registry.get("/subjects/orders/versions") == [1]
    assert registry.get("/subjects/orders/versions?deleted=true") == [1, 2]
    assert registry.get("/subjects/orders/versions?deletedOnly=true") == [2]
    assert registry.get("/subjects/orders/versions?deletedAsNegative=true") == [1, -2]
    assert registry.refused("DELETE", two) == (
        40406,
        "Subject 'orders' Version 2 was soft deleted.Set permanent=true to delete permanently",
    )
    assert registry.refused("GET", two) == (40402, "Version 2 not found.")
    assert registry.get(f"{two}?deleted=true")["deleted"] is True
    assert registry.refused("POST", "/subjects/orders", {"schema": TWO}) == (40403, "Schema not found")
    assert registry.post("/subjects/orders?deleted=true", {"schema": TWO})["version"] == 2
    # Who holds the id can still read with it.
    assert registry.get("/schemas/ids/2")["schema"] == TWO
    assert registry.get("/schemas/ids/2/subjects") == []
    assert registry.get("/schemas/ids/2/subjects?deleted=true") == ["orders"]
    assert registry.get("/schemas/ids/2/versions?deleted=true") == [{"subject": "orders", "version": 2}]
    assert registry.delete(f"{two}?permanent=true") == 2
    assert registry.refused("GET", f"{two}?deleted=true")[0] == 40402
    assert registry.refused("DELETE", f"{two}?permanent=true")[0] == 40402
    assert registry.refused("GET", "/schemas/ids/2")[0] == 40403


def test_the_latest_is_deleted_and_what_was_before_is_the_latest(registry: Registry) -> None:
    for schema in (ONE, TWO):
        registry.register("orders", schema)
    assert registry.delete("/subjects/orders/versions/latest") == 2
    assert registry.get("/subjects/orders/versions/latest")["version"] == 1
    assert registry.delete("/subjects/orders/versions/-1") == 1
    assert registry.refused("GET", "/subjects/orders/versions/latest")[0] == 40401
    assert registry.refused("DELETE", "/subjects/orders/versions/latest")[0] == 40402
    assert registry.refused("GET", "/subjects/orders/versions")[0] == 40401
    assert registry.register("orders", THREE) == 3
    assert registry.get("/subjects/orders/versions") == [3]


def test_a_subject_is_deleted_softly_then_permanently(registry: Registry) -> None:
    for schema in (ONE, TWO):
        registry.register("orders", schema)
    registry.put("/config/orders", {"compatibility": "FULL"})
    registry.put("/mode/orders", {"mode": "READWRITE"})
    assert registry.refused("DELETE", "/subjects/orders?permanent=true") == (
        40405,
        "Subject 'orders' was not deleted first before being permanently deleted",
    )
    assert registry.delete("/subjects/orders") == [1, 2]
    assert registry.get("/subjects") == []
    assert registry.get("/subjects?deleted=true") == ["orders"]
    assert registry.get("/subjects?deletedOnly=true") == ["orders"]
    assert registry.refused("DELETE", "/subjects/orders") == (
        40404,
        "Subject 'orders' was soft deleted.Set permanent=true to delete permanently",
    )
    assert registry.get("/config/orders") == {"compatibilityLevel": "FULL"}
    assert registry.delete("/subjects/orders?permanent=true") == [1, 2]
    assert registry.refused("DELETE", "/subjects/orders?permanent=true")[0] == 40401
    assert registry.refused("GET", "/config/orders")[0] == 40408
    assert registry.refused("GET", "/mode/orders")[0] == 40409
    assert registry.get("/subjects?deleted=true") == []


def test_only_what_is_left_is_deleted_with_the_subject(registry: Registry) -> None:
    for schema in (ONE, TWO, THREE):
        registry.register("orders", schema)
    registry.delete("/subjects/orders/versions/2")
    assert registry.delete("/subjects/orders") == [1, 3]
    assert registry.delete("/subjects/orders?permanent=true") == [1, 2, 3]


def test_what_was_soft_deleted_comes_back_with_its_id_as_a_new_version(registry: Registry) -> None:
    for schema in (ONE, TWO):
        registry.register("orders", schema)
    registry.delete("/subjects/orders")
    assert registry.register("orders", ONE) == 1
    assert registry.get("/subjects/orders/versions") == [3]
    # Its old version has gone, the other one is still there.
    assert registry.get("/subjects/orders/versions?deleted=true") == [2, 3]
    assert registry.get("/schemas/ids/1/versions") == [{"subject": "orders", "version": 3}]
    assert registry.register("orders", TWO) == 2
    assert registry.get("/subjects/orders/versions?deleted=true") == [3, 4]


def test_after_a_permanent_deletion_versions_go_on_from_what_is_left_as_confluents_do(registry: Registry) -> None:
    for schema in (ONE, TWO):
        registry.register("orders", schema)
    for permanent in ("false", "true"):
        registry.delete(f"/subjects/orders/versions/2?permanent={permanent}")
    assert registry.post("/subjects/orders/versions", {"schema": THREE})["version"] == 2
    for permanent in ("false", "true"):
        registry.delete(f"/subjects/orders?permanent={permanent}")
    assert registry.post("/subjects/orders/versions", {"schema": TWO})["version"] == 1


def test_an_id_is_never_given_out_again(registry: Registry) -> None:
    ids = [registry.register("orders", schema) for schema in (ONE, TWO)]
    for permanent in ("false", "true"):
        registry.delete(f"/subjects/orders?permanent={permanent}")
    after = compacted(registry)
    assert after.get("/subjects?deleted=true") == []
    ids += [each.register("orders", TWO) for each in (registry, after)]
    assert ids == [1, 2, 3, 3]


@pytest.mark.parametrize("context", [":.:", ":.west:"])
def test_an_id_is_never_given_out_again_in_any_context(registry: Registry, context: str) -> None:
    registry.register("elsewhere", ONE)
    for permanent in ("false", "true"):
        registry.delete(f"/subjects/elsewhere?permanent={permanent}")
    for number in range(3):
        registry.register(f"{context}s{number}", record(f"f{number}"))
        for permanent in ("false", "true"):
            registry.delete(f"/subjects/{context}s{number}?permanent={permanent}")
        registry = compacted(registry)
    assert registry.register(f"{context}s", ONE) == (5 if context == ":.:" else 4)
    assert registry.register("elsewhere", TWO) == (6 if context == ":.:" else 2)


def test_what_is_referred_to_is_not_deleted(registry: Registry) -> None:
    registry.register("address", record("zip", name="Address"))
    reference = {"name": "Address", "subject": "address", "version": 1}
    outer = record({"name": "to", "type": "Address"}, name="Parcel")
    registry.register("parcel", outer, references=[reference])
    refused = (42206, "One or more references exist to the schema {magic=1,keytype=SCHEMA,subject=address,version=1}.")
    assert registry.refused("DELETE", "/subjects/address") == refused
    assert registry.refused("DELETE", "/subjects/address/versions/1") == refused
    assert registry.get("/subjects/address/versions/1/referencedby") == [2]
    # A soft-deleted one does not hold it from being soft deleted, but from going for good: it may come back.
    registry.delete("/subjects/parcel")
    assert registry.get("/subjects/address/versions/1/referencedby") == []
    assert registry.get("/subjects/address/versions/1/referencedby?deleted=true") == [2]
    assert registry.delete("/subjects/address") == [1]
    assert registry.refused("DELETE", "/subjects/address?permanent=true") == refused
    assert registry.refused("DELETE", "/subjects/address/versions/1?permanent=true") == refused
    # What it refers to is deleted, so it cannot be registered anew.
    code, message = registry.refused("POST", "/subjects/new/versions", {"schema": outer, "references": [reference]})
    assert (code, message) == (
        42201,
        'Invalid schema of type AVRO, details: No schema reference found for subject "address" and version 1',
    )
    registry.delete("/subjects/parcel?permanent=true")
    assert registry.delete("/subjects/address?permanent=true") == [1]


def test_a_version_that_is_referred_to_stays_when_its_schema_comes_back(registry: Registry) -> None:
    registry.register("address", record("zip", name="Address"))
    reference = {"name": "Address", "subject": "address", "version": 1}
    registry.register("parcel", record({"name": "to", "type": "Address"}, name="Parcel"), references=[reference])
    registry.delete("/subjects/parcel")
    registry.delete("/subjects/address")
    assert registry.register("address", record("zip", name="Address")) == 1
    assert registry.get("/subjects/address/versions?deleted=true") == [1, 2]


def test_a_subject_whose_versions_refer_to_each_other_is_deleted(registry: Registry) -> None:
    registry.register("s", record("a", name="A"))
    reference = {"name": "A", "subject": "s", "version": 1}
    registry.put("/config/s", {"compatibility": "NONE"})
    registry.register("s", record({"name": "x", "type": "A"}, name="B"), references=[reference])
    assert registry.delete("/subjects/s") == [1, 2]
    assert registry.delete("/subjects/s?permanent=true") == [1, 2]


def test_reading_the_records_gives_the_same_registry(registry: Registry) -> None:
    for schema in (ONE, TWO, THREE):
        registry.register("orders", schema)
        registry.register(":.west:orders", schema)
    registry.delete("/subjects/orders")
    registry.register("orders", TWO)
    registry.put("/config/orders", {"compatibility": "FULL", "alias": "x"})
    registry.put("/mode", {"mode": "READONLY"})
    again = RegistryMachine()
    for each in registry.store.records:
        again.apply(each)
    assert again.state.__dict__ == registry.store.machine.state.__dict__
