"""Settings and modes over REST: of the registry, of contexts, of subjects; what holds where; import; aliases."""

from __future__ import annotations

from typing import Any

import pytest
from tests.registry.memory import Registry
from tests.registry.schemas import LOOSE, ONE, STRICT, THREE, TWO, record

LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("path", ["/config", "/config/orders", "/config/:.west:", "/config/:.west:orders"])
def test_a_level_is_set_and_taken_back(registry: Registry, path: str, level: str) -> None:
    assert registry.put(path, {"compatibility": level.lower()}) == {"compatibility": level}
    assert registry.get(path) == {"compatibilityLevel": level}
    assert registry.delete(path) == {"compatibilityLevel": level}
    if path == "/config":
        assert registry.get(path) == {"compatibilityLevel": "BACKWARD"}
    else:
        assert registry.refused("GET", path)[0] == 40408
        assert registry.refused("DELETE", path)[0] == 40401
    assert registry.get(f"{path}?defaultToGlobal=true") == {"compatibilityLevel": "BACKWARD"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"compatibility": "BAD"}, 42203),
        ({"compatibility": ""}, 42203),
        ({"compatibility": 7}, 400),
        ({"normalize": "yes"}, 400),
        ({"alias": "__EMPTY"}, 42208),
        ({"compatibilityPolicy": "SOFT"}, 400),
        ({"defaultMetadata": 7}, 400),
        ({"defaultRuleSet": {"domainRules": [{"name": "r"}]}}, 42210),
        (None, 422),
        (b"x", 400),
    ],
)
def test_settings_that_are_none(registry: Registry, body: object, code: int) -> None:
    assert registry.refused("PUT", "/config/orders", body)[0] == code
    assert registry.refused("GET", "/config/orders")[0] == 40408


def test_the_sentence_of_a_wrong_level(registry: Registry) -> None:
    assert registry.refused("PUT", "/config", {"compatibility": "BAD"}) == (
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive,"
        " forward_transitive, and full_transitive",
    )


def test_settings_are_changed_one_by_one(registry: Registry) -> None:
    whole: dict[str, Any] = {
        "alias": "shop",
        "normalize": True,
        "validateFields": False,
        "compatibility": "FULL",
        "compatibilityGroup": "app.version",
        "defaultMetadata": {"properties": {"owner": "ann"}},
        "overrideMetadata": {"properties": {"team": "a"}},
        "defaultRuleSet": {"domainRules": [{"name": "r", "type": "CEL"}]},
    }
    answer = registry.put("/config/orders", whole)
    assert answer["defaultRuleSet"]["domainRules"][0]["mode"] == "WRITEREAD"
    got = registry.get("/config/orders")
    assert {**got, "compatibility": got["compatibilityLevel"]} == {**answer, "compatibilityLevel": "FULL"}
    changed = registry.put("/config/orders", {"compatibility": "NONE", "alias": None, "unknown": 1})
    assert changed == {**{k: v for k, v in answer.items() if k != "alias"}, "compatibility": "NONE"}
    assert registry.put("/config/orders", {"compatibility": None}) == {
        k: v for k, v in changed.items() if k != "compatibility"
    }
    assert registry.get("/config/orders")["compatibilityLevel"] == "BACKWARD"


def test_what_holds_is_the_nearest(registry: Registry) -> None:
    def level(name: str) -> str:
        return str(registry.get(f"/config/{name}?defaultToGlobal=true")["compatibilityLevel"])

    registry.put("/config/:.__GLOBAL:", {"compatibility": "NONE"})
    assert [level(name) for name in ("orders", ":.west:orders")] == ["NONE", "NONE"]
    registry.put("/config", {"compatibility": "FULL", "normalize": True})
    assert [level(name) for name in ("orders", ":.west:orders")] == ["FULL", "NONE"]
    registry.put("/config/:.west:", {"compatibility": "FORWARD"})
    assert [level(name) for name in ("orders", ":.west:orders")] == ["FULL", "FORWARD"]
    registry.put("/config/orders", {"compatibility": "BACKWARD"})
    assert [level(name) for name in ("orders", ":.west:orders")] == ["BACKWARD", "FORWARD"]
    assert registry.get("/config/orders?defaultToGlobal=true")["normalize"] is True
    assert registry.get("/config/orders") == {"compatibilityLevel": "BACKWARD"}
    # The default context is the registry as a whole.
    registry.put("/config/:.:", {"compatibility": "NONE"})
    assert registry.get("/config") == {"normalize": True, "compatibilityLevel": "NONE"}
    assert registry.delete("/config/:.:")["compatibilityLevel"] == "NONE"
    assert registry.get("/config")["compatibilityLevel"] == "BACKWARD"


