"""Kafka's names for the files of a partition directory, and for the directories themselves.

The names of a segment's files are its base offset as twenty digits. Suffixes behind that mark files in transition:
`.cleaned` (compaction is writing it), `.swap` (complete, about to replace the originals), `.deleted` (out of the log,
removed after file.delete.delay.ms). Of the kinds only `.seam` is not Kafka's, see `seams`.
"""

from __future__ import annotations

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
SEAM = ".seam"
SEGMENT_KINDS = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)
_KINDS = (*SEGMENT_KINDS, SNAPSHOT, SEAM)

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
TEMPORARY = ".tmp"  # being written; removed when the partition is opened

# Directory suffixes: a partition being deleted, a replica moving in from another log directory, a replica that the
# cluster does not know.
DELETE_DIRECTORY = "-delete"
FUTURE_DIRECTORY = "-future"
STRAY_DIRECTORY = "-stray"

_DIGITS = 20


def file_name(base_offset: int, kind: str, suffix: str = "") -> str:
    return f"{base_offset:020d}{kind}{suffix}"


def parse_name(name: str) -> tuple[int, str, str] | None:
    """Return (offset, kind, suffix) of a segment's file, a snapshot or a seam; None for any other file."""
    digits, dot, rest = name.partition(".")
    if len(digits) != _DIGITS or not digits.isascii() or not digits.isdigit() or not dot:
        return None
    kind, dot, suffix = rest.partition(".")
    kind = "." + kind
    if kind not in _KINDS:
        return None
    return int(digits), kind, dot + suffix


def parse_directory(name: str) -> tuple[str, int] | None:
    """Return (topic, partition) of a live partition directory.

    None for any other directory, including deleted, future and stray ones.
    """
    topic, dash, index = name.rpartition("-")
    if not dash or not topic or not index.isascii() or not index.isdigit():
        return None
    return topic, int(index)
