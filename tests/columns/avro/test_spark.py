"""Every type of column as every Avro type, and back: as Spark's own `to_avro` and `from_avro` do it, byte by byte.

Where the two differ on purpose, a table says so with the reason, and a difference that comes or goes is a failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import pyarrow as pa
import pytest
from tests.columns.avro.matrix import AVRO, COLUMNS, EDGES
from tests.support.spark.avro import Read, SparkAvro, Wrote
from tests.support.tools import ROOT

from ottla.columns.avro.decoder import decoder
from ottla.columns.avro.derive import derive_avro
from ottla.columns.avro.encoder import encoder
from ottla.columns.codec import UnsupportedSchema
from ottla.schemas.schema import SchemaSource

# In a record, as values are.
TEXTS = {
    name: json.dumps({"type": "record", "name": "Top", "fields": [{"name": "c", "type": each}]})
    for name, each in AVRO.items()
}
LONGS = [name for name in AVRO if name.endswith("(long)")]


@pytest.fixture(scope="module")
def spark_avro(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkAvro]:
    made = SparkAvro(tmp_path_factory.mktemp("spark-avro") / "java.log")
    yield made
    made.close()


@pytest.fixture(scope="module")
def written(spark_avro: SparkAvro) -> dict[tuple[str, str], Wrote]:
    """What `to_avro` makes of every cell."""
    asked = [(pa.field("c", in_struct(each).type), in_struct(each), list(TEXTS.values())) for each in COLUMNS.values()]
    answers = spark_avro.write(asked)
    cells = zip(COLUMNS, answers, strict=True)
    return {(name, to): each for name, row in cells for to, each in zip(TEXTS, row, strict=True)}


def in_struct(column: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays([column], fields=[pa.field("c", column.type)])


def by_us(column: pa.Array, text: str) -> list[bytes | Exception | None] | None:
    """Payloads and errors by row; None if the types are refused."""
    made = encoder(SchemaSource(text))
    try:
        made.fits(column.type)
    except ValueError:
        return None
    try:
        return made.encode(column).to_pylist()
    except ValueError:
        return [_row(made, column.slice(row, 1)) for row in range(len(column))]


def _row(made: Any, column: pa.Array) -> bytes | Exception | None:
    try:
        return made.encode(column)[0].as_py()
    except ValueError as error:
        return error


def same_row(text: str, ours: bytes | Exception | None, theirs: bytes | Exception | None) -> bool:
    if isinstance(ours, bytes) and isinstance(theirs, bytes) and ours != theirs and '"map"' in text:
        # Java writes the entries of a map in the order of a hash.
        both = comparable(decoder(SchemaSource(text)).decode(pa.array([ours, theirs])).columns)
        return len(ours) == len(theirs) and both[:1].equals(both[1:])
    return ours == theirs or (isinstance(ours, Exception) and isinstance(theirs, Exception))


def same_rows(text: str, ours: list[Any], theirs: list[Any]) -> bool:
    return len(ours) == len(theirs) and all(same_row(text, *pair) for pair in zip(ours, theirs, strict=True))


WE_WRITE = "Spark refuses it, but no value can change"
WE_REFUSE = "Spark writes it, and the time becomes another"
DEFAULT = "a field without a column gets its default; Spark writes null, or refuses"
WRITTEN_OTHERWISE: dict[tuple[str, str], str] = {
    **dict.fromkeys(
        product(["VOID"], ["null or int", "int or null", "null or timestamp-millis", "null or string"]), WE_WRITE
    ),
    ("VOID", "null, float or double"): WE_WRITE,
    **dict.fromkeys(
        product(["TINYINT", "SMALLINT", "INT"], ["long", "no-such-type (long)", "date (long)", "int or long"]), WE_WRITE
    ),
    ("ARRAY<INT>", "array of long"): WE_WRITE,
    ("FLOAT", "double"): WE_WRITE,
    ("FLOAT", "null, float or double"): WE_WRITE,
    ("DECIMAL(4,2)", "decimal(9,2) (bytes)"): WE_WRITE,
    ("DECIMAL(4,2)", "decimal(9,2) (fixed of 4)"): WE_WRITE,
    ("DECIMAL(4,2)", "decimal(9,2) (fixed of 20)"): WE_WRITE,
    **dict.fromkeys(product(["DECIMAL(4,2)", "DECIMAL(9,2)"], ["decimal(12,3) (bytes)"]), WE_WRITE),
    **dict.fromkeys(
        product(["DECIMAL(4,2)", "DECIMAL(9,2)", "DECIMAL(12,3)", "DECIMAL(20,0)"], ["decimal(38,9) (bytes)"]), WE_WRITE
    ),
    ("DATE", "time-millis (int)"): WE_REFUSE,
    **dict.fromkeys(product(["TIMESTAMP", "TIMESTAMP in New York", "TIMESTAMP_NTZ"], ["interval (long)"]), WE_REFUSE),
    **dict.fromkeys(
        product(
            ["INTERVAL DAY TO SECOND"],
            [*(each for each in LONGS if each not in ("interval (long)", "date (long)", "no-such-type (long)"))],
        ),
        WE_REFUSE,
    ),
    ("INTERVAL DAY TO SECOND", "null or timestamp-millis"): WE_REFUSE,
    **dict.fromkeys(
        product(
            ["STRUCT<x: INT>", "STRUCT<X: INT>"], ["record x, z with default", "record x, optional z with default"]
        ),
        DEFAULT,
    ),
}


def test_columns_are_written_as_by_to_avro(written: dict[tuple[str, str], Wrote]) -> None:
    found: dict[tuple[str, str], str] = {}
    for (name, to), theirs in written.items():
        ours = by_us(in_struct(COLUMNS[name]), TEXTS[to])
        if theirs.refused:
            if ours is not None:
                # Only what fits whatever the value is; and a null where the schema wants none.
                fails = {row for row, each in enumerate(ours) if isinstance(each, Exception)}
                assert all(not COLUMNS[name][row].is_valid or "record" in to for row in fails)
                found[name, to] = DEFAULT if "default" in to else WE_WRITE
        elif ours is None:
            found[name, to] = WE_REFUSE
        elif not same_rows(TEXTS[to], ours, theirs.rows):
            found[name, to] = DEFAULT if "default" in to else "differs"
    assert found == WRITTEN_OTHERWISE
    assert len(written) == len(COLUMNS) * len(AVRO)


def test_the_documentation_says_what_is_written_as_what() -> None:
    page = (ROOT / "docs" / "typed-columns.md").read_text()
    table = page.partition("### What a column is written as")[2].partition("###")[0]
    said = {
        column: set(types.split(", "))
        for columns, types in re.findall(r"^\| ([A-Z_, ]+) \| (.*?) \|", table, re.MULTILINE)
        for column in columns.split(", ")
    }
    others = ("array", "map", "record", "no-such", "date (long)")
    leaves = [name for name, each in AVRO.items() if not isinstance(each, list) and not name.startswith(others)]
    found: dict[str, set[str]] = {}
    for name, column in COLUMNS.items():
        if "<" in name or " in " in name:
            continue
        taken = {said_as(to) for to in leaves if by_us(in_struct(column), TEXTS[to]) is not None}
        found.setdefault(name.partition("(")[0], set()).update(taken)
    assert found == said


def said_as(name: str) -> str:
    """An Avro type by the name that the documentation gives it."""
    if name.startswith("decimal") and "too few" not in name:
        return "decimal"
    if name.startswith(("fixed", "decimal")):
        return "fixed"
    if name == "interval (int)":
        return "int"
    return name if name.startswith("uuid") else name.partition(" (")[0]


def as_we_say_it(schema: Any) -> Any:
    """Spark's schema for columns with our two differences: null comes first and is the default, decimals are bytes."""
    if isinstance(schema, list):
        return [as_we_say_it(each) for each in reversed(schema)]
    if not isinstance(schema, dict):
        return schema
    if schema["type"] == "fixed":
        return {name: each for name, each in schema.items() if name not in ("name", "namespace", "size")} | {
            "type": "bytes"
        }
    made = {name: as_we_say_it(each) if name in ("items", "values") else each for name, each in schema.items()}
    if schema["type"] == "record":
        made["fields"] = [_field_as_we_say_it(each) for each in schema["fields"]]
    return made