FITS = [
    # level, schemas so far, the next one, whether it may come
    ("NONE", [ONE], record({"name": "a", "type": "string"}), True),
    ("BACKWARD", [ONE], STRICT, False),
    ("BACKWARD", [ONE], LOOSE, True),
    ("FORWARD", [ONE], STRICT, True),
    ("FORWARD", [ONE], LOOSE, False),
    ("FULL", [ONE], STRICT, False),
    ("FULL", [ONE], LOOSE, False),
    ("FULL", [ONE], TWO, True),
    # `b` had a default, then none was there; it comes back as something else.
    ("BACKWARD", [TWO, ONE], record("a", {"name": "b", "type": "string", "default": ""}), True),
    ("BACKWARD_TRANSITIVE", [TWO, ONE], record("a", {"name": "b", "type": "string", "default": ""}), False),
    ("FORWARD", [TWO, ONE], record("a", {"name": "b", "type": "string"}), True),
    ("FORWARD_TRANSITIVE", [TWO, ONE], record("a", {"name": "b", "type": "string"}), False),
    ("FULL", [TWO, ONE], record("a", {"name": "b", "type": "string", "default": ""}), True),
    ("FULL_TRANSITIVE", [TWO, ONE], record("a", {"name": "b", "type": "string", "default": ""}), False),
    ("FULL_TRANSITIVE", [TWO, ONE], THREE, True),
]


@pytest.mark.parametrize(("level", "before", "schema", "fits"), FITS)
def test_levels(registry: Registry, level: str, before: list[str], schema: str, fits: bool) -> None:
    registry.put("/config/orders", {"compatibility": "NONE"})
    for each in before:
        registry.register("orders", each)
    registry.put("/config/orders", {"compatibility": level})
    body = {"schema": schema}
    assert registry.post("/compatibility/subjects/orders/versions", body) == {"is_compatible": fits}
    assert registry.ask("POST", "/subjects/orders/versions", body).status == (200 if fits else 409)
    told = registry.post("/compatibility/subjects/orders/versions?verbose=true", {"schema": schema})
    assert bool(told["messages"]) is not fits
    if not fits:
        assert told["messages"][-1] == f"{{validateFields: 'false', compatibility: '{level}'}}"


def test_compatibility_with_a_version(registry: Registry) -> None:
    registry.register("orders", ONE)
    registry.register("orders", TWO)
    path = "/compatibility/subjects/orders/versions"
    assert registry.post(f"{path}/1", {"schema": STRICT}) == {"is_compatible": False}
    assert registry.post(f"{path}/latest", {"schema": THREE}) == {"is_compatible": True}
    assert registry.post(f"{path}/latest?verbose=true", {"schema": THREE}) == {"is_compatible": True, "messages": []}
    assert registry.refused("POST", f"{path}/7", {"schema": ONE}) == (40402, "Version 7 not found.")
    assert registry.refused("POST", f"{path}/x", {"schema": ONE})[0] == 42202
    assert registry.refused("POST", path, {"schema": "nonsense"})[0] == 42201
    told = registry.post(f"{path}?verbose=true", {"schema": "nonsense"})
    assert told["is_compatible"] is False
    assert told["messages"][0].startswith("Invalid schema of type AVRO, details: ")
    # Nothing registered: nothing to be incompatible with.
    assert registry.post("/compatibility/subjects/new/versions/latest", {"schema": ONE}) == {"is_compatible": True}
    assert registry.post("/compatibility/subjects/new/versions", {"schema": ONE}) == {"is_compatible": True}
    # What is deleted does not count.
    registry.delete("/subjects/orders")
    assert registry.post(path, {"schema": STRICT}) == {"is_compatible": True}


