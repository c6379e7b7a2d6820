"""A registry under the worst that its bounds let strangers send: no callback holds up the others."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.stalls.measuring.measure import BUDGET_MS, Recording, best_of, recorded
from tests.support.processes.registry import Answer, ask

from ottla.model import limits
from ottla.schemas.registry import lookups
from ottla.testing.broker import EmbeddedBroker
from ottla.testing.registry import Registry

_blanks = itertools.count()


class Measured:
    """A registry whose callbacks are recorded; those of its broker, which has a loop of its own, do not count."""

    def __init__(self, registry: Registry, recording: Recording) -> None:
        self.url = registry.url
        self.recording = recording
        self.loop = registry._thread.loop

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        return ask(self.url, method, path, body, timeout_s=120)

    def worst(self, method: str, path: str, body: Any, expected: tuple[int, ...] = (200, 409, 422)) -> Any:
        def once() -> Any:
            sent = body
            if body is not None:  # another text each time: what was parsed is remembered
                sent = {**body, "schema": body["schema"] + " " * next(_blanks)}
            self.recording.clear()
            answer = self.ask(method, path, sent)
            assert answer.status in expected, answer
            return self.recording.worst(self.loop)

        return best_of(once)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    directory: Path = tmp_path_factory.mktemp("broker")
    with recorded() as recording, EmbeddedBroker(directory) as broker:
        yield Measured(broker.registry, recording)


def avro(*fields: Any) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields)}, separators=(",", ":"))


def wide(count: int, kind: str) -> list[Any]:
    return [{"name": f"f{number}", "type": kind} for number in range(count)]


# Not the largest that the bounds allow, which take seconds of a thread, but such as took hundreds of milliseconds of
# the loop: what is done beside the loop takes none of it, however large.
WORST: dict[str, tuple[str, str, str]] = {
    # type, a version, and another one to be compared with it
    "avro record": ("AVRO", avro(*wide(4_000, "int")), avro(*wide(4_000, "long"))),
    "avro enum": (
        "AVRO",
        json.dumps({"type": "enum", "name": "E", "symbols": [f"s{number}" for number in range(20_000)]}),
        json.dumps({"type": "enum", "name": "E", "symbols": [f"t{number}" for number in range(20_000)]}),
    ),
    "avro unions": (
        "AVRO",
        json.dumps([{"type": "fixed", "name": f"F{number}", "size": 1} for number in range(300)]),
        json.dumps([{"type": "fixed", "name": f"G{number}", "size": 1} for number in range(300)]),
    ),
    "json object": (
        "JSON",
        json.dumps({"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(2_500)}}),
        json.dumps({"type": "object", "properties": {f"p{number}": {"type": "number"} for number in range(2_500)}}),
    ),
    "json oneOf": (
        "JSON",
        json.dumps({"oneOf": [{"properties": {f"p{number}": {"type": "string"}}} for number in range(100)]}),
        json.dumps({"oneOf": [{"properties": {f"q{number}": {"type": "string"}}} for number in range(100)]}),
    ),
    "json patterns": (
        "JSON",
        json.dumps({"patternProperties": {f"^(a+)+{number}$": {"type": "string"} for number in range(1_000)}}),
        json.dumps({"properties": {"a" * 500: {"type": "string"}}, "additionalProperties": False}),
    ),
    "protobuf messages": (
        "PROTOBUF",
        'syntax="proto3";' + "".join(f"message M{number} {{string f=1;}}" for number in range(600)),
        'syntax="proto3";' + "".join(f"message M{number} {{bytes f=1;}}" for number in range(600)),
    ),
}


@pytest.mark.parametrize("name", WORST)
def test_registering_and_comparing(registry: Measured, name: str) -> None:
    kind, first, second = WORST[name]
    subject = name.replace(" ", "-")
    one = {"schema": first, "schemaType": kind}
    two = {"schema": second, "schemaType": kind}
    assert registry.worst("POST", f"/subjects/{subject}/versions", one).cpu_ms <= BUDGET_MS
    for path in (f"/subjects/{subject}", f"/subjects/{subject}/versions?normalize=true"):
        assert registry.worst("POST", path, one, (200, 404, 409, 422)).cpu_ms <= BUDGET_MS
    compared = f"/compatibility/subjects/{subject}/versions?verbose=true"
    assert registry.worst("POST", compared, two).cpu_ms <= BUDGET_MS
    for shown in ("?format=resolved", "?findTags=*"):
        assert registry.worst("GET", f"/subjects/{subject}/versions/1{shown}", None).cpu_ms <= BUDGET_MS


def test_a_body_of_many_small_parts(registry: Measured) -> None:
    parts = [[]] * (limits.JSON_BODY_PARTS_MAX // 3)
    assert registry.worst("POST", "/subjects/s/versions", {"schema": '"int"', "more": parts}).cpu_ms <= BUDGET_MS
    refused = registry.ask(
        "POST", "/subjects/s/versions", {"schema": '"int"', "more": [[]] * limits.JSON_BODY_PARTS_MAX}
    )
    assert refused.status == 422 and "commas" in refused.content["message"]


@pytest.mark.parametrize("keyword", ["minLength", "maxItems", "minProperties"])
def test_a_number_that_takes_gigabytes_is_refused(registry: Measured, keyword: str) -> None:
    """Ten characters kept a registry busy for minutes."""
    schema = '{"%s": 1e999999999}' % keyword  # noqa: UP031 - braces
    answer = registry.ask("POST", "/subjects/s/versions", {"schema": schema, "schemaType": "JSON"})
    assert answer.status == 422 and "digits" in answer.content["message"]


def test_many_versions(registry: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.ask("PUT", "/config/many", {"compatibility": "FULL_TRANSITIVE"}).status == 200
    optional = [{"name": f"f{number}", "type": ["null", "int"], "default": None} for number in range(60)]
    for count in range(1, 30):
        assert registry.ask("POST", "/subjects/many/versions", {"schema": avro(*optional[:count])}).status == 200
    body = {"schema": avro(*optional)}
    assert registry.worst("POST", "/compatibility/subjects/many/versions", body).cpu_ms <= BUDGET_MS
    monkeypatch.setattr("ottla.schemas.registry.lookups.SCHEMA_VERSIONS_COMPARED_MAX", 10)
    refused = registry.ask("POST", "/subjects/many/versions", body)
    assert refused.status == 422 and "29 versions" in refused.content["message"]


def test_others_are_answered_while_one_does_its_worst(registry: Measured, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison that does not end: what needs none is answered all the while, and changes are made after it."""
    assert registry.ask("POST", "/subjects/busy/versions", {"schema": '"int"'}).status == 200
    begun, over = threading.Event(), threading.Event()

    def endless(*_: Any) -> list[str]:
        begun.set()
        assert over.wait(120)
        return []

    monkeypatch.setattr(lookups, "check_draft", endless)
    with ThreadPoolExecutor(1) as threads:
        try:
            dear = threads.submit(
                registry.ask, "POST", "/compatibility/subjects/busy/versions/latest", {"schema": '"int"'}
            )
            assert begun.wait(60)
            for path in ("/schemas/ids/1", "/subjects", "/subjects/busy/versions", "/config"):
                assert registry.ask("GET", path).status == 200
        finally:
            over.set()
        assert dear.result().content == {"is_compatible": True}
    assert registry.ask("POST", "/subjects/busy/versions", {"schema": '"long"'}).status == 200
