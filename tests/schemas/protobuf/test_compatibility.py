"""What changes between two versions, by the rules of Protobuf's specification and of Confluent's documentation."""

from __future__ import annotations

import itertools

import pytest
from google.protobuf.message_factory import GetMessageClass
from tests.schemas.protobuf.sources import proto2, proto3, understood

from ottla.schemas.parse import parse
from ottla.schemas.protobuf import ProtobufSchema
from ottla.schemas.protobuf.compatibility import BREAKING, differences
from ottla.schemas.schema import SchemaSource, SchemaType


def changes(before: ProtobufSchema, after: ProtobufSchema) -> list[str]:
    found = differences(after.library, after.references, original=before.library, original_references=before.references)
    # What breaks readers is reported to them, and nothing else.
    breaking = list(dict.fromkeys(each for each in found if each.kind in BREAKING))
    assert [(each.kind, each.path) for each in after.incompatibilities(before)] == breaking
    return [f"{'! ' if each.kind in BREAKING else ''}{each.kind} {each.path}" for each in found]


# Before, after, and what has changed; what begins with ! keeps new readers from old records.
TABLE: dict[str, tuple[str, str, list[str]]] = {
    "nothing": ("message M { int32 a = 1; }", "message M { int32 a = 1; }", []),
    "package": ("package a; message M {}", "package b; message M {}", ["! PACKAGE_CHANGED #/"]),
    "package gone": ("package a; message M {}", "message M {}", ["! PACKAGE_CHANGED #/"]),
    "message added": ("message M {}", "message M {} message N {}", ["MESSAGE_ADDED #/N"]),
    "message removed": ("message M {} message N {}", "message M {}", ["! MESSAGE_REMOVED #/N"]),
    "message renamed": ("message M {}", "message N {}", ["! MESSAGE_REMOVED #/M", "MESSAGE_ADDED #/N"]),
    "messages swapped": (
        "message M {} message N {}",
        "message N {} message M {}",
        ["MESSAGE_MOVED #/M", "MESSAGE_MOVED #/N"],
    ),
    "nested removed": ("message M { message N {} }", "message M {}", ["! MESSAGE_REMOVED #/M/N"]),
    "nested moved out": (
        "message M { message N {} N n = 1; }",
        "message M { N n = 1; } message N {}",
        ["! FIELD_NAMED_TYPE_CHANGED #/M/1", "! MESSAGE_REMOVED #/M/N", "MESSAGE_ADDED #/N"],
    ),
    "field added": ("message M {}", "message M { int32 a = 1; }", ["FIELD_ADDED #/M/1"]),
    "field removed": ("message M { int32 a = 1; }", "message M {}", ["FIELD_REMOVED #/M/1"]),
    "field renamed": ("message M { int32 a = 1; }", "message M { int32 b = 1; }", ["FIELD_NAME_CHANGED #/M/1"]),
    "field renumbered": (
        "message M { int32 a = 1; }",
        "message M { int32 a = 2; }",
        ["FIELD_REMOVED #/M/1", "FIELD_ADDED #/M/2"],
    ),
    "fields reordered": ("message M { int32 a = 1; int32 b = 2; }", "message M { int32 b = 2; int32 a = 1; }", []),
    "number to text": (
        "message M { int32 a = 1; }",
        "message M { string a = 1; }",
        ["! FIELD_SCALAR_KIND_CHANGED #/M/1"],
    ),
    "scalar to message": ("message M { int32 a = 1; }", "message M { M a = 1; }", ["! FIELD_KIND_CHANGED #/M/1"]),
    "number to enum": ("message M { int32 a = 1; } enum E { A = 0; }", "message M { E a = 1; } enum E { A = 0; }", []),
    "text to enum": (
        "message M { string a = 1; } enum E { A = 0; }",
        "message M { E a = 1; } enum E { A = 0; }",
        ["! FIELD_SCALAR_KIND_CHANGED #/M/1"],
    ),
    "other message": (
        "message M { A a = 1; } message A {} message B {}",
        "message M { B a = 1; } message A {} message B {}",
        ["! FIELD_NAMED_TYPE_CHANGED #/M/1"],
    ),
    "other enum": (
        "message M { A a = 1; } enum A { X = 0; } enum B { Y = 0; }",
        "message M { B a = 1; } enum A { X = 0; } enum B { Y = 0; }",
        [],
    ),
    "message changed where it is": (
        "message M { A a = 1; } message A { int32 x = 1; }",
        "message M { A a = 1; } message A { float x = 1; }",
        ["! FIELD_SCALAR_KIND_CHANGED #/A/1"],
    ),
    "message of itself": ("message M { M m = 1; }", "message M { M m = 1; int32 a = 2; }", ["FIELD_ADDED #/M/2"]),
    "spelling of a type": ("package p; message M { M m = 1; }", "package p; message M { .p.M m = 1; }", []),
    # proto3 writes no label for one value, and what is not written is not compared.
    "one to many": ("message M { int32 a = 1; }", "message M { repeated int32 a = 1; }", []),
    "optional to many": (
        "message M { optional int32 a = 1; }",
        "message M { repeated int32 a = 1; }",
        ["! FIELD_NUMERIC_LABEL_CHANGED #/M/1"],
    ),
    "optional text to many": (
        "message M { optional string a = 1; }",
        "message M { repeated string a = 1; }",
        ["FIELD_STRING_OR_BYTES_LABEL_CHANGED #/M/1"],
    ),
    "map's key": (
        "message M { map<int32, string> m = 1; }",
        "message M { map<string, string> m = 1; }",
        ["! FIELD_SCALAR_KIND_CHANGED #/M/1"],
    ),
    "map's value": (
        "message M { map<int32, string> m = 1; }",
        "message M { map<int64, bytes> m = 1; }",
        [],
    ),
    "map's value to message": (
        "message M { map<int32, string> m = 1; }",
        "message M { map<int32, M> m = 1; }",
        ["! FIELD_KIND_CHANGED #/M/1"],
    ),
    "map to message": (
        "message M { map<int32, string> m = 1; }",
        "message M { repeated M m = 1; }",
        ["! FIELD_KIND_CHANGED #/M/1"],
    ),
    "enum added": ("message M {}", "message M {} enum E { A = 0; }", ["ENUM_ADDED #/E"]),
    "enum removed": ("message M { enum E { A = 0; } }", "message M {}", ["ENUM_REMOVED #/M/E"]),
    "enum's values": (
        "enum E { A = 0; B = 1; C = 2; }",
        "enum E { A = 0; X = 1; D = 3; }",
        ["ENUM_CONST_CHANGED #/E/1", "ENUM_CONST_REMOVED #/E/2", "ENUM_CONST_ADDED #/E/3"],
    ),
    "oneof of new fields": (
        "message M {}",
        "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        ["ONEOF_ADDED #/M/o", "ONEOF_FIELD_ADDED #/M/o/1", "ONEOF_FIELD_ADDED #/M/o/2"],
    ),
    "one field into a new oneof": (
        "message M { int32 a = 1; }",
        "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        ["ONEOF_ADDED #/M/o", "ONEOF_FIELD_ADDED #/M/o/2"],
    ),
    "two fields into a new oneof": (
        "message M { int32 a = 1; int32 b = 2; }",
        "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        ["! MULTIPLE_FIELDS_MOVED_TO_ONEOF #/M/o", "ONEOF_ADDED #/M/o"],
    ),
    "field into an old oneof": (
        "message M { int32 a = 1; oneof o { int32 b = 2; } }",
        "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        ["! FIELD_MOVED_TO_EXISTING_ONEOF #/M/o"],
    ),
    "two oneofs into one": (
        "message M { oneof o { int32 a = 1; } oneof p { int32 b = 2; } }",
        "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        ["! FIELD_MOVED_TO_EXISTING_ONEOF #/M/o", "ONEOF_REMOVED #/M/p"],
    ),
    "oneof renamed": (
        "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        "message M { oneof p { int32 a = 1; int32 b = 2; } }",
        ["ONEOF_REMOVED #/M/o", "ONEOF_ADDED #/M/p"],
    ),
    "field of a oneof removed": (
        "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        "message M { oneof o { int32 a = 1; } }",
        ["! ONEOF_FIELD_REMOVED #/M/o/2"],
    ),
    "oneof removed with all fields": (
        "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        "message M { }",
        ["ONEOF_REMOVED #/M/o"],
    ),
    "field out of a oneof": (
        "message M { oneof o { int32 a = 1; int32 b = 2; } }",
        "message M { int32 a = 1; oneof o { int32 b = 2; } }",
        ["ONEOF_FIELD_MOVED_TO_TOP_LEVEL #/M/1"],
    ),
    "type in a oneof": (
        "message M { oneof o { int32 a = 1; } }",
        "message M { oneof o { string a = 1; } }",
        ["! FIELD_SCALAR_KIND_CHANGED #/M/o/1"],
    ),
    "service": ("message M {}", "message M {} service S { rpc R(M) returns (M); }", []),
    "options": ("message M { int32 a = 1; }", "message M { int32 a = 1 [deprecated = true]; }", []),
}


