"""A query that runs in a process of its own: what the process is given, and the frames that it answers.

A frame is one byte for its kind, four bytes for the length, and the content: JSON, except for bytes of a file.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

from ottla.client.options import ClientOptions
from ottla.client.registry import RegistryOptions

_HEAD: Final = struct.Struct(">cI")
HEAD_BYTES: Final = _HEAD.size


class SqlForm(StrEnum):
    """How the rows of a query are answered."""

    TABLE = "table"
    CSV = "csv"
    PARQUET = "parquet"


class FrameKind(StrEnum):
    """What a frame has. `DONE` and `ERROR` are the last of an answer."""

    READ = "p"  # how many records were read so far
    WARNING = "w"
    COLUMNS = "c"  # names and types
    ROWS = "r"  # lists of cells, each a text; null is None
    BYTES = "b"
    DONE = "d"  # whether there were more rows
    ERROR = "e"


class SqlFrame(NamedTuple):
    """One frame, decoded."""

    kind: FrameKind
    content: Any


@dataclass(frozen=True, slots=True)
class SqlTask:
    """A query, as whom it reads, and how much it may answer."""

    query: str
    client: ClientOptions
    registry: RegistryOptions | None
    form: SqlForm
    rows_max: int
    cell_chars: int


def encoded_frame(kind: FrameKind, content: object) -> bytes:
    data = content if isinstance(content, bytes) else json.dumps(content).encode("utf-8", "replace")
    return _HEAD.pack(kind.encode(), len(data)) + data


def frame_head(head: bytes) -> tuple[FrameKind, int]:
    """The kind of a frame, and how many bytes follow."""
    kind, size = _HEAD.unpack(head)
    return FrameKind(kind.decode()), size


def decoded_frame(kind: FrameKind, data: bytes) -> SqlFrame:
    return SqlFrame(kind, data if kind is FrameKind.BYTES else json.loads(data))
