"""Descriptors in and out: what confluent-kafka registers is understood, messages are found by name and index."""

from __future__ import annotations

import base64
from collections.abc import Callable

import pytest
from confluent_kafka.schema_registry.common.protobuf import _create_index_array, _schema_to_str, _str_to_proto
from confluent_kafka.schema_registry.confluent import meta_pb2
from confluent_kafka.schema_registry.confluent.type import decimal_pb2, variant_pb2
from google.protobuf import struct_pb2, type_pb2
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.type import postal_address_pb2
from tests.schemas.protobuf.sources import proto3, understood

from ottla.schemas.protobuf.known import CONFLUENT
from ottla.schemas.schema import InvalidSchema

FILES: list[FileDescriptor] = [
    *(module.DESCRIPTOR for module in (struct_pb2, type_pb2, postal_address_pb2, meta_pb2, decimal_pb2)),
    variant_pb2.DESCRIPTOR,
]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_confluents_client_registers_is_understood(file: FileDescriptor) -> None:
    schema = understood(_schema_to_str(file))
    theirs = _str_to_proto("default", _schema_to_str(file))
    assert _str_to_proto("default", schema.serialized) == theirs
    # Its text means the same, and its messages have the indexes that the client writes into records.
    again = understood(schema.canonical)
    for name, message in file.message_types_by_name.items():
        assert schema.message_indexes(message.full_name) == tuple(_create_index_array(message)), name
        for nested in message.nested_types:
            assert again.message_indexes(nested.full_name) == tuple(_create_index_array(nested))
    assert again.normalized == schema.normalized


@pytest.mark.parametrize(
    "file", [meta_pb2.DESCRIPTOR, decimal_pb2.DESCRIPTOR, variant_pb2.DESCRIPTOR], ids=lambda file: file.name
)
def test_confluents_own_files_are_theirs(file: FileDescriptor) -> None:
    assert _str_to_proto("x", understood(CONFLUENT[file.name]).serialized) == _str_to_proto("x", _schema_to_str(file))


def test_records_of_the_client_are_read_with_our_descriptors() -> None:
    schema = proto3(
        "package p; message A { int32 a = 1; } message B { message C { repeated string c = 1; } map<string, C> m = 2; }"
    )
    written = GetMessageClass(schema.message_descriptor("p.B"))()
    written.m["k"].c.append("v")
    reader = understood(understood(schema.serialized).canonical)
    read = GetMessageClass(reader.message_descriptor((1,))).FromString(written.SerializeToString())
    assert dict(read.m)["k"].c == ["v"]
    assert reader.message_descriptor().full_name == "p.A"
    assert schema.message_descriptor((1, 0)).full_name == "p.B.C"
    assert schema.pool() is schema.pool()


def test_maps_are_no_messages_in_texts_but_are_in_descriptors() -> None:
    """So count Confluent's clients: those that register descriptors count the entries' messages, where they are."""
    text = proto3("message M { map<string, string> m = 1; message N {} }")
    assert text.message_indexes("M.N") == (0, 0)
    descriptor = understood(text.serialized)
    assert descriptor.message_indexes("M.N") == (0, 1)
    assert descriptor.message_name((0, 0)) == "M.MEntry"


def test_a_file_that_only_imports_another_has_its_messages() -> None:
    inner = 'syntax = "proto3"; package q; message T { message U {} }'
    schema = understood('syntax = "proto3"; import public "q.proto";', {"q.proto": inner})
    assert schema.message_indexes("q.T.U") == (0, 0)
    assert schema.message_descriptor().full_name == "q.T"


def test_messages_that_are_not_there() -> None:
    schema = proto3("message M {}")
    for wrong in ("N", "M.N", (1,), (0, 0), (-1,)):
        with pytest.raises(KeyError):
            schema.message_descriptor(wrong)
    with pytest.raises(KeyError, match="no message N"):
        schema.message_indexes("N")


def test_imports_may_be_descriptors_too() -> None:
    inner = proto3("package q; message T { int32 x = 1; }").serialized
    schema = understood('syntax = "proto3"; import "q.proto"; message M { q.T t = 1; }', {"q.proto": inner})
    assert schema.message_descriptor("M").fields_by_name["t"].message_type.full_name == "q.T"
    assert list(schema.descriptor.dependency) == ["q.proto"]


