"""HTTP itself: media types, unknown paths and methods, bad bodies, headers, errors of the store, followers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.registry.memory import V1, MemoryStore, Registry
from tests.registry.schemas import ONE, TWO

from ottla.registry.port import ForwardFailed, NotLeader, Unavailable

GENERIC = "application/vnd.schemaregistry+json"
JSON = "application/json"


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.mark.parametrize(
    ("accept", "given"),
    [
        ("*/*", V1),
        ("application/*", V1),
        (V1, V1),
        (GENERIC, GENERIC),
        (JSON, JSON),
        (f"{V1}, {GENERIC}; q=0.9, {JSON}; q=0.5", V1),
        ("text/html, application/json", JSON),
        ("", V1),
    ],
)
def test_the_client_chooses_the_media_type(registry: Registry, accept: str, given: str) -> None:
    answer = registry.ask("GET", "/subjects", accept=accept)
    assert (answer.status, answer.headers["content-type"], answer.json) == (200, given, [])
    missing = registry.ask("GET", "/subjects/nobody/versions", accept=accept)
    assert (missing.status, missing.headers["content-type"]) == (404, given)


def test_a_client_that_wants_something_else(registry: Registry) -> None:
    answer = registry.ask("GET", "/subjects", accept="text/html")
    assert (answer.status, answer.json) == (406, {"error_code": 406, "message": "HTTP 406 Not Acceptable"})


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (V1, 200),
        (GENERIC, 200),
        (JSON, 200),
        (f"{JSON}; charset=utf-8", 200),
        ("application/octet-stream", 200),
        ("text/plain", 415),
        ("application/xml", 415),
    ],
)
def test_bodies_come_in_these_media_types(registry: Registry, sent: str, status: int) -> None:
    answer = registry.ask("POST", "/subjects/orders/versions", {"schema": ONE}, **{"Content-Type": sent})
    assert answer.status == status
    if status == 415:
        assert answer.json == {"error_code": 415, "message": "HTTP 415 Unsupported Media Type"}


@pytest.mark.parametrize(
    ("method", "target", "code", "message"),
    [
        ("GET", "/nowhere", 404, "HTTP 404 Not Found"),
        ("GET", "/subjects/a/b/c/d", 404, "HTTP 404 Not Found"),
        ("GET", "/schemas/ids", 404, "HTTP 404 Not Found"),
        ("GET", "/" + "/".join("a" * 100), 404, "HTTP 404 Not Found"),
        ("POST", "/subjects", 405, "HTTP 405 Method Not Allowed"),
        ("PUT", "/subjects/orders/versions", 405, "HTTP 405 Method Not Allowed"),
        ("GET", "/compatibility/subjects/a/versions", 405, "HTTP 405 Method Not Allowed"),
        ("PATCH", "/config", 405, "HTTP 405 Method Not Allowed"),
        ("GET", "/subjects?offset=x", 404, "HTTP 404 Not Found"),
        ("GET", "/subjects/%FF/versions", 400, "The path is not UTF-8"),
        ("GET", "/subjects?" + "&".join(["a=b"] * 2_000), 400, "The request has too many parameters"),
    ],
)
def test_paths_and_methods_nobody_knows(registry: Registry, method: str, target: str, code: int, message: str) -> None:
    assert registry.refused(method, target, {}) == (code, message)


def test_a_slash_at_the_end_does_not_matter(registry: Registry) -> None:
    registry.register("orders", ONE)
    assert registry.get("/subjects/") == ["orders"]
    assert registry.get("/subjects/orders/versions/1/")["id"] == 1


def test_what_the_registry_says_of_itself(registry: Registry) -> None:
    assert registry.get("/") == {}
    assert registry.post("/", {}) == {}
    assert registry.get("/v1/metadata/id") == {
        "scope": {"path": [], "clusters": {"kafka-cluster": "cluster-1", "schema-registry-cluster": "schema-registry"}}
    }
    assert registry.get("/v1/metadata/version") == {"version": "1.2.3", "commitId": "abcdef"}
    assert registry.ask("HEAD", "/subjects").status == 200


def test_answers_are_not_to_be_cached(registry: Registry) -> None:
    headers = registry.ask("GET", "/").headers
    assert headers["cache-control"] == "no-cache, no-store, must-revalidate"
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Unavailable("broker gone"), 50001),
        (Unavailable("too slow", timed_out=True), 50002),
        (ForwardFailed("nobody listens"), 50003),
    ],
)
def test_what_happens_to_the_store(registry: Registry, error: Exception, code: int) -> None:
    registry.store.fails = error
    answer = registry.ask("POST", "/subjects/orders/versions", {"schema": ONE})
    assert (answer.status, answer.json["error_code"]) == (500, code)
    assert str(error) in answer.json["message"]


def test_a_defect_is_an_error_of_the_server(registry: Registry) -> None:
    registry.store.fails = RuntimeError("secret detail")
    answer = registry.ask("POST", "/subjects/orders/versions", {"schema": ONE})
    assert (answer.status, answer.json) == (500, {"error_code": 500, "message": "Internal Server Error"})


WRITES: list[tuple[str, str, Any]] = [
    ("POST", "/contexts/.west/subjects/a%2Fb/versions?normalize=true", {"schema": ONE}),
    ("DELETE", "/contexts/.west/subjects/a%2Fb/versions/1", None),
    ("DELETE", "/subjects/:.west:a%2Fb?permanent=true", None),
    ("PUT", "/config/orders", {"compatibility": "FULL"}),
    ("DELETE", "/config/orders", None),
    ("PUT", "/mode/orders?force=true", {"mode": "IMPORT"}),
    ("DELETE", "/mode/orders", None),
    ("DELETE", "/contexts/.west", None),
]


def test_a_follower_hands_writes_to_the_leader() -> None:
    leader, follower = MemoryStore(), MemoryStore()
    follower.leader = leader
    at_leader, at_follower = Registry(leader), Registry(follower)
    for count, (method, target, body) in enumerate(WRITES, 1):
        answer = at_follower.ask(method, target, body)
        assert answer.status in (200, 204), answer
        assert len(follower.forwarded) == count
        for record in leader.records:
            follower.machine.apply(record)
    assert at_follower.get("/subjects?deleted=true") == at_leader.get("/subjects?deleted=true") == []
    assert follower.machine.state.highest == {".west": 1}
    # What the leader refuses is told as the leader told it.
    assert at_follower.refused("DELETE", "/subjects/nobody") == (40401, "Subject 'nobody' not found.")


def test_a_follower_answers_by_itself_what_is_there() -> None:
    store = MemoryStore()
    registry = Registry(store)
    registry.register("orders", ONE)
    store.leader = MemoryStore()
    assert registry.register("orders", ONE) == 1
    assert registry.get("/subjects/orders/versions/1")["id"] == 1
    assert store.forwarded == []


def test_what_was_forwarded_is_not_forwarded_again() -> None:
    store = MemoryStore()
    store.leader = MemoryStore()
    answer = Registry(store).ask("POST", "/subjects/orders/versions", {"schema": TWO}, **{"X-Forward": "true"})
    assert (answer.status, answer.json) == (500, {"error_code": 50004, "message": "Leader not known."})
    assert store.forwarded == []


def test_without_a_leader() -> None:
    store = MemoryStore()
    store.fails = NotLeader(None)

    async def nobody(_: object) -> Any:
        raise NotLeader(None)

    store.forward = nobody  # type: ignore[method-assign,assignment]
    assert Registry(store).refused("PUT", "/config", {"compatibility": "NONE"}) == (50004, "Leader not known.")


def test_before_the_records_were_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Liveness does not wait for them; everything else says what it waits for."""

    def not_yet(_: MemoryStore) -> Any:
        raise Unavailable("still reading")

    monkeypatch.setattr(MemoryStore, "state", property(not_yet))
    registry = Registry()
    assert registry.get("/") == {}
    assert registry.get("/v1/metadata/id")["scope"]["path"] == []
    for target in ("/subjects", "/subjects/a/versions", "/schemas/ids/1", "/config", "/contexts"):
        assert registry.refused("GET", target)[0] == 50001
