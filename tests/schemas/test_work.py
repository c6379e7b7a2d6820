"""The work that a schema makes grows with its text and not with the square of it: a stranger's megabyte takes seconds.

Every text is one that took minutes or hours. CPU of this thread counts, so that a busy machine is no finding.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest

from ottla.model import limits
from ottla.schemas import jackson
from ottla.schemas.parse import parse
from ottla.schemas.schema import InvalidSchema, SchemaSource, SchemaType

CPU_S_MAX = 10.0


def spent_s(work: Callable[[], object]) -> float:
    started_s = time.thread_time()
    work()
    return time.thread_time() - started_s


def filled(begin: str, part: str, end: str = "") -> str:
    """A text as long as schemas may be, of equal parts."""
    return begin + part * ((limits.SCHEMA_TEXT_CHARS_MAX - len(begin) - len(end)) // len(part)) + end


COMMENTED = {
    "escaped quotes, no end": filled('// \n"', '\\"'),
    "strings, no end": filled('// \n"\\"', '"'),
    "comments that begin": filled("", "/* "),
    "comments that begin and never end": filled("", "/*/"),
    "short comments": filled("", "/**/"),
    "stars": filled("/*", "*"),
    "lines": filled("", "//\n"),
    "backslashes": filled('//\n"', "\\"),
    "slashes": filled("// \n", "/ "),
}


@pytest.mark.parametrize("name", COMMENTED)
def test_comments_are_skipped_in_linear_time(name: str) -> None:
    def read() -> None:
        with pytest.raises(InvalidSchema):
            jackson.read(COMMENTED[name], comments=True)

    assert spent_s(read) < 2.0


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('// one\n{"a": /* two */ 1}', {"a": 1}),
        ('{"a": "// no /* comment */"} // one\r', {"a": "// no /* comment */"}),
        ('/* "a */ "b" // "c', "b"),
        ('"\\"/*" /**/', '"/*'),
        ('"\\\\" // \\"', "\\"),
        ("[1,/***/2]", [1, 2]),
        ("[1 /*/ 3 */]", [1]),
    ],
)
def test_comments(text: str, value: object) -> None:
    assert jackson.read(text, comments=True) == value


@pytest.mark.parametrize("text", ["1 /*", "1 /*/", '"a // b', '// \n"\\"', "1 /", "/* */"])
def test_what_never_ends_is_no_json(text: str) -> None:
    with pytest.raises(InvalidSchema, match="not JSON"):
        jackson.read(text, comments=True)


def numbered(begin: str, part: str, end: str = "", *, chars: int = 200_000) -> str:
    """A text of parts that have a number from 1 on in the place of each `#`."""
    made = [begin]
    number = size = 0
    while size < chars:
        number += 1
        made.append(part.replace("#", str(number)))
        size += len(made[-1])
    return "".join(made) + end


def message(*parts: str) -> str:
    return 'syntax="proto3";message M{' + "".join(parts) + "}"


# type and text; some are schemas, and some are refused
LARGE: dict[str, tuple[SchemaType, str]] = {
    "protobuf: fields beside reserved numbers": (
        SchemaType.PROTOBUF,
        message(numbered("reserved 536000000", ",100#"), ";", numbered("", "int32 a#=2#;")),
    ),
    "protobuf: a package of many names": (
        SchemaType.PROTOBUF,
        filled('syntax="proto3";package a', ".a", ";message M{M m=1;}"),
    ),
    "protobuf: a long package": (
        SchemaType.PROTOBUF,
        numbered(f'syntax="proto3";package {"a" * 500_000};', "message M#{}"),
    ),
    "protobuf: a string in many parts": (SchemaType.PROTOBUF, filled('import "a"', '"aaaaa"', ";")),
    "protobuf: names in JSON": (
        SchemaType.PROTOBUF,
        message("int32 a=1[", numbered("deprecated=true", ',json_name="a#"'), "];"),
    ),
    "protobuf: oneofs": (SchemaType.PROTOBUF, message(numbered("", "oneof o#{int32 a#=2#;}"))),
    "avro: a symbol twice": (
        SchemaType.AVRO,
        '{"type":"enum","name":"E","symbols":['
        + numbered('"z"', ',"a#"', ',"z"]}', chars=900_000).replace('"z"', '"y"', 1).replace('"z"', '"a99999"'),
    ),
    "avro: a long namespace": (
        SchemaType.AVRO,
        numbered(
            '{"type":"record","name":"R","namespace":"' + "a" * 500_000 + '","fields":[{"name":"z","type":"int"}',
            ',{"name":"f#","type":{"type":"fixed","name":"F#","size":1}}',
            "]}",
        ),
    ),
    "protobuf: values beside reserved numbers": (
        SchemaType.PROTOBUF,
        'syntax="proto3";enum E{' + numbered("reserved -1", ",-#7") + ";Z=0;" + numbered("", "A#=#;") + "}",
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_parsing_and_normalizing(name: str) -> None:
    kind, text = LARGE[name]

    def understand() -> None:
        with contextlib.suppress(InvalidSchema):
            parsed = parse(SchemaSource(text, kind))
            assert parsed.canonical and parsed.normalized

    assert spent_s(understand) < CPU_S_MAX