def _field_as_we_say_it(field: Any) -> Any:
    nullable = field["type"] == "null" or isinstance(field["type"], list)
    made = {"name": field["name"], "type": as_we_say_it(field["type"])}
    return {**made, "default": None} if nullable else made


def test_schemas_made_from_columns_are_to_avros(spark_avro: SparkAvro) -> None:
    cells = [(pa.field("c", in_struct(each).type, False), in_struct(each), [None]) for each in COLUMNS.values()]
    for (name, column), (theirs,) in zip(COLUMNS.items(), spark_avro.write(cells), strict=True):
        try:
            ours = derive_avro(in_struct(column).type)
        except UnsupportedSchema:
            assert theirs.refused and name == "MAP<INT, STRING>"
            continue
        assert json.loads(ours.text) == as_we_say_it(json.loads(theirs.schema)), name
        rows = by_us(in_struct(column), theirs.schema)
        assert rows is not None and same_rows(theirs.schema, rows, theirs.rows), name
        again = decoder(ours).decode(encoder(ours).encode(in_struct(column))).columns
        assert again.type.field(0).type == ORIGINAL.get(name, column.type), name


# Types that come back as others: Avro has no smaller number than int, and moments are in no zone.
ORIGINAL = {
    "TINYINT": pa.int32(),
    "SMALLINT": pa.int32(),
    "TIMESTAMP in New York": pa.timestamp("us", "UTC"),
}


