"""What is wrong is said with line and column; hostile input neither hangs nor exhausts anything."""

from __future__ import annotations

import base64

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import given
from hypothesis import strategies as st
from tests.schemas.protobuf.sources import proto2, proto3, understood

from ottla.model.limits import PROTOBUF_DEPTH_MAX, PROTOBUF_TEXT_CHARS_MAX
from ottla.schemas.protobuf import parse_protobuf
from ottla.schemas.protobuf.parser import parse_file
from ottla.schemas.schema import InvalidSchema, SchemaSource, SchemaType


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "message M {\n  int32 a 1;\n}",
            "line 2, column 3: in proto2 a field begins with optional, required or repeated",
        ),
        ("message M {\n  optional int32 a 1;\n}", "line 2, column 20: expected '=', found '1'"),
        ("message M {\n", "line 2, column 1: expected '}', found the end of the file"),
        ("\n\n  massage M {}", "line 3, column 3: expected package, import, option, message, enum, extend or service"),
        ("message M {} /* never", "line 1, column 14: a comment begins here that never ends"),
        ('option a = "abc', "line 1, column 12: a string begins here that does not end on its line"),
        ('edition = "2023";', "line 1, column 1: editions of Protobuf are not supported: proto2 and proto3 are"),
        ('syntax = "proto4";', 'line 1, column 10: expected "proto2" or "proto3", found \'"proto4"\''),
        ("message M { optional int32 a = 99999999999999999999999999999999; }", "column 32: .* is out of range"),
        ("message M { optional Foo a = 1; }", 'line 1, column 13: the type "Foo" is not defined$'),
        ('import "x.proto"; message M { optional Foo a = 1; }', "not among the references: x.proto"),
        (
            "message M { optional int32 a = 1 [default = 1.5]; }",
            "line 1, column 35: the default value of a must be a whole",
        ),
        ("message M { optional int32 a = 1 [lazy = 1]; }", 'line 1, column 35: option "lazy" must be true or false'),
        ("message M { optional int32 é = 1; }", "line 1, column 28: expected the name of a field, found 'é'"),
        ("message M { optional int32 a = 1; optional int32 b = 1; }", "M: number 1 is used by a and b"),
        ("", None),
    ],
)
def test_errors_say_where(text: str, message: str | None) -> None:
    if message is None:
        assert understood(text).canonical == ""
        return
    with pytest.raises(InvalidSchema, match=message):
        understood(text)


def test_an_error_in_an_import_names_it() -> None:
    with pytest.raises(InvalidSchema, match=r'in "a.proto": line 1, column 1: expected'):
        understood('import "a.proto";', {"a.proto": "?"})
    with pytest.raises(InvalidSchema, match=r'in "a.proto": .*the type "Nope" is not defined'):
        understood('import "a.proto";', {"a.proto": "message M { optional Nope n = 1; }"})


def test_imports_in_a_circle_are_refused() -> None:
    with pytest.raises(InvalidSchema, match=r'"a.proto" imports itself: a.proto -> b.proto -> a.proto'):
        understood('import "a.proto";', {"a.proto": 'import "b.proto";', "b.proto": 'import "a.proto";'})


def test_a_long_chain_of_imports_is_followed() -> None:
    chain = {f"{n}.proto": f'import public "{n + 1}.proto";' for n in range(300)}
    chain["300.proto"] = "message Far {}"
    assert understood('import "0.proto"; message M { optional Far far = 1; }', chain).message_indexes("M") == (0,)


@pytest.mark.parametrize(
    "text",
    [
        "message M {" * 20_000,
        "message M {" * (PROTOBUF_DEPTH_MAX + 1) + "}" * (PROTOBUF_DEPTH_MAX + 1),
        "option (a) = " + "{a:" * 20_000,
        "option (a) = " + "[" * 20_000,
        "message M { optional group G = 1 {" * 20_000,
        "/*" * 20_000,
        "option a = " + "-" * 20_000,
        "message M { reserved " + "1," * 20_000 + "}",
        "enum E { A = " + "9" * 1_000_000 + "; }",
        "option a = 0x" + "f" * 20_000 + ";",
        '"' + "\\" * 20_001,
        "x" * (PROTOBUF_TEXT_CHARS_MAX + 1),
        "a." * 20_000,
        "message M { optional " + "a." * 20_000 + "a b = 1; }",
        "\0",
    ],
    ids=lambda text: text[:20],
)
def test_hostile_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        understood(text)


