"""Files that an interrupted operation leaves in a partition directory, and how they are settled.

- `.deleted` and `.tmp`: was being removed, or never complete. Removed, if the rest of its name is a partition file's.
- `.cleaned`: compaction was still writing it. Removed; the originals are untouched.
- `.swap`: compaction was complete. It replaces the originals, unless others of its group are still `.cleaned`.
- An index without its log file: a removal was interrupted. Removed.
"""

from __future__ import annotations

import re

from ottla.log.config import LogConfig
from ottla.log.files.disk import Directory
from ottla.log.files.names import (
    CLEANED,
    DELETE_DIRECTORY,
    DELETED,
    LOG,
    SEGMENT_KINDS,
    SNAPSHOT,
    SWAP,
    TEMPORARY,
    file_name,
    parse_name,
)
from ottla.log.files.scan import scan
from ottla.log.files.segment import Segment
from ottla.log.recovery.ownership import is_partition_file
from ottla.log.recovery.seams import Seams
from ottla.model.limits import INT64_MAX

# The form of a deleted partition's directory name: `topic-0.0123abcd-delete`. No live one can end like that.
_DELETED_DIRECTORY = re.compile(rf"\S+-\d+\.\S+{DELETE_DIRECTORY}")
_UNFINISHED = (DELETED, CLEANED, SWAP, TEMPORARY)


def settle(directory: Directory, config: LogConfig, now_ms: int) -> list[str]:
    """Finish or undo the operations that were interrupted; return the remaining file names."""
    names = directory.list()
    if any(name.endswith(_UNFINISHED) for name in names):
        _finish(directory, config, now_ms, names)
        names = directory.list()
    parsed = [(name, found) for name in names if (found := parse_name(name)) is not None]
    logs = dict.fromkeys(base for _, (base, kind, suffix) in parsed if kind == LOG and suffix == "")
    for name, (base, kind, suffix) in parsed:
        if kind in SEGMENT_KINDS and suffix == "" and base not in logs:
            directory.remove(name)
            names.remove(name)
    return names


def _finish(directory: Directory, config: LogConfig, now_ms: int, names: list[str]) -> None:
    parsed = [(name, found) for name in names if (found := parse_name(name)) is not None]
    originals = [base for _, (base, kind, suffix) in parsed if kind == LOG and suffix == ""]
    cleaned = [base for _, (base, _, suffix) in parsed if suffix == CLEANED]
    swaps: dict[int, list[str]] = {}
    for name, (base, kind, suffix) in parsed:
        if suffix in (DELETED, CLEANED):
            directory.remove(name)
        elif suffix == SWAP and cleaned and base >= min(cleaned):
            # The swap belongs to a group whose other files were not renamed yet: the originals still exist.
            directory.remove(name)
        elif suffix == SWAP:
            swaps.setdefault(base, []).append(kind)
    for base, kinds in sorted(swaps.items()):
        if LOG in kinds:
            _finish_swap(directory, config, now_ms, base, originals)
            continue
        # The log file is in place already; its indexes follow.
        for kind in kinds:
            directory.rename(file_name(base, kind, SWAP), file_name(base, kind))
    for name in names:
        if name.endswith(TEMPORARY) and is_partition_file(name):
            directory.remove(name)


def _finish_swap(directory: Directory, config: LogConfig, now_ms: int, base: int, originals: list[int]) -> None:
    swap = Segment(directory, base, interval_bytes=config.index_interval_bytes, now_ms=now_ms, suffix=SWAP)
    next_offset = base
    for batch in scan(swap.file, 0, swap.size_bytes, whole=False):
        next_offset = batch.header.next_offset
    for original in originals:
        if base <= original < next_offset:
            for kind in (*SEGMENT_KINDS, SNAPSHOT) if original != base else SEGMENT_KINDS:
                directory.remove(file_name(original, kind))
    # Gaps may lie between the remaining segments.
    left = [original for original in originals if original > base and original >= next_offset]
    seams = Seams(directory)
    seams.discover(directory.list())
    seams.remove_range(base, min(left, default=INT64_MAX) + 1)
    swap.rename("")


def is_deleted_directory(name: str) -> bool:
    """Whether this is the directory of a deleted partition that had not been removed yet when the process ended."""
    return _DELETED_DIRECTORY.fullmatch(name) is not None
