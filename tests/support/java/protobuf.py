"""Google's Protobuf for Java, in a JVM that answers many requests: tests/java/protobuf/ProtobufOracle.java.

A value is a tree: a dict of the fields that are set, with integers as decimal digits, floating points as the bits of a
double, bytes as base64, enums as numbers, and maps as lists of entries.
"""

from __future__ import annotations

import base64
import os
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from tests.support.java.programs import QUICK
from tests.support.lines import LineServer
from tests.support.tools import KAFKA_LIBS, PROTOBUF_LIBS, ROOT, require

Tree = dict[str, Any]
_FLOATS = (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE)


class ProtobufOracle:
    """One JVM; each call sends the payloads or values of many messages at once."""

    def __init__(self, log: Path) -> None:
        require(None if PROTOBUF_LIBS.exists() else "Protobuf for Java is not installed; run scripts/tools")
        source = ROOT / "tests" / "java" / "protobuf" / "ProtobufOracle.java"
        jars = f"{PROTOBUF_LIBS}/*{os.pathsep}{KAFKA_LIBS}/*"
        self._server = LineServer("ProtobufOracle", ["java", *QUICK, "-cp", jars, str(source)], log)

    def close(self) -> None:
        self._server.close()

    def read(self, cells: Sequence[tuple[Descriptor, Sequence[bytes]]]) -> list[list[Tree | None]]:
        """The trees of each message's payloads; None for a payload that cannot be read."""
        asked = [{"message": of.full_name, "payloads": [_text(each) for each in payloads]} for of, payloads in cells]
        answers = self._server.ask({"files": _files(of for of, _ in cells), "read": asked})["read"]
        return [[None if "error" in tree else tree for tree in trees] for trees in answers]

    def write(self, cells: Sequence[tuple[Descriptor, Sequence[Tree]]]) -> list[list[bytes]]:
        """The payloads of each message's trees."""
        asked = [{"message": of.full_name, "values": list(trees)} for of, trees in cells]
        answers = self._server.ask({"files": _files(of for of, _ in cells), "write": asked})["written"]
        return [[base64.b64decode(each) for each in payloads] for payloads in answers]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _files(messages: Iterable[Descriptor]) -> list[str]:
    """The files of these messages and those that they import, each after its imports."""
    found: dict[bytes, None] = {}  # two schemas may have files of one name

    def add(file: FileDescriptor) -> None:
        if file.serialized_pb not in found:
            for each in file.dependencies:
                add(each)
            found[file.serialized_pb] = None

    for message in messages:
        add(message.file)
    return [_text(each) for each in found]


def message_of(descriptor: Descriptor, tree: Tree) -> Message:
    """The tree as a message of the library for Python, whose parser has no part in it."""
    made = GetMessageClass(descriptor)()
    for name, value in tree.items():
        field = descriptor.fields_by_name[name]
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            _put_entries(getattr(made, name), field, value)
        elif field.is_repeated and field.message_type is not None:
            getattr(made, name).extend(message_of(field.message_type, each) for each in value)
        elif field.is_repeated:
            getattr(made, name).extend(_value(field, each) for each in value)
        elif field.message_type is not None:
            getattr(made, name).CopyFrom(message_of(field.message_type, value))
            getattr(made, name).SetInParent()
        else:
            setattr(made, name, _value(field, value))
    return made


def _put_entries(to: Any, field: FieldDescriptor, entries: Iterable[Tree]) -> None:
    of = field.message_type.fields_by_name
    for entry in entries:
        key = _value(of["key"], entry["key"]) if "key" in entry else of["key"].default_value
        if of["value"].message_type is None:
            to[key] = _value(of["value"], entry["value"]) if "value" in entry else of["value"].default_value
        else:
            to[key].CopyFrom(message_of(of["value"].message_type, entry.get("value", {})))


def _value(field: FieldDescriptor, leaf: Any) -> Any:
    if field.type in _FLOATS:
        return struct.unpack("<d", struct.pack("<q", int(leaf)))[0]
    if field.type == FieldDescriptor.TYPE_BYTES:
        return base64.b64decode(leaf)
    return leaf if field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BOOL) else int(leaf)