@pytest.mark.parametrize("case", TABLE)
def test_changes(case: str) -> None:
    before, after, expected = TABLE[case]
    assert changes(proto3(before), proto3(after)) == expected


PROTO2: dict[str, tuple[str, str, list[str]]] = {
    "required added": ("message M {}", "message M { required int32 a = 1; }", ["! REQUIRED_FIELD_ADDED #/M/1"]),
    "required removed": ("message M { required int32 a = 1; }", "message M {}", ["! REQUIRED_FIELD_REMOVED #/M/1"]),
    "required to optional": (
        "message M { required int32 a = 1; }",
        "message M { optional int32 a = 1; }",
        ["! FIELD_NUMERIC_LABEL_CHANGED #/M/1"],
    ),
    "group changed": (
        "message M { optional group G = 1 { optional int32 a = 1; } }",
        "message M { optional group G = 1 { optional string a = 1; } }",
        ["! FIELD_SCALAR_KIND_CHANGED #/M/1/1"],
    ),
    "group to message": (
        "message M { optional group G = 1 { } }",
        "message M { optional M G = 1; }",
        ["! FIELD_KIND_CHANGED #/M/1"],
    ),
}


@pytest.mark.parametrize("case", PROTO2)
def test_changes_of_proto2(case: str) -> None:
    before, after, expected = PROTO2[case]
    assert changes(proto2(before), proto2(after)) == expected


