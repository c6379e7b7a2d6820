"""JSON text of all kinds, good and bad, around one schema that has every kind of column."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from ottla.schemas.schema import SchemaSource, SchemaType

ODD = 'a"\\é/\t😀'
PROPERTIES: dict[str, Any] = {
    "id": {"type": "integer"},
    "x": {"type": "number"},
    "ok": {"type": "boolean"},
    "s": {"type": "string"},
    "at": {"type": "string", "format": "date-time"},
    "day": {"type": "string", "format": "date"},
    "raw": {"type": "string", "contentEncoding": "base64"},
    "any": {},
    "none": {"type": "null"},
    "tags": {"type": "array", "items": {"type": "integer"}},
    "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
    "inner": {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "number"}}}},
            "m": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
        },
    },
    "": {"type": "integer"},
    ODD: {"type": "string"},
}
SCHEMA = {"type": "object", "properties": PROPERTIES}

NUMBERS = [
    "0", "-0", "0.0", "-0.0", "-0e5", "1", "1.0", "1.5", "1e3", "10e-1", "1E+2", "15e-1", "-1e-5", "0.1e1", "100e-2",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "9223372036854775807.0", "92233720368547758.07e2", "9.3e18", "1e18", "1e19", "1e22", "1e23", "9007199254740993",
    "9007199254740993.0", "1e300", "1.0000000000000000000000001", "9007199254740993.5", "1e308",
    "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "2e308", "1e309", "-1e400", "1e-400",
    "5e-324", "2e-324", "0e400", "0e99999999999999999999", "1e99999999999999999999", "1e-99999999999999999999",
    "1" + "0" * 308, "1" + "0" * 309, "9" * 5000, "0." + "0" * 400 + "1", "1" + "0" * 5000 + "e-5000", "0.1",
    "0.30000000000000004", "123456789012345678", "12345678901234567890.123", "4.35", "NaN", "Infinity", "-Infinity",
    "nan", "01", "-01", "+1", "1.", ".5", "1e", "1e+", "-", "--1", "0x10", "1_000", "1,5",
]  # fmt: skip
STRINGS = [
    '""', '"x"', '"1"', '"\\ud800"', '"\\udc00"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\ud83dx"', '"\\ude00\\ud83d"',
    '"\\ud800\\ud800"', '"\\ud83d\\u0041"', '"\\u0000"', '"\\u00e9"', '"\\uFFFF"', '"\\u12"', '"\\u12g4"', '"\\x41"',
    '"\\"', '"\\/\\b\\f\\n\\r\\t\\"\\\\"', '"\t"', '"\n"', '"\x00"', '"\x7f"', "'x'", '"', '"é😀"', '"\ufeff"',
    '"' + "x" * 3000 + '"', '"2026-01-02"', '"2024-02-29"', '"2023-02-29"', '"0000-01-01"', '"0001-01-01"',
    '"9999-12-31"', '"10000-01-01"', '"2026-1-2"', '"20260102"', '"2026-W01-1"', '"2026-13-01"', '"2026-00-10"',
    '"2026-01-00"', '"2026-01-02 "', '"2026-01-02T03:04:05Z"', '"2026-01-02t03:04:05.678901z"', '"2026-01-02 03:04"',
    '"2026-01-02T03:04:05.123456789+01:30"', '"2026-01-02T03:04:05-23:59"', '"2026-01-02T24:00:00Z"',
    '"2026-01-02T23:59:60Z"', '"2026-01-02T03:04:05+24:00"', '"2026-01-02T03:04:05.Z"', '"2026-01-02T"',
    '"2026-01-02T03"', '"2026-01-02T03:04:05+0100"', '"2026-01-02T03:04:05 Z"', '"0001-01-01T00:00:00+23:00"',
    '"9999-12-31T23:59:59.999999-23:00"', '"2026-01-02T03:04:05\\u005a"', '"tomorrow"', '"AA=="', '"AAE="', '"AAEC"',
    '"AAECAw=="', '"AA"', '"A==="', '"===="', '"AA=A"', '"A A="', '"AA\\u003d="', '"+/+/"', '"-_-_"', '"AAEC\\n"',
    '"\\/\\/\\/\\/"',
]  # fmt: skip
OTHERS = [
    "true", "false", "null", "True", "nul", "tru", "", "{}", "[]", "[[]]", "{]", "[}", "[1,]", "[,1]", "{,}",
    "undefined",
]  # fmt: skip
BLANKS = st.sampled_from(["", "", "", " ", "\n", "\t\r ", "\f", "\u00a0", "/* */", "//\n", "\x00", "\ufeff"])
GOOD_BLANKS = st.sampled_from(["", "", "", " ", "\n", "\t\r "])

numbers = st.sampled_from(NUMBERS) | st.from_regex(
    r"-?(0|[1-9][0-9]{0,21})(\.[0-9]{1,21})?([eE][+-]?[0-9]{1,3})?", fullmatch=True
)
strings = st.sampled_from(STRINGS) | st.builds(json.dumps, st.text(max_size=12), ensure_ascii=st.booleans())
leaves = numbers | strings | st.sampled_from(OTHERS)
names = (
    st.sampled_from([*map(json.dumps, PROPERTIES), '"a"', '"b"', '"c"', '"m"', '"\\u0069d"', '"i\\u0064"', '"more"'])
    | strings
)


def _array(items: list[str], blanks: list[str], comma: str) -> str:
    return "[" + blanks[0] + (blanks[1] + comma + blanks[2]).join(items) + blanks[3] + "]"


def _object(members: list[tuple[str, str]], blanks: list[str], comma: str, colon: str) -> str:
    joined = [f"{name}{blanks[0]}{colon}{blanks[1]}{value}" for name, value in members]
    return "{" + blanks[2] + (blanks[3] + comma + blanks[0]).join(joined) + blanks[1] + "}"


four_blanks = st.lists(GOOD_BLANKS, min_size=4, max_size=4) | st.lists(BLANKS, min_size=4, max_size=4)
commas = st.sampled_from([","] * 20 + [";", ",,", ""])
colons = st.sampled_from([":"] * 20 + ["=", ""])
values: st.SearchStrategy[str] = st.recursive(
    leaves,
    lambda below: (
        st.builds(_array, st.lists(below, max_size=3), four_blanks, commas)
        | st.builds(_object, st.lists(st.tuples(names, below), max_size=3), four_blanks, commas, colons)
    ),
    max_leaves=6,
)


def _likely(schema: Any) -> st.SearchStrategy[str]:
    """Text that mostly fits a schema."""
    kind = schema.get("type")
    if "properties" in schema:
        each = [st.tuples(st.just(json.dumps(name)), _likely(of)) for name, of in schema["properties"].items()]
        blanks = st.lists(GOOD_BLANKS, min_size=4, max_size=4)
        return st.builds(_object, st.lists(st.one_of(each), max_size=5), blanks, st.just(","), st.just(":"))
    if kind == "object":
        members = st.lists(st.tuples(strings, _likely(schema["additionalProperties"])), max_size=4)
        return st.builds(_object, members, st.just([""] * 4), st.just(","), st.just(":"))
    if kind == "array":
        return st.builds(_array, st.lists(_likely(schema["items"]), max_size=4), st.just([""] * 4), st.just(","))
    if kind in ("integer", "number"):
        return numbers | st.integers(-(2**64), 2**64).map(str) | st.floats().map(repr)
    if kind == "boolean":
        return st.sampled_from(["true", "false", "null", "1"])
    return strings if kind == "string" else values


@st.composite
def mutated(draw: st.DrawFn, texts: st.SearchStrategy[bytes]) -> bytes:
    """With some bytes gone, or others."""
    data = bytearray(draw(texts))
    special = st.sampled_from([b'"', b"\\", b"{", b"}", b","])
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        how = draw(st.sampled_from(["cut", "end", "replace", "insert"]))
        if how == "cut":
            del data[at : at + draw(st.integers(1, 4))]
        elif how == "end":
            del data[at:]
        else:
            data[at : at + (how == "replace")] = draw(st.binary(min_size=1, max_size=3) | special)
    return bytes(data)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


DEEP = [(b"[" * depth + b"]" * depth) for depth in (499, 500, 501, 5000)]
DEEP += [b'{"any":' + each + b"}" for each in DEEP]
WHOLE = [
    b"", b" ", b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b"null", b"1", b'"x"', b"[]", b"{} {}", b"{}\n{}", b"{}\x00",
    b'{"s":"\xff"}', b'{"s":"\xed\xa0\x80"}', b'{"\xff":1}', b'{"s":"\xc3"}', b'{"s":"\xf0\x9f\x98\x80"}', b"\xff",
    *DEEP,
]  # fmt: skip
likely = _likely(SCHEMA).map(_bytes)
payloads = likely | mutated(likely) | values.map(_bytes) | st.sampled_from(WHOLE) | st.binary(max_size=20)


def source(schema: Any) -> SchemaSource:
    return SchemaSource(json.dumps(schema), SchemaType.JSON)
