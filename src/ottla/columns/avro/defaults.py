"""Defaults of fields as payloads: a JSON default becomes the bytes that a writer would have written for it.

So a field that is missing in the writer's schema is read by the same instructions as one that is there.
"""

from __future__ import annotations

import struct
from typing import Any

from ottla.columns.avro.nodes import AvroNode
from ottla.schemas.schema import InvalidSchema
from ottla.wire.varint import zigzag_bytes


def default_bytes(node: AvroNode, default: Any) -> bytes:
    """Return the payload of a default. Raises InvalidSchema."""
    try:
        return _encode(node, default)
    except (TypeError, ValueError, KeyError, AttributeError, struct.error, OverflowError) as error:
        raise InvalidSchema(f"{default!r} is no default of {node.name or node.kind}") from error


def _encode(node: AvroNode, default: Any) -> bytes:
    match node.kind:
        case "null":
            if default is not None:
                raise ValueError
            return b""
        case "boolean":
            return bytes([{True: 1, False: 0}[default]])
        case "int" | "long":
            return zigzag_bytes(int(default))
        case "float":
            return struct.pack("<f", default)
        case "double":
            return struct.pack("<d", default)
        case "string":
            return _sized(default.encode())
        case "bytes":
            return _sized(default.encode("iso-8859-1"))
        case "fixed":
            data: bytes = default.encode("iso-8859-1")
            if len(data) != node.size:
                raise ValueError
            return data
        case "enum":
            return zigzag_bytes(node.symbols.index(default))
        case "record":
            return b"".join(_encode(each.node, default.get(each.name, each.default)) for each in node.fields)
        case "array":
            return _blocks([_encode(node.item, item) for item in default])
        case "map":
            return _blocks([_sized(key.encode()) + _encode(node.item, item) for key, item in default.items()])
        case _:
            return _union(node, default)


def _union(node: AvroNode, default: Any) -> bytes:
    """Write the default as the first branch, as the specification demands; else as any that fits, as newer writers
    allow.
    """
    for index, branch in enumerate(node.branches):
        try:
            return zigzag_bytes(index) + _encode(branch, default)
        except (TypeError, ValueError, KeyError, AttributeError, struct.error, OverflowError):
            continue
    raise ValueError


def _sized(data: bytes) -> bytes:
    return zigzag_bytes(len(data)) + data


def _blocks(items: list[bytes]) -> bytes:
    return (zigzag_bytes(len(items)) + b"".join(items) if items else b"") + b"\0"
