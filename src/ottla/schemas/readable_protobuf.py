"""Whether a payload is a Protobuf message that Google's library can read, with strings that typed columns can hold.

Rules:
- A string must be UTF-8. The library checks those of proto3 itself; those of proto2 are checked here.
- The payload's frame names the message of the schema's file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from ottla.schemas.protobuf import parse_protobuf
from ottla.schemas.schema import SchemaSource


class ProtobufPayloads:
    """Checks payloads of the messages of one schema."""

    def __init__(self, source: SchemaSource) -> None:
        self._parsed = parse_protobuf(source)
        self._kinds: dict[tuple[int, ...], tuple[Any, bool]] = {}  # the class, and whether strings have to be checked

    def why_unreadable(self, payload: bytes, indexes: tuple[int, ...] | None) -> str | None:
        """Return why the payload cannot be read; None if it can."""
        try:
            kind, has_loose_texts = self._kind(indexes or (0,))
        except (KeyError, IndexError, ValueError) as error:
            return f"the schema has no such message: {error}"
        message = kind()
        try:
            message.ParseFromString(payload)
        except DecodeError as error:
            return f"the payload is not a {message.DESCRIPTOR.full_name}: {error}"
        missing = message.FindInitializationErrors()
        if missing:
            return f"required fields are missing: {', '.join(missing)}"
        if has_loose_texts:
            for name in _not_texts(message):
                return f"{name} is not UTF-8"
        return None

    def _kind(self, indexes: tuple[int, ...]) -> tuple[Any, bool]:
        if indexes not in self._kinds:
            descriptor = self._parsed.message_descriptor(indexes)
            self._kinds[indexes] = GetMessageClass(descriptor), _has_loose_texts(descriptor)
        return self._kinds[indexes]


def _has_loose_texts(message: Descriptor) -> bool:
    """Return whether a message contains strings that the library does not check."""
    seen = {message.full_name: message}
    stack = [message]
    while stack:
        described = FileDescriptorProto()
        inner = stack.pop()
        inner.file.CopyToProto(described)
        if described.syntax != "proto3" and any(field.type == field.TYPE_STRING for field in inner.fields):
            return True
        for field in inner.fields:
            if field.message_type is not None and field.message_type.full_name not in seen:
                seen[field.message_type.full_name] = field.message_type
                stack.append(field.message_type)
    return False


def _not_texts(message: Message) -> Iterator[str]:
    """Yield the fields whose strings are not UTF-8: those come as bytes."""
    for field, value in message.ListFields():
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            key_is_text = field.message_type.fields_by_number[1].type == field.TYPE_STRING
            for key in value:
                if key_is_text and isinstance(key, bytes):
                    yield field.full_name
                    return  # such a key cannot be looked up
                yield from _loose(field.message_type.fields_by_number[2], value[key])
        else:
            for each in value if field.is_repeated else (value,):
                yield from _loose(field, each)


def _loose(field: Any, value: Any) -> Iterator[str]:
    if field.message_type is not None:
        yield from _not_texts(value)
    elif field.type == field.TYPE_STRING and isinstance(value, bytes):
        yield field.full_name