def test_custom_options_survive_the_descriptor() -> None:
    options = """syntax = "proto3"; package o; import "google/protobuf/descriptor.proto";
      message Rule { repeated string words = 1; map<string, int32> counts = 2; }
      extend google.protobuf.FieldOptions { Rule rule = 50000; }"""
    text = """syntax = "proto3"; import "o.proto";
      message M { int32 a = 1 [(o.rule) = { words: ["x", "y"], counts: { key: "k", value: 3 } }]; }"""
    schema = understood(text, {"o.proto": options})
    again = understood(schema.serialized, {"o.proto": options})
    assert again.serialized == schema.serialized
    assert "(o.rule) = {" in again.canonical
    assert again.normalized == schema.normalized


def test_well_known_types_need_no_reference() -> None:
    schema = proto3(
        """import "google/protobuf/timestamp.proto"; import "google/type/money.proto";
        import "confluent/type/decimal.proto";
        message M { google.protobuf.Timestamp t = 1; google.type.Money m = 2; confluent.type.Decimal d = 3; }"""
    )
    pool: DescriptorPool = schema.pool()
    assert pool.FindMessageTypeByName("google.type.Money").file.name == "google/type/money.proto"


@pytest.mark.parametrize("text", ["bm8gZGVzY3JpcHRvcg==", "AAAA", base64.b64encode(b"\x0a\x05abc").decode()])
def test_base64_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema, match="line 1, column 1"):
        understood(text)


OWNER = """syntax = "proto3"; import "google/protobuf/descriptor.proto";
  message Owner { string name = 1; } extend google.protobuf.FileOptions { Owner owner = 50000; }"""


def _damaged(change: Callable[[FileDescriptorProto], object]) -> str:
    made = FileDescriptorProto(name="x", syntax="proto3")
    made.message_type.add(name="M").field.add(
        name="f", number=1, type=FieldDescriptorProto.TYPE_INT32, label=FieldDescriptorProto.LABEL_OPTIONAL
    )
    change(made)
    return base64.b64encode(made.SerializeToString()).decode()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda made: setattr(made.message_type[0], "name", "M {} message N"), "is no name"),
        (lambda made: setattr(made.message_type[0].field[0], "name", ""), '"" is no name'),
        (lambda made: setattr(made.message_type[0].field[0], "number", 0), "in the text of the descriptor"),
        (lambda made: setattr(made.message_type[0].field[0], "oneof_index", 3), "in a oneof that M does not have"),
        (lambda made: setattr(made.message_type[0].field[0], "type_name", ".N"), 'the type ".N" is not defined'),
        (lambda made: setattr(made.message_type[0].field[0], "type", 10), "the group  is not defined"),
        (lambda made: setattr(made.message_type[0].options, "map_entry", True), "map_entry"),
        (lambda made: setattr(made, "syntax", "editions"), "editions of Protobuf are not supported"),
        (lambda made: made.enum_type.add(name="E"), "the enum E has no values"),
        (
            lambda made: (
                made.dependency.append("o.proto"),
                made.options.MergeFromString(b"\x82\xb5\x18\x02\x0a\x05"),
            ),
            "options that cannot be read",
        ),
        (
            lambda made: (
                made.ClearField("syntax"),
                setattr(made.message_type[0].field[0], "default_value", "1]; optional int32 g = 2 [lazy = true"),
            ),
            "is no default value",
        ),
        (
            lambda made: (
                made.ClearField("syntax"),
                setattr(made.message_type[0].field[0], "default_value", "n2n"),
            ),
            '"n2n" is no default value',
        ),
    ],
)
def test_damaged_descriptors_are_refused(change: Callable[[FileDescriptorProto], object], words: str) -> None:
    with pytest.raises(InvalidSchema, match=words):
        understood(_damaged(change), {"o.proto": OWNER})


def test_strings_that_are_no_utf8_are_refused() -> None:
    broken = base64.b64decode(_damaged(lambda made: None)).replace(b"\x0a\x01M", b"\x0a\x01\xff")
    with pytest.raises(InvalidSchema):
        understood(base64.b64encode(broken).decode())


def test_an_import_may_have_the_name_that_the_schema_itself_has() -> None:
    inner = 'syntax = "proto3"; message T { int32 x = 1; }'
    schema = understood('syntax = "proto3"; import "default"; message M { T t = 1; }', {"default": inner})
    assert schema.message_descriptor().full_name == "M"
    assert schema.incompatibilities(schema) == []