def test_the_deepest_message_is_accepted() -> None:
    depth = PROTOBUF_DEPTH_MAX
    schema = understood("message M {" * depth + "}" * depth)
    assert schema.message_name((0,) * depth) == ".".join("M" * depth)
    with pytest.raises(KeyError, match="no message with the indexes"):
        schema.message_name((0,) * (depth + 1))


def test_deep_descriptors_are_refused() -> None:
    made = FileDescriptorProto(name="x")
    inside = made.message_type.add(name="M")
    for _ in range(PROTOBUF_DEPTH_MAX):
        inside = inside.nested_type.add(name="M")
    with pytest.raises(InvalidSchema, match="nested more than 32 deep"):
        understood(base64.b64encode(made.SerializeToString()).decode())


def test_many_fields_are_read_in_reasonable_time() -> None:
    count = 5_000
    schema = proto3("message M {\n" + "".join(f"  int32 f{n} = {n};\n" for n in range(1, count + 1)) + "}")
    assert len(schema.descriptor.message_type[0].field) == count


@given(st.text(alphabet="mesag {}=;\"'/*[]()<>.,0123abc\n-", max_size=60))
def test_any_text_is_understood_or_refused(text: str) -> None:
    said = "line "
    try:
        parse_file(text)
    except InvalidSchema as invalid:
        said = str(invalid)
    assert said.startswith("line ")


@given(st.binary(max_size=80))
def test_any_descriptor_is_understood_or_refused(data: bytes) -> None:
    try:
        understood(base64.b64encode(data).decode())
    except InvalidSchema:
        return


@pytest.mark.parametrize(
    "body",
    [
        "message M { string message = 1; string enum = 2; int32 max = 3; bool syntax = 4; string to = 5; }",
        "message stream {} service S { rpc R(stream) returns (stream stream); }",
        "message M { map<string, string> map = 1; } message map {} message N { map m = 1; }",
        "enum E { option = 0; reserved = 1; }",
        "message M { int32 a = 0x1F; int32 b = 017; };",
        "/* a */ message /* b */ M // c\n { /* d */ }",
    ],
)
def test_keywords_are_names_where_the_grammar_lets_them(body: str) -> None:
    assert proto3(body).descriptor.syntax == "proto3"


def test_types_are_found_from_the_inside_out() -> None:
    schema = proto3(
        """package a.b;
        message T { }
        message M {
          message T { message U {} }
          T inner = 1; .a.b.T outer = 2; b.T also_outer = 3; T.U deep = 4; a.b.M.T full = 5;
        }"""
    )
    types = [each.type_name for each in schema.descriptor.message_type[1].field]
    assert types == [".a.b.M.T", ".a.b.T", ".a.b.T", ".a.b.M.T.U", ".a.b.M.T"]


def test_what_only_options_need_may_be_missing() -> None:
    """As with Confluent: the text keeps the option, the descriptor has it not."""
    schema = proto3(
        """import "google/api/annotations.proto";
        message M { int32 a = 1 [(my.own) = { x: 1 }]; }
        service S { rpc R(M) returns (M) { option (google.api.http) = { get: "/v1" }; } }"""
    )
    assert "(google.api.http) = {" in schema.canonical
    assert "(my.own) = {" in schema.normalized
    assert list(schema.descriptor.dependency) == []
    assert not schema.descriptor.message_type[0].field[0].HasField("options")


def test_defaults_of_bytes_without_quotes_are_understood() -> None:
    """So they are in texts that Confluent's registry gives out."""
    schema = proto2("message M { optional bytes b = 1 [default = abc]; }")
    assert schema.descriptor.message_type[0].field[0].default_value == "abc"


@pytest.mark.parametrize(
    "body",
    [
        "enum E { ONE = 1; }",
        "message M { int32 a = 1; } message N { reserved 1; int32 a = 1; }",
        "message M { int32 a = 1 [no_such_option = true]; }",
        "message M { int32 a = 1 [default = 3]; }",
    ],
)
def test_what_another_registry_took_can_be_printed_and_compared(body: str) -> None:
    source = SchemaSource(f'syntax = "proto3";\n{body}', SchemaType.PROTOBUF)
    with pytest.raises(InvalidSchema):
        parse_protobuf(source)
    schema = parse_protobuf(source, strict=False)
    assert schema.incompatibilities(schema) == []
    again = parse_protobuf(SchemaSource(schema.normalized, SchemaType.PROTOBUF), strict=False)
    assert again.normalized == schema.normalized
    assert not schema.descriptor.message_type
