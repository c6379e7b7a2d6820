"""Anything that can be sent gets an answer that says what is wrong with it: never a 500, never half a change."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from tests.registry.memory import Registry
from tests.registry.schemas import ONE, STRICT, TWO, record

from ottla.schemas.registry.machine import RegistryMachine

METHODS = st.sampled_from(["GET", "POST", "PUT", "DELETE"])
WORDS = st.sampled_from(
    [
        "subjects",
        "versions",
        "schemas",
        "ids",
        "guids",
        "types",
        "config",
        "mode",
        "compatibility",
        "contexts",
        "metadata",
        "tags",
        "schema",
        "referencedby",
        "v1",
        "id",
        "version",
        "latest",
        "-1",
        "1",
        "2",
        "0",
        "-+5",
        "x",
        "orders",
        ":.west:orders",
        ":.west:",
        ":*:",
        ".west",
        "west",
        ":",
        ":.",
        "%2F",
        "__GLOBAL",
        ":.__GLOBAL:",
        "ü",
    ]
)
PARAMETERS = st.dictionaries(
    st.sampled_from(
        [
            "subject",
            "subjectPrefix",
            "deleted",
            "deletedOnly",
            "deletedAsNegative",
            "permanent",
            "normalize",
            "format",
            "offset",
            "limit",
            "verbose",
            "defaultToGlobal",
            "force",
            "recursive",
            "findTags",
            "fetchMaxId",
            "latestOnly",
            "aliases",
            "ruleType",
            "key",
            "value",
            "contextPrefix",
        ]
    ),
    st.sampled_from(
        ["true", "false", "", "-1", "1", "x", "resolved", "serialized", "orders", ":.west:", ":*:", "9" * 30]
    ),
    max_size=3,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        "schema",
        "schemaType",
        "references",
        "metadata",
        "ruleSet",
        "id",
        "version",
        "schemaTagsToAdd",
        "schemaTagsToRemove",
        "propagateSchemaTags",
        "compatibility",
        "compatibilityLevel",
        "alias",
        "normalize",
        "compatibilityGroup",
        "compatibilityPolicy",
        "defaultMetadata",
        "overrideRuleSet",
        "validateFields",
        "mode",
        "newVersion",
        "tagsToAdd",
        "tagsToRemove",
        "rulesToMerge",
        "rulesToRemove",
        "name",
        "subject",
        "properties",
        "tags",
        "sensitive",
        "domainRules",
        "migrationRules",
        "type",
        "schemaEntity",
        "entityPath",
        "entityType",
    ]
)
VALUES = st.sampled_from(
    [
        ONE,
        TWO,
        STRICT,
        '"string"',
        "{}",
        "AVRO",
        "JSON",
        "PROTOBUF",
        "IMPORT",
        "READONLY",
        "NONE",
        "FULL",
        "orders",
        1,
        2,
    ]
)
BODIES = st.dictionaries(
    FIELDS,
    VALUES | JSON | st.dictionaries(FIELDS, VALUES | JSON | st.lists(st.dictionaries(FIELDS, VALUES, max_size=3))),
    max_size=5,
)
# Paths that exist, so that most requests get somewhere; `*` is any word.
TEMPLATES = [
    "/subjects",
    "/subjects/*",
    "/subjects/*/versions",
    "/subjects/*/versions/*",
    "/subjects/*/versions/*/schema",
    "/subjects/*/versions/*/referencedby",
    "/subjects/*/versions/*/tags",
    "/subjects/*/metadata",
    "/schemas",
    "/schemas/ids/*",
    "/schemas/ids/*/schema",
    "/schemas/ids/*/subjects",
    "/schemas/ids/*/versions",
    "/schemas/guids/*",
    "/config",
    "/config/*",
    "/mode",
    "/mode/*",
    "/compatibility/subjects/*/versions",
    "/compatibility/subjects/*/versions/*",
    "/contexts",
    "/contexts/*",
    "/*/*/*",
]
PATHS = st.tuples(st.sampled_from(["", "", "", "/contexts/.west", "/contexts/*"]), st.sampled_from(TEMPLATES)).map(
    "".join
)
ANYTHING = st.one_of(BODIES.map(json.dumps), JSON.map(json.dumps), st.text(max_size=20))


@pytest.fixture(scope="module")
def registry() -> Registry:
    made = Registry()
    made.register("orders", ONE)
    made.register("orders", TWO)
    made.register(":.west:orders", record("a", name="Inner"))
    outer = record({"name": "i", "type": "Inner"}, name="Outer")
    made.register(":.west:o", outer, references=[{"name": "Inner", "subject": "orders", "version": 1}])
    return made


@pytest.mark.parametrize("path", ["/subjects/x/versions/-+5", "/schemas/ids/-+5", "/subjects?limit=-+5"])
def test_two_signs_make_no_number(registry: Registry, path: str) -> None:
    assert registry.ask("GET", path).status in (404, 422)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(METHODS, PATHS, st.lists(WORDS, min_size=4, max_size=4), PARAMETERS, ANYTHING)
def test_there_is_always_an_answer(
    registry: Registry, method: str, template: str, words: list[str], parameters: dict[str, str], body: str
) -> None:
    filling = iter(words)
    path = "".join(quote(next(filling), safe=":*%") if letter == "*" else letter for letter in template)
    query = "&".join(f"{name}={quote(value)}" for name, value in parameters.items())
    answer = registry.ask(method, f"{path}?{query}", body.encode())
    assert answer.status < 500, (answer, method, path, query, body)
    if answer.status >= 400:
        content: Any = answer.json
        assert content["error_code"] in (answer.status, *range(answer.status * 100, answer.status * 100 + 100))
        assert content["message"]
    again = RegistryMachine()
    for each in registry.store.records:
        again.apply(each)
    assert again.state.__dict__ == registry.store.machine.state.__dict__