# Types that share an encoding, by Protobuf's guide to updating messages.
FAMILIES = (
    ("int32", "int64", "uint32", "uint64", "bool"),
    ("sint32", "sint64"),
    ("string", "bytes"),
    ("fixed32", "sfixed32"),
    ("fixed64", "sfixed64"),
    ("float",),
    ("double",),
)


def test_scalars_are_interchangeable_within_their_family_only() -> None:
    schemas = {name: proto3(f"message M {{ {name} a = 1; }}") for family in FAMILIES for name in family}
    for (one, before), (two, after) in itertools.product(schemas.items(), repeat=2):
        same = any(one in family and two in family for family in FAMILIES)
        assert (after.incompatibilities(before) == []) == same, (one, two)


def test_what_is_called_interchangeable_is_so_on_the_wire() -> None:
    """A small number that was written as one type is read as the other."""
    made = {}
    for name in ("int32", "uint64", "bool", "sint32", "sint64", "fixed32", "sfixed32"):
        schema = proto3(f"message M {{ {name} a = 1; }}")
        made[name] = (schema, GetMessageClass(schema.message_descriptor()))
    for (writer, write), (reader, read) in itertools.product(made.values(), repeat=2):
        data = write(a=1).SerializeToString()
        got = read.FromString(data)
        if not reader.incompatibilities(writer):
            assert got.a == 1