def test_compatibility_within_a_group(registry: Registry) -> None:
    registry.put("/config/orders", {"compatibility": "BACKWARD", "compatibilityGroup": "major"})

    def body(schema: str, major: str) -> dict[str, Any]:
        return {"schema": schema, "metadata": {"properties": {"major": major}}}

    registry.post("/subjects/orders/versions", body(ONE, "1"))
    assert registry.refused("POST", "/subjects/orders/versions", body(STRICT, "1"))[0] == 40901
    registry.post("/subjects/orders/versions", body(STRICT, "2"))
    registry.post("/subjects/orders/versions", body(TWO, "1"))
    assert registry.get("/subjects/orders/versions") == [1, 2, 3]


def test_metadata_and_rules_from_settings(registry: Registry) -> None:
    registry.put(
        "/config/orders",
        {
            "defaultMetadata": {"properties": {"owner": "ann", "team": "a"}},
            "overrideMetadata": {"properties": {"site": "west"}},
            "defaultRuleSet": {"domainRules": [{"name": "r", "type": "CEL", "expr": "1"}]},
        },
    )
    body = {"schema": ONE, "metadata": {"properties": {"owner": "bob", "site": "x"}}}
    registry.post("/subjects/orders/versions", body)
    got = registry.get("/subjects/orders/versions/1")
    assert got["metadata"]["properties"] == {"owner": "bob", "site": "west", "team": "a"}
    assert [rule["name"] for rule in got["ruleSet"]["domainRules"]] == ["r"]
    # Sent again it is the same version, and it is found without what the settings added.
    assert registry.post("/subjects/orders/versions", body)["version"] == 1
    assert registry.post("/subjects/orders", {"schema": ONE})["version"] == 1


def test_an_alias_stands_for_a_subject(registry: Registry) -> None:
    registry.register("orders", ONE)
    registry.put("/config/shop", {"alias": "orders"})
    assert registry.get("/subjects/shop/versions/1")["subject"] == "orders"
    assert registry.register("shop", TWO) == 2
    assert registry.get("/subjects") == ["orders"]
    assert registry.get("/schemas/ids/2?subject=shop")["subject"] == "orders"
    assert registry.post("/compatibility/subjects/shop/versions", {"schema": STRICT})["is_compatible"] is False
    listed = registry.get("/schemas?subjectPrefix=shop&aliases=true&latestOnly=true")
    assert [(each["subject"], each["aliases"]) for each in listed] == [("orders", ["shop"])]
    registry.put("/config/:.west:shop", {"alias": "orders"})
    registry.register(":.west:shop", THREE)
    assert registry.get("/subjects?subjectPrefix=:.west:") == [":.west:orders"]


# --- modes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/mode", "/mode/orders", "/mode/:.west:", "/mode/:.west:orders"])
def test_a_mode_is_set_and_taken_back(registry: Registry, path: str) -> None:
    assert registry.get(f"{path}?defaultToGlobal=true") == {"mode": "READWRITE"}
    for mode in ("READONLY", "READWRITE", "IMPORT", "READONLY_OVERRIDE"):
        assert registry.put(path, {"mode": mode.lower()}) == {"mode": mode}
        assert registry.get(path) == {"mode": mode}
    assert registry.delete(path) == {"mode": "READONLY_OVERRIDE"}
    assert registry.get(f"{path}?defaultToGlobal=true") == {"mode": "READWRITE"}
    registry.put(path, {"mode": "READONLY"})
    assert registry.put(path, {"mode": None}) == {"mode": None}
    assert registry.get(f"{path}?defaultToGlobal=true") == {"mode": "READWRITE"}


def test_modes_that_are_none(registry: Registry) -> None:
    assert registry.refused("PUT", "/mode", {"mode": "SOMETIMES"}) == (
        42204,
        "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.",
    )
    assert registry.refused("PUT", "/mode", {"mode": "FORWARD"})[0] == 42204
    assert registry.put("/mode/:.__GLOBAL:", {"mode": "FORWARD"}) == {"mode": "FORWARD"}
    assert registry.refused("PUT", "/mode/__GLOBAL", {"mode": "READONLY"})[0] == 42208


