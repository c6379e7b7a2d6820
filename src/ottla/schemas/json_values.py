"""Payloads of any type of schema as JSON values and back, for `ottla produce` and `ottla consume`."""

from __future__ import annotations

import json
from typing import Any, Protocol

from ottla.schemas.framing import FIRST_MESSAGE
from ottla.schemas.jackson import Json
from ottla.schemas.schema import InvalidSchema, SchemaSource, SchemaType


class JsonValues(Protocol):
    """Converts values of one schema. Both directions raise ValueError, which says what does not fit."""

    def to_payload(self, value: Json) -> bytes: ...

    def to_json(self, payload: bytes) -> Json: ...


def json_values_of(source: SchemaSource, message_indexes: tuple[int, ...] = FIRST_MESSAGE) -> JsonValues:
    """Return the conversion for a schema; `message_indexes` is the message of a Protobuf file. Raises InvalidSchema."""
    if source.type is SchemaType.AVRO:
        from ottla.schemas.avro.json_values import AvroValues

        return AvroValues(source)
    if source.type is SchemaType.PROTOBUF:
        return _ProtobufValues(source, message_indexes)
    return _JsonSchemaValues(source)


class _JsonSchemaValues:
    """JSON as it is, if it is valid by the schema."""

    def __init__(self, source: SchemaSource) -> None:
        from ottla.schemas.readable_json import JsonPayloads

        self._payloads = JsonPayloads(source)

    def to_payload(self, value: Json) -> bytes:
        payload = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        why = self._payloads.why_unreadable(payload)
        if why is not None:
            raise ValueError(why)
        return payload

    def to_json(self, payload: bytes) -> Json:
        try:
            return json.loads(payload)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the payload is not JSON: {error}") from None


class _ProtobufValues:
    """Protobuf's own JSON mapping, with the names of the .proto file."""

    def __init__(self, source: SchemaSource, indexes: tuple[int, ...]) -> None:
        from google.protobuf.message_factory import GetMessageClass

        from ottla.schemas.protobuf import parse_protobuf

        try:
            self._kind: Any = GetMessageClass(parse_protobuf(source).message_descriptor(indexes))
        except (KeyError, IndexError) as error:
            raise InvalidSchema(f"the schema has no such message: {error}") from None

    def to_payload(self, value: Json) -> bytes:
        from google.protobuf.json_format import Error, ParseDict
        from google.protobuf.message import EncodeError

        if not isinstance(value, dict):
            raise ValueError(f"{value!r} is no object, as {self._kind.DESCRIPTOR.full_name} needs")
        try:
            payload: bytes = ParseDict(value, self._kind()).SerializeToString()
        except (Error, EncodeError, TypeError) as error:
            raise ValueError(str(error)) from None
        return payload

    def to_json(self, payload: bytes) -> Json:
        from google.protobuf.json_format import Error, MessageToDict
        from google.protobuf.message import DecodeError

        message = self._kind()
        try:
            message.ParseFromString(payload)
            return MessageToDict(message, preserving_proto_field_name=True)
        except (Error, DecodeError, TypeError, ValueError) as error:
            raise ValueError(f"the payload is not a {message.DESCRIPTOR.full_name}: {error}") from None
