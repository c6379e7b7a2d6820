"""Contexts over REST: registries inside the registry, by qualified names and by the path prefix /contexts/…"""

from __future__ import annotations

import pytest
from tests.registry.memory import Registry
from tests.registry.schemas import ONE, STRICT, THREE, TWO


@pytest.fixture
def registry() -> Registry:
    return Registry()


def test_ids_and_versions_are_counted_per_context(registry: Registry) -> None:
    assert registry.register("orders", ONE) == 1
    assert registry.register(":.west:orders", TWO) == 1
    assert registry.register(":.west:orders", THREE) == 2
    assert registry.register(":.west:others", TWO) == 1
    assert registry.get("/contexts") == [".", ".west"]
    assert registry.get("/contexts?contextPrefix=.w") == [".west"]
    assert registry.get("/subjects") == [":.west:orders", ":.west:others", "orders"]
    assert registry.get("/subjects/:.west:orders/versions") == [1, 2]


def test_an_id_is_looked_for_in_the_context_that_the_subject_names(registry: Registry) -> None:
    registry.register("orders", ONE)
    registry.register(":.west:others", TWO)
    assert registry.get("/schemas/ids/1")["schema"] == ONE
    assert registry.get("/schemas/ids/1?subject=:.west:")["schema"] == TWO
    assert registry.get("/schemas/ids/1?subject=:.west:others")["schema"] == TWO
    # A subject without a context that is not in the default one is looked for in the others.
    assert registry.get("/schemas/ids/1?subject=others")["schema"] == TWO
    assert registry.get("/schemas/ids/1?subject=nobody")["schema"] == ONE
    assert registry.refused("GET", "/schemas/ids/1?subject=:.west:nobody")[0] == 40403
    assert registry.refused("GET", "/schemas/ids/1?subject=:.east:")[0] == 40403
    assert registry.get("/schemas/ids/1/subjects?subject=:.west:") == [":.west:others"]
    assert registry.get("/schemas/ids/1/versions?subject=:.west:") == [{"subject": ":.west:others", "version": 1}]


def test_a_client_that_knows_no_contexts_finds_what_is_in_one(registry: Registry) -> None:
    registry.register(":.west:orders", ONE)
    assert registry.get("/subjects/orders/versions/1")["subject"] == ":.west:orders"
    assert registry.get("/subjects/orders/versions/latest")["subject"] == ":.west:orders"
    assert registry.post("/subjects/orders", {"schema": ONE})["subject"] == ":.west:orders"
    assert registry.refused("GET", "/subjects/orders/versions")[0] == 40401


@pytest.mark.parametrize("context", [".west", "west", ":.west:", "%3A.west%3A"])
def test_paths_in_a_context(registry: Registry, context: str) -> None:
    at = f"/contexts/{context}"
    registry.register("orders", TWO)
    assert registry.post(f"{at}/subjects/orders/versions", {"schema": ONE})["id"] == 1
    assert registry.get(f"{at}/subjects/orders/versions/1")["subject"] == ":.west:orders"
    assert registry.get(f"{at}/subjects") == [":.west:orders"]
    assert registry.get(f"{at}/subjects?subjectPrefix=ord") == [":.west:orders"]
    assert registry.get(f"{at}/subjects?subjectPrefix=x") == []
    assert registry.get(f"{at}/subjects?subjectPrefix=:*:") == [":.west:orders", "orders"]
    assert [each["subject"] for each in registry.get(f"{at}/schemas")] == [":.west:orders"]
    assert registry.get(f"{at}/schemas/ids/1")["schema"] == ONE
    assert registry.get(f"{at}/schemas/ids/1?subject=orders")["subject"] == ":.west:orders"
    assert registry.get(f"{at}/schemas/ids/1/subjects") == [":.west:orders"]
    assert registry.post(f"{at}/compatibility/subjects/orders/versions", {"schema": STRICT})["is_compatible"] is False
    registry.put(f"{at}/config", {"compatibility": "NONE"})
    assert registry.get("/config/:.west:") == {"compatibilityLevel": "NONE"}
    registry.put(f"{at}/config/orders", {"compatibility": "FULL"})
    assert (
        registry.get("/config/:.west:orders") == registry.get(f"{at}/config/orders") == {"compatibilityLevel": "FULL"}
    )
    registry.put(f"{at}/mode/orders", {"mode": "READONLY"})
    assert registry.get("/mode/:.west:orders") == {"mode": "READONLY"}
    assert registry.get("/config") == {"compatibilityLevel": "BACKWARD"}
    assert registry.get(f"{at}/contexts") == [".", ".west"]
    registry.delete(f"{at}/mode/orders")
    assert registry.delete(f"{at}/subjects/orders") == [1]


@pytest.mark.parametrize("context", [".", ":.:"])
def test_the_default_context_can_be_named(registry: Registry, context: str) -> None:
    registry.post(f"/contexts/{context}/subjects/orders/versions", {"schema": ONE})
    registry.register(":.:orders", TWO)
    assert registry.get("/subjects") == registry.get(f"/contexts/{context}/subjects") == ["orders"]
    assert registry.get("/subjects/:.:orders/versions") == [1, 2]
    registry.put(f"/contexts/{context}/config", {"compatibility": "NONE"})
    assert registry.get("/config") == {"compatibilityLevel": "NONE"}
    assert registry.get("/contexts") == ["."]


def test_a_context_with_a_colon_in_its_name_is_none(registry: Registry) -> None:
    assert registry.refused("GET", "/contexts/a:b/subjects") == (400, "Context name 'a:b' cannot contain a colon")


def test_an_empty_context_can_be_forgotten(registry: Registry) -> None:
    registry.register(":.west:orders", ONE)
    assert registry.refused("DELETE", "/contexts/:.west:") == (
        42211,
        "The specified context ':.west:' is not empty.",
    )
    for permanent in ("false", "true"):
        registry.delete(f"/subjects/:.west:orders?permanent={permanent}")
    assert registry.get("/contexts") == [".", ".west"]
    answer = registry.ask("DELETE", "/contexts/.west")
    assert (answer.status, answer.body) == (204, b"")
    assert registry.get("/contexts") == ["."]
    assert registry.register(":.west:orders", TWO) == 2, "ids are not given out again for that"
