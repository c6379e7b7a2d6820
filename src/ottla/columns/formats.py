"""Decoders and encoders by the type of a schema."""

from __future__ import annotations

import pyarrow as pa

from ottla.columns.codec import Decoder, Encoder
from ottla.schemas.schema import SchemaSource, SchemaType


def decoder_of(
    writer: SchemaSource, reader: SchemaSource | None = None, message: str = "", indexes: tuple[int, ...] = ()
) -> Decoder:
    """Return a decoder of payloads of the schema `writer` to columns of `reader`. `message`: the full name of the
    message to read from a Protobuf file; `indexes`: the message of the writer's file that the frames name.

    Raises InvalidSchema, UnsupportedSchema.
    """
    if writer.type is SchemaType.AVRO:
        from ottla.columns.avro.decoder import decoder as avro

        return avro(writer, reader)
    if writer.type is SchemaType.PROTOBUF:
        from ottla.columns.protobuf.decoder import decoder as protobuf

        return protobuf(writer, reader, message, indexes)
    from ottla.columns.json.decoder import decoder as json

    return json(writer, reader)


def encoder_of(schema: SchemaSource, message: str = "") -> Encoder:
    """Return an encoder of columns as payloads of a schema. Raises InvalidSchema, UnsupportedSchema."""
    if schema.type is SchemaType.AVRO:
        from ottla.columns.avro.encoder import encoder as avro

        return avro(schema)
    if schema.type is SchemaType.PROTOBUF:
        from ottla.columns.protobuf.encoder import encoder as protobuf

        return protobuf(schema, message)
    from ottla.columns.json.encoder import encoder as json

    return json(schema)


def derive(kind: SchemaType, of: pa.DataType, name: str) -> SchemaSource:
    """Return the schema to register for columns of a type. Raises UnsupportedSchema."""
    if kind is SchemaType.AVRO:
        from ottla.columns.avro.derive import derive_avro

        return derive_avro(of, name)
    if kind is SchemaType.PROTOBUF:
        from ottla.columns.protobuf.derive import derive_protobuf

        return derive_protobuf(of, name)
    from ottla.columns.json.derive import derive_json

    return derive_json(of, name)


def indexes_of(schema: SchemaSource, message: str) -> tuple[int, ...] | None:
    """Return the path to a message in its Protobuf file, as frames carry it; None for other types."""
    if schema.type is not SchemaType.PROTOBUF:
        return None
    from ottla.columns.protobuf.encoder import message_indexes

    return message_indexes(schema, message)