def test_read_only(registry: Registry) -> None:
    registry.register("orders", ONE)
    registry.put("/mode/orders", {"mode": "READONLY"})
    refused = (42205, "Subject orders in context  is in read-only mode")
    assert registry.refused("POST", "/subjects/orders/versions", {"schema": TWO}) == refused
    assert registry.refused("DELETE", "/subjects/orders") == refused
    assert registry.refused("DELETE", "/subjects/orders/versions/1") == refused
    assert registry.refused("PUT", "/config/orders", {"compatibility": "NONE"}) == refused
    assert registry.register("orders", ONE) == 1, "what is there may be registered again"
    assert registry.register("others", TWO) == 2
    registry.put("/mode", {"mode": "READONLY"})
    registry.put("/mode/orders", {"mode": "READWRITE"})
    assert registry.register("orders", TWO) == 2
    registry.put("/mode", {"mode": "READONLY_OVERRIDE"})
    assert registry.refused("POST", "/subjects/orders/versions", {"schema": THREE})[0] == 42205
    assert registry.get("/mode/orders?defaultToGlobal=true") == {"mode": "READONLY_OVERRIDE"}


def test_import(registry: Registry) -> None:
    registry.put("/mode", {"mode": "IMPORT"})
    path = "/subjects/orders/versions"
    assert registry.refused("POST", path, {"schema": ONE})[0] == 42205
    assert registry.post(path, {"schema": ONE, "id": 100, "version": 5})["id"] == 100
    assert registry.get(path) == [5]
    assert registry.register("orders", ONE) == 100, "without an id, once it is there"
    # Not checked against older ones, any version, ids shared.
    assert registry.post(path, {"schema": STRICT, "id": 50, "version": 2})["version"] == 2
    assert registry.post("/subjects/others/versions", {"schema": ONE, "id": 100, "version": 1})["id"] == 100
    assert registry.refused("POST", path, {"schema": TWO, "id": 100, "version": 6}) == (
        42205,
        "Overwrite new schema with id 100 in context  is not permitted.",
    )
    assert registry.post(path, {"schema": ONE, "id": 100, "version": 5})["version"] == 5
    registry.put("/mode", {"mode": "READWRITE"})
    assert registry.register("more", TWO) == 101, "ids go on after the highest"
    registry.put("/mode/last", {"mode": "IMPORT"})
    last = {"schema": THREE, "id": 2**31 - 1, "version": 7}
    assert registry.post("/subjects/last/versions", last)["id"] == 2**31 - 1
    assert registry.get("/schemas/ids/2147483647?fetchMaxId=true")["maxId"] == 2**31 - 1
    assert registry.register("fourth", '"long"') == 102, "the very last id is not followed"


def test_import_wants_nothing_there(registry: Registry) -> None:
    registry.register("orders", ONE)
    refused = (42205, "Cannot import since found existing subjects")
    assert registry.refused("PUT", "/mode", {"mode": "IMPORT"}) == refused
    assert registry.refused("PUT", "/mode/orders", {"mode": "IMPORT"}) == refused
    assert registry.put("/mode/others", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    assert registry.put("/mode/orders?force=true", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    registry.delete("/mode/orders")
    registry.delete("/subjects/orders")
    registry.put("/mode/orders", {"mode": "IMPORT"})
    assert registry.get("/subjects?deleted=true") == [], "what was soft deleted is gone"
    assert registry.post("/subjects/orders/versions", {"schema": ONE, "id": 7, "version": 1})["id"] == 7


def test_modes_of_a_context_are_taken_back_together(registry: Registry) -> None:
    for path in ("/mode/:.west:", "/mode/:.west:a", "/mode/:.west:b", "/mode/:.east:a", "/mode/a"):
        registry.put(path, {"mode": "READONLY"})
    assert registry.delete("/mode/:.west:?recursive=true") == {"mode": "READONLY"}
    for path in ("/mode/:.west:", "/mode/:.west:a", "/mode/:.west:b"):
        assert registry.refused("GET", path)[0] == 40409
    assert registry.get("/mode/:.east:a") == registry.get("/mode/a") == {"mode": "READONLY"}
    assert registry.delete("/mode/:.north:?recursive=true") == {}
