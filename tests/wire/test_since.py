"""`since`: handlers and clients ask the messages for the versions that they tell apart."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla
from ottla.wire.messages.records.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.topics.metadata import MetadataRequest

SOURCE = Path(ottla.__file__).parent


def test_the_first_version_that_has_a_field() -> None:
    assert FetchRequest.Topic.since("topic_id") == 13
    assert FetchRequest.since("replica_state") == 15
    assert FetchResponse.since("session_id") == 7


@pytest.mark.parametrize(
    ("field", "problem"), [("no_such", "does not exist"), ("max_bytes", "is in every"), ("topics", "is in every")]
)
def test_a_field_that_tells_no_versions_apart(field: str, problem: str) -> None:
    with pytest.raises(ValueError, match=rf"FetchRequest\.{field} {problem}"):
        FetchRequest.since(field)


def test_the_first_version_in_which_a_field_may_be_null() -> None:
    assert MetadataRequest.null_since("topics") == 1
    for field in ("allow_auto_topic_creation", "no_such"):
        with pytest.raises(ValueError, match=rf"MetadataRequest\.{field} may be null in every version or in none"):
            MetadataRequest.null_since(field)


def uses(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls of `since` and `null_since` with a field's name."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="since" | "null_since"), args=[ast.Constant(value=str())]):
                yield node


def test_every_use_is_tried_by_the_import() -> None:
    """Otherwise a misspelt field would be found by the first client of an old version."""
    found = 0
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if 'since("' not in text:
            continue
        tree = ast.parse(text)
        inside = [call for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) for call in uses(each)]
        assert inside == [], f"{path}: make it a constant of the module"
        found += len(list(uses(tree)))
        importlib.import_module(".".join(("ottla", *path.relative_to(SOURCE).with_suffix("").parts)))
    assert found > 25