def comparable(array: pa.Array) -> pa.Array:
    """Floats by their bits, so that what is no number equals itself; maps in the order of their keys."""
    of = array.type
    if pa.types.is_floating(of):
        return array.view(pa.int32() if of.bit_width == 32 else pa.int64())
    if pa.types.is_struct(of) and of.num_fields:
        parts = [comparable(array.field(index)) for index in range(of.num_fields)]
        return pa.StructArray.from_arrays(parts, [field.name for field in of], mask=array.is_null())
    return in_order(array) if pa.types.is_map(of) else array


def in_order(array: pa.MapArray) -> pa.MapArray:
    keys, ends = array.keys.to_pylist(), array.offsets.to_pylist()
    rows = [sorted(range(*span), key=keys.__getitem__) for span in pairwise(ends)]
    places = pa.array([at for row in rows for at in row], pa.int64())
    there = [*array.is_valid().to_pylist(), True]
    offsets = pa.array([at if is_there else None for at, is_there in zip(ends, there, strict=True)], pa.int32())
    return pa.MapArray.from_arrays(offsets, array.keys.take(places), comparable(array.items.take(places)))


def compare(ours: Any, theirs: Read) -> str:
    """In what our columns differ from those of `from_avro`; empty if in nothing."""
    if theirs.refused:
        return "" if ours is None else "Spark refuses the schema"
    if ours is None:
        return "we refuse the schema"
    if theirs.column is None or theirs.column.type != ours.columns.type:
        return f"the type: Spark's is {theirs.type}"
    if set(theirs.errors) != set(ours.reasons):
        more = sorted(set(ours.reasons) - set(theirs.errors))
        return ours.reasons[more[0]] if more else f"Spark cannot read {min(set(theirs.errors) - set(ours.reasons))}"
    return "" if comparable(theirs.column).equals(comparable(ours.columns)) else "the values"


def by_our_decoder(writer: str, reader: str | None, payloads: list[bytes | None]) -> Any:
    try:
        made = decoder(SchemaSource(writer), SchemaSource(reader) if reader else None)
    except UnsupportedSchema:
        return None
    return made.decode(pa.array(payloads, pa.binary()))


READ_OTHERWISE: dict[str, str] = {
    "time-micros (long)": "c: the number does not fit its type",  # a TIME beyond midnight
    "interval (int)": "the type: Spark's is STRUCT<c: INTERVAL YEAR TO MONTH NOT NULL>",  # Python's Arrow has none
}


def payloads_of(written: dict[tuple[str, str], Wrote], to: str) -> list[bytes | None]:
    return [*sorted({row for name in COLUMNS for row in written[name, to].rows if isinstance(row, bytes)}), None]


