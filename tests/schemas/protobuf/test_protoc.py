"""Our descriptors are those that protoc makes: of files written to be hard, and of all of Google's own.

protoc comes with grpcio-tools and runs in this process. Compared is with options that are only in sources, which protoc
leaves out by default.
"""

from __future__ import annotations

import base64
from importlib.resources import files
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.type import date_pb2
from grpc_tools import protoc
from tests.schemas.protobuf.sources import understood

from ottla.schemas.schema import InvalidSchema

CORPUS = Path(__file__).parent / "corpus"
PROTOBUF = Path(str(files("grpc_tools"))) / "_proto"
GOOGLE = Path(date_pb2.__file__).parents[2]
ROOTS = (CORPUS, PROTOBUF, GOOGLE)
FILES = [
    *(path.name for path in sorted(CORPUS.glob("*.proto"))),
    *(str(path.relative_to(PROTOBUF)) for path in sorted((PROTOBUF / "google/protobuf").glob("*.proto"))),
    *(
        str(path.relative_to(GOOGLE))
        for part in ("type", "rpc")
        for path in sorted((GOOGLE / "google" / part).glob("*.proto"))
    ),
    "google/api/annotations.proto",
    "google/api/http.proto",
]


def compiled(path: str, where: Path, *more_roots: Path) -> FileDescriptorSet | None:
    """What protoc makes of a file and its imports; None if it refuses it."""
    out = where / "descriptors"
    roots = [f"-I{root}" for root in (*more_roots, *ROOTS)]
    if protoc.main(["protoc", *roots, "--include_imports", "--retain_options", f"-o{out}", path]) != 0:
        return None
    return FileDescriptorSet.FromString(out.read_bytes())


def text_of(path: str) -> str:
    return next(root / path for root in ROOTS if (root / path).exists()).read_text()


def assert_same(ours: FileDescriptorProto, made: FileDescriptorSet) -> None:
    """With extensions known, so that two descriptors that differ in the order of custom options are equal."""
    theirs = made.file[-1]
    known: type[Message] = FileDescriptorProto
    if any(each.name == "google/protobuf/descriptor.proto" for each in made.file):
        pool = DescriptorPool()
        for each in made.file:
            pool.Add(each)
        known = GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FileDescriptorProto"))
    ours.name = theirs.name
    assert known.FromString(ours.SerializeToString()) == known.FromString(theirs.SerializeToString())


@pytest.mark.parametrize("path", FILES)
def test_the_descriptor_is_that_of_protoc(path: str, tmp_path: Path) -> None:
    expected = compiled(path, tmp_path)
    assert expected is not None
    imports = {each.name: text_of(each.name) for each in expected.file[:-1]}
    schema = understood(text_of(path), imports)
    assert_same(schema.descriptor, expected)

    # What is printed is understood by protoc too.
    (tmp_path / "printed.proto").write_text(schema.canonical)
    printed = compiled("printed.proto", tmp_path, tmp_path)
    assert printed is not None
    again = understood(schema.canonical, imports)
    assert_same(again.descriptor, printed)
    assert again.canonical == schema.canonical

    # The descriptor alone, with descriptors of its imports, is the same schema.
    made = {each.name: base64.b64encode(each.SerializeToString()).decode() for each in expected.file}
    theirs = understood(made.pop(path), made)
    assert theirs.incompatibilities(schema) == schema.incompatibilities(theirs) == []
    if " group " not in schema.canonical:
        # (The bodies of groups come before all other nested messages then.)
        assert_same(theirs.descriptor, expected)


REFUSED = {
    "type": "message M { Missing m = 1; }",
    "nested type": "message A { message B {} } message M { A.C c = 1; }",
    # The first part of the name is found in M.A, so it is not looked for further out.
    "number twice": "message M { int32 a = 1; int32 b = 1; }",
    "name twice": "message M { int32 a = 1; int32 a = 2; }",
    "message twice": "message M {} message M {}",
    "number zero": "message M { int32 a = 0; }",
    "number too large": "message M { int32 a = 536870912; }",
    "number of Protobuf": "message M { int32 a = 19500; }",
    "reserved number": "message M { reserved 1 to 3; int32 a = 2; }",
    "reserved name": 'message M { reserved "a"; int32 a = 2; }',
    "required": "message M { required int32 a = 1; }",
    "default": "message M { int32 a = 1 [default = 3]; }",
    "group": "message M { repeated group G = 1 {} }",
    "extensions": "message M { extensions 100 to max; }",
    "map with label": "message M { repeated map<string, string> m = 1; }",
    "map key": "message M { map<float, string> m = 1; }",
    "map of maps": "message M { map<string, map<string, string>> m = 1; }",
    "map in oneof": "message M { oneof o { map<string, string> m = 1; } }",
    "label in oneof": "message M { oneof o { repeated int32 m = 1; } }",
    "empty oneof": "message M { oneof o { } }",
    "enum not from zero": "enum E { A = 1; }",
    "empty enum": "enum E { }",
    "enum number twice": "enum E { A = 0; B = 0; }",
    "enum name twice": "enum E { A = 0; A = 1; }",
    "enum value in two enums": "enum E { A = 0; } enum F { A = 0; }",
    "enum number too large": "enum E { A = 0; B = 2147483648; }",
    "standard option": "message M { option no_such_option = true; }",
    "type of option": "message M { option deprecated = 3; }",
    "option twice": "message M { option deprecated = true; option deprecated = true; }",
    "value of option": "option optimize_for = FAST;",
    "field is enum's value": "enum E { A = 0; } message M { A a = 1; }",
    "rpc with enum": "enum E { A = 0; } service S { rpc R(E) returns (E); }",
    "no semicolon": "message M { int32 a = 1 }",
    "no brace": "message M { int32 a = 1;",
    "no name": "message { }",
    "stray word": "mesage M { }",
    "string over lines": 'option java_package = "a\nb";',
    "escape": 'option java_package = "\\q";',
    "comment": "message M {} /* never ends",
    "range backwards": "message M { reserved 5 to 3; }",
    "package twice": "package a; package b;",
    "number of letters": "message M { int32 a = 1a; }",
    "octal": "message M { int32 a = 09; }",
    "edition": 'edition = "2023";',
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_protoc_refuses_is_refused(what: str, tmp_path: Path) -> None:
    text = f'syntax = "proto3";\n{REFUSED[what]}\n'
    (tmp_path / "refused.proto").write_text(text)
    assert compiled("refused.proto", tmp_path, tmp_path) is None
    with pytest.raises(InvalidSchema):
        understood(text)
