"""Java's Avro is the judge: the text it gives back, the schemas it refuses, and what it finds between two of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schemas.avro.cases import INVALID, TEXTS
from tests.schemas.avro.generated import Json, schemas
from tests.support.java.programs import QUICK
from tests.support.lines import LineServer
from tests.support.tools import ROOT, missing, require

from ottla.schemas.avro import AvroSchema, parse_avro
from ottla.schemas.avro.compare import incompatibilities
from ottla.schemas.schema import InvalidSchema, SchemaSource

EXAMPLES = 200
PAIRS = 80  # each takes a sixth of a second


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineServer]:
    require(missing())
    pyspark = pytest.importorskip("pyspark")
    jars = Path(pyspark.__file__).parent / "jars"
    source = ROOT / "tests" / "java" / "avro" / "AvroOracle.java"
    log = tmp_path_factory.mktemp("avro") / "java.log"
    server = LineServer("AvroOracle", ["java", *QUICK, "-cp", f"{jars}/*", str(source)], log)
    yield server
    server.close()


def mine(text: str) -> AvroSchema | None:
    try:
        return parse_avro(SchemaSource(text))
    except InvalidSchema:
        return None


@pytest.mark.parametrize("text", [*TEXTS, *(text for text, _ in INVALID)])
def test_a_schema_comes_back_as_from_java_or_is_refused_as_there(java: LineServer, text: str) -> None:
    parsed = mine(text)
    assert java.ask({"schema": text}).get("text") == (parsed and parsed.canonical)


@settings(max_examples=EXAMPLES, deadline=None)
@given(schemas())
def test_any_schema_comes_back_as_from_java(java: LineServer, tree: Json) -> None:
    parsed = mine(json.dumps(tree))
    assert java.ask({"schema": json.dumps(tree)}).get("text") == (parsed and parsed.canonical)


@settings(max_examples=PAIRS, deadline=None)
@given(schemas(), schemas(), st.booleans())
def test_any_pair_is_judged_as_by_java(java: LineServer, reader: Json, writer: Json, same: bool) -> None:
    read, written = mine(json.dumps(reader)), mine(json.dumps(reader if same else writer))
    if read is None or written is None:
        return
    answer = java.ask({"reader": read.canonical, "writer": written.canonical})
    found = [list(each) for each in incompatibilities(read.schema, written.schema)]
    if "refused" in answer:
        assert found == [["", "/", f"Unexpected exception during compatibility check: {answer['refused']}"]]
    else:
        assert found == answer["found"]


def test_types_of_references_are_only_named(java: LineServer) -> None:
    address = (
        '{"type":"record","name":"a.Address","fields":[{"name":"zip","type":{"type":"fixed","name":"Zip","size":5}}]}'
    )
    text = (
        '{"type":"record","name":"b.User","fields":[{"name":"home","type":"a.Address"},'
        '{"name":"zip","type":"a.Zip"},{"name":"old","type":"a.Zip"}]}'
    )
    parsed = parse_avro(SchemaSource(text, resolved={"a.Address": address}))
    assert java.ask({"schema": text, "references": [address]})["text"] == parsed.canonical
    assert '"type":"a.Address"' in parsed.canonical