def few_payloads_of(written: dict[tuple[str, str], Wrote], to: str) -> list[bytes | None]:
    """Some of values at the edges, and some of random ones."""
    rows = [(name, written[name, to].rows) for name in COLUMNS]
    edges = {row for name, each in rows for row in each[: len(EDGES[name])] if isinstance(row, bytes)}
    others = {row for _, each in rows for row in each if isinstance(row, bytes)} - edges
    return [*some(sorted(edges)), *some(sorted(others)), None]


def test_payloads_are_read_as_by_from_avro(spark_avro: SparkAvro, written: dict[tuple[str, str], Wrote]) -> None:
    payloads = {to: payloads_of(written, to) for to in TEXTS}
    theirs = spark_avro.read([(TEXTS[to], None, payloads[to]) for to in TEXTS])
    ours = [by_our_decoder(TEXTS[to], None, payloads[to]) for to in TEXTS]
    found = {to: compare(*pair) for to, pair in zip(TEXTS, zip(ours, theirs, strict=True), strict=True)}
    assert {to: each for to, each in found.items() if each} == READ_OTHERWISE


def family(name: str) -> str:
    """Types of which some are read as others."""
    if name.startswith(("array", "map", "record")):
        return name.split()[0]
    return "number" if any(each in name for each in ("int", "long", "float", "double", "timestamp")) else "bytes"


def some(payloads: list[bytes]) -> list[bytes]:
    return [*dict.fromkeys([*payloads[:: max(1, len(payloads) // 8)], *payloads[-1:]])]


def unit_of(name: str) -> str:
    """Of the numbers that an Avro type counts time with; empty for others."""
    timed = ("timestamp", "local-timestamp", "time-", "null or timestamp", "interval (long)", "date (int)")
    return name.removeprefix("null or ").removeprefix("local-").partition(" ")[0] if name.startswith(timed) else ""


NUMBERS = {
    *("int", "long", "no-such-type (int)", "no-such-type (long)", "date (long)", "interval (int)"),
    *("null or int", "int or null", "one of int", "int or long", "int or string", "int, null or string"),
    "string, null or int",
}


def is_bytes(name: str) -> bool:
    return name.endswith("(bytes)") or name == "bytes"


def scale_of(name: str) -> str:
    return name.partition(")")[0].partition(",")[2] if name.startswith("decimal") else ""


def resolved_otherwise(writer: str, reader: str) -> str:
    """Why a value is read otherwise than by Spark, or not at all; empty if it is not."""
    if reader.endswith("(int)") and not writer.endswith("(int)") and reader != "interval (int)":
        return ""  # a long is never read as an int
    if reader == "interval (int)":
        return "Python's Arrow has no INTERVAL YEAR TO MONTH"
    if unit_of(writer) and unit_of(reader) not in ("", unit_of(writer)):
        return "Spark takes a number in one unit for one in another"
    if reader == "time-micros (long)" and writer in NUMBERS:
        return "a TIME beyond midnight"
    if is_bytes(writer) and ("string" in reader and not reader.startswith("map")):
        return "bytes that are no UTF-8 are no text"
    if reader.startswith("decimal") and reader.endswith("(bytes)"):
        if "string" in writer and not writer.startswith(("map", "array")):
            return "text is no decimal"
        if writer == "big-decimal (bytes)" or (is_bytes(writer) and scale_of(writer) not in ("", scale_of(reader))):
            return "the scale would be another"
    return ""


def test_payloads_are_read_with_another_schema_as_by_from_avro(
    spark_avro: SparkAvro, written: dict[tuple[str, str], Wrote]
) -> None:
    # Of what is never read as one another, one of each is enough.
    few = {family(name): name for name in TEXTS}.values()
    pairs = product(TEXTS, TEXTS)
    cells = [(one, two) for one, two in pairs if one != two and (family(one) == family(two) or {one, two} <= {*few})]
    payloads = {to: few_payloads_of(written, to) for to in TEXTS}
    theirs = spark_avro.read([(TEXTS[writer], TEXTS[reader], payloads[writer]) for writer, reader in cells])
    found = {
        (writer, reader): compare(by_our_decoder(TEXTS[writer], TEXTS[reader], payloads[writer]), read)
        for (writer, reader), read in zip(cells, theirs, strict=True)
    }
    unexplained = {cell: why for cell, why in found.items() if bool(why) != bool(resolved_otherwise(*cell))}
    assert not unexplained, unexplained