BEFORE = "package q; message T { int32 x = 1; message In { int32 y = 1; } }"
USER = 'syntax = "proto3"; package p; import "q.proto"; message M { q.T t = 1; map<string, q.T> m = 2; }'


@pytest.mark.parametrize(
    ("imported", "expected"),
    [
        (BEFORE, []),
        (BEFORE.replace("int32 x", "int64 x"), []),
        (
            BEFORE.replace("int32 x", "string x"),
            [
                "! FIELD_SCALAR_KIND_CHANGED #/T/1",
                "! FIELD_NAMED_TYPE_CHANGED #/M/1",
                "! FIELD_NAMED_TYPE_CHANGED #/M/2",
            ],
        ),
        (
            BEFORE.replace("int32 y", "string y"),
            [
                "! FIELD_SCALAR_KIND_CHANGED #/T/In/1",
                "! FIELD_NAMED_TYPE_CHANGED #/M/1",
                "! FIELD_NAMED_TYPE_CHANGED #/M/2",
            ],
        ),
    ],
)
def test_messages_of_imports_are_compared(imported: str, expected: list[str]) -> None:
    head = 'syntax = "proto3"; '
    before = understood(USER, {"q.proto": head + BEFORE})
    after = understood(USER, {"q.proto": head + imported}, {"q.proto": 2})
    assert changes(before, after) == expected
    # The same version of the same subject is not looked at.
    assert changes(before, understood(USER, {"q.proto": head + imported})) == []


def test_a_message_may_move_into_an_import_of_another_package_only_if_it_stays_defined() -> None:
    here = 'syntax = "proto3"; package p; message T { int32 x = 1; } message M { T t = 1; }'
    there = 'syntax = "proto3"; package p; import "q.proto"; message M { q.T t = 1; }'
    moved = understood(there, {"q.proto": 'syntax = "proto3"; package q; message T { int32 x = 1; }'})
    assert changes(understood(here), moved) == ["! MESSAGE_REMOVED #/T", "MESSAGE_MOVED #/M"]
    assert changes(moved, understood(here)) == ["MESSAGE_MOVED #/M", "MESSAGE_ADDED #/T"]


def test_a_long_chain_of_messages_in_an_import_is_followed() -> None:
    count = 2_000
    chain = "".join(f"message T{n} {{ T{n + 1} next = 1; }}" for n in range(count))
    user = 'syntax = "proto3"; import "q.proto"; message M { T0 first = 1; }'
    ends = [f'syntax = "proto3"; {chain} message T{count} {{ {kind} x = 1; }}' for kind in ("int32", "string")]
    before, after = (understood(user, {"q.proto": end}, {"q.proto": n}) for n, end in enumerate(ends))
    found = changes(before, after)
    assert "! FIELD_NAMED_TYPE_CHANGED #/M/1" in found
    assert len(found) == count + 2


def test_well_known_types_that_contain_themselves_are_compared() -> None:
    text = 'syntax = "proto3"; import "google/protobuf/struct.proto"; message M { google.protobuf.Struct s = 1; }'
    assert changes(understood(text), understood(text)) == []


def test_a_descriptor_and_a_text_are_the_same_schema() -> None:
    text = proto3(
        "package p; message M { map<string, M> m = 1; oneof o { int32 a = 2; string b = 3; } optional bool c = 4; }"
    )
    descriptor = understood(text.serialized)
    assert changes(text, descriptor) == changes(descriptor, text) == []


def test_the_message_is_confluents() -> None:
    (found,) = proto3("message M { string a = 1; }").incompatibilities(proto3("message M { int32 a = 1; }"))
    assert found.message % ("new", "old") == (
        "The kind of a SCALAR field at path '#/M/1' in the new schema does not match its kind in the old schema"
    )


def test_a_schema_of_another_type_is_incompatible() -> None:
    (found,) = proto3("message M {}").incompatibilities(parse(SchemaSource('"string"', SchemaType.AVRO)))
    assert found.message == "Incompatible because of different schema type"
