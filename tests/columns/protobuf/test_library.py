"""Columns hold what the library reads, whatever the bytes are: random schemas, odd payloads, and each case that once
differed.

`make test` takes some seeds; `OTTLA_PROTOBUF_SEEDS=0-20000` takes those (each has its own schema and 40 payloads). With
`NUMBA_BOUNDSCHECK=1`, and a `NUMBA_CACHE_DIR` of their own, the loops look at every index.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass
from tests.columns.protobuf.fuzz import Unreadable, case, columns_shown, read, varint

from ottla.columns.protobuf.decoder import ProtobufDecoder
from ottla.schemas.protobuf import parse_protobuf
from ottla.schemas.schema import SchemaSource, SchemaType

# A field 0 inside an unknown group, which this version of the library passes over; a time that is too large in an entry
# of a map that a later one replaces.
FOUND = (322, 392, 928, 953, 976, 1046, 5023, 5931, 10448, 10500)
BEGIN, _, END = os.environ.get("OTTLA_PROTOBUF_SEEDS", "100000-100120").partition("-")


@pytest.mark.parametrize("seeds", [FOUND, range(int(BEGIN), int(END))], ids=["found", "sample"])
def test_what_the_library_reads_is_what_columns_hold(seeds: Any) -> None:
    for seed in seeds:
        made = case(seed)
        decoded = ProtobufDecoder(made.message).decode(pa.array(made.payloads, pa.binary()))
        decoded.columns.validate(full=True)
        found = columns_shown(decoded.columns, made.message)
        for row, payload in enumerate(made.payloads):
            expected = read_or_none(made.message, payload)
            assert (row in decoded.reasons) == (expected is None), (seed, row, payload.hex(), decoded.reasons.get(row))
            assert found[row] == expected, (seed, row, payload.hex())


def read_or_none(message: Any, payload: bytes) -> Any:
    try:
        return read(message, payload)
    except Unreadable:
        return None


def message_of(text: str) -> Any:
    return parse_protobuf(SchemaSource(text, SchemaType.PROTOBUF)).message_descriptor()


def agreed(text: str, *payloads: str) -> list[Any]:
    """What the library reads of payloads in hexadecimal digits, and the columns hold, too; None for bad ones."""
    message = message_of(text)
    values = [bytes.fromhex(each) for each in payloads]
    decoded = ProtobufDecoder(message).decode(pa.array(values, pa.binary()))
    expected = [read_or_none(message, value) for value in values]
    assert columns_shown(decoded.columns, message) == expected
    assert sorted(decoded.reasons) == [row for row, each in enumerate(expected) if each is None]
    return expected


@pytest.mark.parametrize("written", ["int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "fixed64"])
def test_numbers_are_read_as_other_types_as_the_library_does(written: str) -> None:
    fields = ["int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "fixed64"]
    writer = GetMessageClass(message_of(f'syntax = "proto3"; message M {{ {written} a = 1; }}'))
    rng = Random(1)
    payloads = []
    for _ in range(300):
        number = rng.getrandbits(rng.randrange(1, 65))
        small = written.endswith("32")
        number &= 0xFFFFFFFF if small else 2**64 - 1
        if written[0] in "is":
            number -= (1 << (32 if small else 64)) if number >> (31 if small else 63) else 0
        payloads.append(writer(a=number != 0 if written == "bool" else number).SerializeToString().hex())
    for each in fields:
        agreed(f'syntax = "proto3"; message M {{ {each} a = 1; }}', *payloads)


PLAIN = 'syntax = "proto3"; message M { int32 a = 1; }'


def test_groups_end_as_they_began() -> None:
    begun, inner = "4b", "53100154"
    assert agreed(PLAIN, "0801" + begun + inner + "4c", begun + inner + "54", begun + inner, "4c", begun + "5c4c") == [
        {"a": 1}, None, None, None, None,
    ]  # fmt: skip
    deep = [("4b" * depth + "4c" * depth) for depth in (100, 101, 5_000)]
    assert agreed(PLAIN, *deep) == [{"a": 0}, None, None]
    within = 'syntax = "proto3"; message M { N n = 1; } message N { int32 a = 1; }'
    inner = "4b" * 99 + "4c" * 99
    assert agreed(within, "0ac601" + inner, "0ac801" + "4b" + inner + "4c") == [{"n": {"a": 0}}, None]


def test_groups_are_messages_that_are_spelt_otherwise() -> None:
    text = """syntax = "proto2"; message M { optional group One = 1 { optional int32 a = 1; }
      repeated group Many = 2 { optional string b = 1; optional group Deep = 3 { optional bool c = 1; } } }"""
    one, many = "0b08050c", "130a01611b08011c14"
    assert agreed(text, one + many + many, "0a020805", one + "0b0c", "0b080514", "") == [
        {"one": {"a": 5}, "many": [{"b": "a", "deep": {"c": True}}] * 2},
        {"one": None, "many": []},
        {"one": {"a": 5}, "many": []},
        None,
        {"one": None, "many": []},
    ]


MAP = """syntax = "proto3"; message M { map<string, N> m = 1; map<int32, int32> n = 2; }
message N { int32 a = 1; repeated int32 b = 2; }"""


@pytest.mark.parametrize(
    ("payload", "m"),
    [
        ("0a070a016b12020801", [("k", {"a": 1, "b": []})]),
        ("0a07120208010a016b", [("k", {"a": 1, "b": []})]),  # the value first
        ("0a00", [("", {"a": 0, "b": []})]),
        ("0a030a016b", [("k", {"a": 0, "b": []})]),
        ("0a0412020801", [("", {"a": 1, "b": []})]),
        ("0a070a016b120208010a070a016b12021005", [("k", {"a": 0, "b": [5]})]),  # twice: the last, not merged
        ("0a0b0a016b1202080112021005", [("k", {"a": 1, "b": [5]})]),  # one entry with two values: merged
        ("0a0a0a016a0a016b12020801", [("k", {"a": 1, "b": []})]),  # two keys: the last
        ("0a090a016b120208011805", []),  # more than key and value: no entry
        ("0a06080512020801", []),  # a key of another type: no entry, but its value has to be good
        ("0a050805120108", None),
        ("0a060a016b120108", None),
    ],
)
def test_entries_of_maps(payload: str, m: Any) -> None:
    expected = None if m is None else {"m": m, "n": []}
    assert agreed(MAP, payload) == [expected]


@pytest.mark.parametrize("count", [2, 8, 9, 40, 3_000])
def test_keys_of_a_map_are_there_once(count: int) -> None:
    rng = Random(count)
    numbers = [rng.getrandbits(20) for _ in range(count)]

    def payload(keys: list[int]) -> str:
        entries = (b"\x08" + varint(rng, key, False) + b"\x10" + bytes([at % 128]) for at, key in enumerate(keys))
        return b"".join(b"\x12" + bytes([len(each)]) + each for each in entries).hex()

    once = list(dict.fromkeys(numbers))
    rows = agreed(MAP, payload(once), payload([*once, once[0]]), payload([once[-1], *once]))
    assert [len(each["n"]) for each in rows] == [len(once)] * 3


def test_an_entry_that_is_replaced_may_be_bad() -> None:
    text = """syntax = "proto2"; import "google/protobuf/timestamp.proto"; message N { required int32 a = 1; }
      message M { map<int32, string> s = 1; map<int32, google.protobuf.Timestamp> t = 2; map<int32, N> n = 3; }"""
    entries = ["0a031201ff", "120c120a08ffffffffffffffff7f", "1a00"]
    later = ["0a03120161", "1202" + "1200", "1a0412020801"]
    agreed(text, *entries, *(bad + good for bad, good in zip(entries, later, strict=True)))


def test_enums_that_are_closed_have_no_other_values() -> None:
    text = """syntax = "proto2"; enum E { ZERO = 0; ONE = 1; TWO = 2; } message M { optional E a = 1; repeated E b = 2;
      map<int32, E> m = 3; oneof o { E c = 4; string d = 5; } }"""
    nothing = {"a": None, "b": [], "m": [], "c": None, "d": None}
    assert agreed(text, "0801084d", "1001104d1002", "12030102" + "4d", "1a0408011002", "1a040801104d", "1a020801") == [
        nothing | {"a": "ONE"}, nothing | {"b": ["ONE", "TWO"]}, nothing | {"b": ["ONE", "TWO"]},
        nothing | {"m": [(1, "TWO")]}, nothing, nothing | {"m": [(1, "ZERO")]},
    ]  # fmt: skip
    assert agreed(text, "2a0161204d", "20012a0161") == [nothing | {"d": "a"}, nothing | {"d": "a"}]


def test_extensions_have_no_columns_but_may_be_bad() -> None:
    text = """syntax = "proto2"; message M { optional int32 a = 1; extensions 100 to 200; }
      message N { required string s = 1; } extend M { optional N n = 100; repeated int32 p = 101 [packed = true];
      optional group G = 102 { optional int32 b = 1; } optional string t = 103; optional int32 i = 104; }"""
    good = ["a206030a0161", "aa06020102", "b3060801b406", "ba0601ff", "c00601", "a00601", "a80601", "c20601ff", ""]
    bad = ["a20600", "a206020a01", "aa0601ff", "b30608b406", "b306", "ba06"]
    assert agreed(text, *(each + "0805" for each in good)) == [{"a": 5}] * len(good)
    assert agreed(text, *("0805" + each for each in bad)) == [None] * len(bad)


def test_a_string_that_does_not_count_is_still_checked() -> None:
    text = 'syntax = "proto3"; message M { string a = 1; oneof o { string b = 2; int32 c = 3; } }'
    assert agreed(text, "0a01ff0a0161", "1201ff1801", "0a01620a0161") == [None, None, {"a": "a", "b": None, "c": None}]


def test_messages_without_columns_are_checked_too() -> None:
    text = """syntax = "proto3"; message M { Empty e = 1; Hollow h = 2; map<string, Empty> m = 3; int32 a = 4;
      oneof o { Empty f = 5; string s = 6; } repeated Hollow r = 7; }
    message Empty {} message Hollow { Empty e = 1; }"""
    row = {"a": 1, "s": None}
    assert agreed(text, "0a002001", "0a0208012001", "0a01082001", "12020a002001", "12030a01082001") == [
        row, row, None, row, None,
    ]  # fmt: skip
    assert agreed(text, "1a050a016112002001", "1a030a01ff2001", "3201612a002001", "2a003201612001", "3a003a002001") == [
        row, None, row, row | {"s": "a"}, row,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "payload",
    [
        "888080808001",  # a tag of five bytes with a large number
        "88808080800001",  # of six
        "f8ffffff0f01",  # the largest number
        "f8ffffff1f01",  # beyond it
        "0001", "0601", "0e01", "0f", "0c", "0b",
        "08ffffffffffffffffff7f", "08ffffffffffffffffffff01", "0880",
        "128080808000", "12808080808000", "12ffffffff07", "12ffffffffffffffffff01", "1280808080f0ffffffff01",
    ],
)  # fmt: skip
def test_spellings_of_tags_and_lengths(payload: str) -> None:
    agreed('syntax = "proto3"; message M { int32 a = 1; string b = 2; }', payload, "0801" + payload)
