"""Pipelines in SQL: a file of statements, each ended by a semicolon.

    CREATE STREAM orders FROM TOPIC 'orders' WITH (value = 'avro', watermark = 'timestamp', grace = '10 seconds');
    CREATE TABLE users FROM TOPIC 'users' WITH (value = 'avro');
    CREATE VIEW big AS SELECT ... FROM orders WHERE ...;
    INSERT INTO TOPIC 'revenue' WITH (name = 'revenue', mode = 'update', key = 'shop', trigger = '5 seconds')
      SELECT ...;
    INSERT INTO PARQUET '/lake/orders' SELECT ...;       -- also DELTA, with merge = 'id' for upserts

Everything after AS, and every SELECT, is Spark's own SQL, in which streams, tables and views are used by their names.
The options of WITH are those of `topic()` and `to()`, and those of the data source.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ottla.spark.pipelines.definition import Definition, PipelineError
from ottla.spark.streams import lake, outputs, streams, tables

_SKIPPED = re.compile(r"'(?:[^'\\]|''|\\.)*'|\"[^\"]*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
_WITH = r"(?:\s+WITH\s*\((?P<options>(?:[^()']|'(?:[^']|'')*')*)\))?"
_SOURCE = re.compile(
    rf"CREATE\s+(?P<kind>STREAM|TABLE)\s+(?P<name>\w+)\s+FROM\s+TOPIC\s+'(?P<topic>[^']+)'{_WITH}\s*$",
    re.IGNORECASE | re.DOTALL,
)
_VIEW = re.compile(r"CREATE\s+VIEW\s+(?P<name>\w+)\s+AS\s+(?P<select>.+)$", re.IGNORECASE | re.DOTALL)
_INSERT = re.compile(
    rf"INSERT\s+INTO\s+(?P<kind>TOPIC|PARQUET|DELTA)\s+'(?P<target>[^']+)'{_WITH}"
    r"\s+(?P<select>(?:SELECT|WITH|FROM)\b.+)$",
    re.IGNORECASE | re.DOTALL,
)
_OPTION = re.compile(r"\s*(?P<name>[\w.]+|`[^`]+`)\s*=\s*(?:'(?P<text>(?:[^']|'')*)'|(?P<word>[\w.]+))\s*(?:,|$)")
_FORMS = "CREATE STREAM | TABLE … FROM TOPIC, CREATE VIEW … AS, or INSERT INTO TOPIC | PARQUET | DELTA … SELECT"


class Statement(NamedTuple):
    """The text of a statement without comments before it, and the line where it begins."""

    text: str
    line: int


def split(text: str) -> Iterator[Statement]:
    """The statements of a file; semicolons in strings and comments do not count."""
    skipped = [found.span() for found in _SKIPPED.finditer(text)]
    begin = 0
    ends = [
        at for at, char in enumerate(text) if char == ";" and not any(start <= at < stop for start, stop in skipped)
    ]
    for end in [*ends, len(text)]:
        part = text[begin:end]
        blank = re.match(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*", part, re.DOTALL)
        lead = blank.end() if blank is not None else 0
        if part[lead:].strip():
            yield Statement(part[lead:].strip(), text.count("\n", 0, begin + lead) + 1)
        begin = end + 1


def read_statements(text: str, file: str) -> list[Definition]:
    """The definitions of a SQL file. Raises PipelineError."""
    made: list[Definition] = []
    for statement in split(text):
        plain = statement.text
        if (found := _SOURCE.match(plain)) is not None:
            made.append(_source(found, file, statement.line))
        elif (found := _VIEW.match(plain)) is not None:
            select = found["select"]
            build = _returning(select)
            made.append(Definition("stream", found["name"], build, (), file, statement.line))
        elif (found := _INSERT.match(plain)) is not None:
            made.append(_insert(found, file, statement.line, len(made)))
        else:
            raise PipelineError(f"not a statement of a pipeline: it is {_FORMS}", file, statement.line)
    return made


def _returning(select: str) -> Callable[[], str]:
    return lambda: select


def _source(found: re.Match[str], file: str, line: int) -> Definition:
    options = _options(found["options"], file, line)
    watermark = options.pop("watermark", None)
    grace = options.pop("grace", "0 seconds")
    topic = found["topic"]
    is_table = found["kind"].upper() == "TABLE"
    if is_table and watermark is not None:
        raise PipelineError("a table has no watermark", file, line)

    def build(spark: Any) -> Any:
        if is_table:
            return tables.table(topic, spark=spark, **options)
        frame = streams.topic(topic, spark=spark, **options)
        return frame if watermark is None else frame.withWatermark(watermark, grace)

    return Definition("stream", found["name"], build, ("spark",), file, line)


def _insert(found: re.Match[str], file: str, line: int, index: int) -> Definition:
    options = _options(found["options"], file, line)
    target, kind, select = found["target"], found["kind"].upper(), found["select"]
    name = options.pop("name", None) or (re.sub(r"[^\w.-]+", "-", target).strip("-.") or f"query{index}")
    own = {word: options.pop(word, None) for word in ("trigger", "checkpoint")}
    restarts = _count(options.pop("restarts", None), "restarts", file, line)

    def build(spark: Any) -> outputs.Output:
        frame = spark.sql(select)
        if kind == "TOPIC":
            return outputs.to(frame, target, **options)
        if kind == "PARQUET":
            by = options.get("partition_by", "")
            return outputs.to_parquet(frame, target, partition_by=[each for each in by.split(",") if each])
        merge = [each.strip() for each in options.pop("merge", "").split(",") if each.strip()]
        return lake.to_delta(frame, target, merge=merge, **options)

    return Definition("query", name, build, ("spark",), file, line, **own, restarts=restarts, select=select)


def _count(text: str | None, name: str, file: str, line: int) -> int | None:
    if text is not None and not text.isdecimal():
        raise PipelineError(f"{name} is a number, not {text!r}", file, line)
    return None if text is None else int(text)


def _options(text: str | None, file: str, line: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    at = 0
    while text is not None and text[at:].strip():
        option = _OPTION.match(text, at)
        if option is None:
            raise PipelineError(f"WITH takes name = 'value', not {text[at:].strip()!r}", file, line)
        value = option["word"] if option["text"] is None else option["text"].replace("''", "'")
        found[option["name"].strip("`")] = value
        at = option.end()
    return found
