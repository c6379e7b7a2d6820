"""The problems that `verify` can find in a data directory, as typed values for the CLI and tests."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import NamedTuple


class Severity(IntEnum):
    """How bad a finding is.

    NOTE: worth knowing. WARNING: opening the log repairs it, or it only costs time. ERROR: data or answers are wrong.
    """

    NOTE = 0
    WARNING = 1
    ERROR = 2


class FindingKind(StrEnum):
    UNREADABLE = "unreadable"  # the disk refuses to read it
    UNKNOWN_FILE = "unknown-file"
    LEFTOVER = "leftover"  # .deleted, .cleaned, .swap: the next start finishes or removes it
    MISSING = "missing"  # a file that should exist
    DAMAGED_BATCH = "damaged-batch"
    DAMAGED_RECORD = "damaged-record"
    GARBAGE = "garbage"  # bytes that are no batch
    OFFSET_ORDER = "offset-order"
    EPOCH_ORDER = "epoch-order"
    TIMESTAMP = "timestamp"
    INDEX_SIZE = "index-size"
    INDEX_ORDER = "index-order"
    INDEX_POSITION = "index-position"
    INDEX_OFFSET = "index-offset"
    TIME_INDEX = "time-index"
    TXN_INDEX = "txn-index"
    SNAPSHOT = "snapshot"
    CHECKPOINT = "checkpoint"


class Finding(NamedTuple):
    severity: Severity
    kind: FindingKind
    path: str
    position: int | None  # byte position in the file, if there is one
    message: str

    def __str__(self) -> str:
        where = self.path if self.position is None else f"{self.path} at {self.position}"
        return f"{self.severity.name.lower()}: {self.kind}: {where}: {self.message}"


@dataclass(slots=True)
class VerifyTotals:
    """How much was checked."""

    partitions: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    size_bytes: int = 0
