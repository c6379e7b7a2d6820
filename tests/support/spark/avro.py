"""Spark's `to_avro` and `from_avro`, and Java's Avro, in a JVM without a session: tests/java/avro/SparkAvro.java."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from tests.support.java.programs import QUICK
from tests.support.lines import LineServer
from tests.support.tools import ROOT, SPARK_LIBS, missing, require

from ottla.model.limits import ITEMS_OF_NO_SIZE_MAX

# Options of the JVM that Arrow and Spark's memory management need.
_OPENED = [f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in ("java.nio", "sun.nio.ch", "java.lang", "java.util")]
# Limits for Java's Avro, which has none by default, so that lengths claimed by a few bytes cannot fill the JVM. The
# limit of items is the same as Ottla's.
_BOUNDED = [
    f"-Dorg.apache.avro.limits.{name}.maxLength={most}"
    for name, most in (("collectionItems", ITEMS_OF_NO_SIZE_MAX), ("string", 1_000_000), ("bytes", 1_000_000))
]


class Wrote(NamedTuple):
    """The result of `to_avro` for a column: payloads by row, an error as an Exception; or why it refuses the types."""

    rows: list[bytes | Exception | None]
    refused: str
    schema: str
    type: str


class Read(NamedTuple):
    """The result of `from_avro` for payloads: a column, and why rows have no value; or why it refuses the schemas."""

    column: pa.Array | None
    errors: dict[int, str]
    refused: str
    type: str


class SparkAvro:
    """One JVM for many requests; each call sends many at once."""

    def __init__(self, log: Path) -> None:
        require(missing())
        require(None if SPARK_LIBS.exists() else "the Spark jars are not installed; run scripts/tools")
        pyspark = pytest.importorskip("pyspark")
        jars = f"{Path(pyspark.__file__).parent}/jars/*:{next(SPARK_LIBS.glob('spark-avro*.jar'))}"
        source = str(ROOT / "tests" / "java" / "avro" / "SparkAvro.java")
        self._server = LineServer("SparkAvro", ["java", *QUICK, *_OPENED, *_BOUNDED, "-cp", jars, source], log)

    def close(self) -> None:
        self._server.close()

    def write(self, cells: Sequence[tuple[pa.Field, pa.Array, Sequence[str | None]]]) -> list[list[Wrote]]:
        """`to_avro` of columns, each (field, values, writer schemas; None is Spark's own)."""
        asked = [{"arrow": _stream(field, values), "schemas": list(schemas)} for field, values, schemas in cells]
        return [[_wrote(answer) for answer in answers] for answers in self._server.ask({"write": asked})]

    def read(self, cells: Sequence[tuple[str, str | None, Sequence[bytes | None]]]) -> list[Read]:
        """`from_avro` of payloads, each cell (writer's schema, reader's schema if it is another, payloads)."""
        return [
            Read(
                _column(answer["arrow"]) if "arrow" in answer else None,
                {int(row): why for row, why in answer.get("errors", {}).items()},
                answer.get("refused", ""),
                answer.get("type", ""),
            )
            for answer in self._server.ask({"read": _asked(cells)})
        ]

    def judge(self, cells: Sequence[tuple[str, str | None, Sequence[bytes]]]) -> list[list[int | str] | str]:
        """Java's Avro alone: for each payload the number of bytes left over, or why it cannot be read; or one reason
        for the schemas.
        """
        return [
            answer["refused"]
            if "refused" in answer
            else [each if isinstance(each, int) else each["error"] for each in answer["rows"]]
            for answer in self._server.ask({"judge": _asked(cells)})
        ]


def _asked(cells: Sequence[tuple[str, str | None, Sequence[bytes | None]]]) -> list[dict[str, Any]]:
    return [
        {"writer": writer, "reader": reader, "payloads": [None if each is None else _text(each) for each in payloads]}
        for writer, reader, payloads in cells
    ]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _wrote(answer: dict[str, Any]) -> Wrote:
    rows = [_row(each) for each in answer.get("rows", [])]
    return Wrote(rows, answer.get("refused", ""), answer.get("schema", ""), answer["type"])


def _row(answer: Any) -> bytes | Exception | None:
    if isinstance(answer, dict):
        return RuntimeError(answer["error"])
    return None if answer is None else base64.b64decode(answer)


def _stream(field: pa.Field, values: pa.Array) -> str:
    to = pa.BufferOutputStream()
    schema = pa.schema([field])
    with pa.ipc.new_stream(to, schema) as stream:
        stream.write_batch(pa.record_batch([values], schema=schema))
    return _text(to.getvalue().to_pybytes())


def _column(answer: str) -> pa.Array | None:
    """The column; None if its type does not exist in Python (intervals of months)."""
    try:
        return pa.ipc.open_stream(base64.b64decode(answer)).read_all().column(0).combine_chunks()
    except KeyError:
        return None
