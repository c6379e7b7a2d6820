"""What is remembered of parsed schemas, and how much."""

import json

import pytest

from ottla.schemas.registry import library
from ottla.schemas.registry.library import SchemaLibrary
from ottla.schemas.registry.state import RegistryState
from ottla.schemas.schema import SchemaSource


def record(name: str, fields: int) -> SchemaSource:
    listed = [{"name": f"f{number}", "type": "int"} for number in range(fields)]
    return SchemaSource(json.dumps({"type": "record", "name": name, "fields": listed}))


def test_long_texts_are_forgotten_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "SCHEMAS_PARSED_CHARS_MAX", 10_000)
    kept = SchemaLibrary(RegistryState())
    short = [record(f"S{number}", 1) for number in range(20)]
    first = [kept.parsed(each, as_new=True) for each in short]
    assert [kept.parsed(each, as_new=True) for each in short] == first
    assert all(kept.parsed(each, as_new=True) is known for each, known in zip(short, first, strict=True))
    long = record("Long", 200)
    assert 5_000 < len(long.text) < 10_000
    assert kept.parsed(long, as_new=True) is kept.parsed(long, as_new=True)
    kept.parsed(record("Longer", 250), as_new=True)
    assert kept.parsed(long, as_new=True) is kept.parsed(long, as_new=True)
    assert sum(len(key[2]) for key in kept._remembered) == kept._remembered_chars <= 10_000
    huge = record("Huge", 1_000)
    assert kept.parsed(huge, as_new=True) is not kept.parsed(huge, as_new=True)
    assert kept._remembered_chars == 0 and not kept._remembered
