"""Salvage: a log that is damaged where it is not needed any more begins behind the damage.

Whole segments below can be deleted. The one that holds the damage and what is needed, too, is replaced by a copy of
its end: lookups go from the beginning of a file, and so does every recovery.
"""

from __future__ import annotations

from ottla.log.files.names import CLEANED
from ottla.log.files.scan import find_batch, scan
from ottla.log.files.segment import Segment
from ottla.log.log import Log


def split(log: Log, offset: int, now_ms: int) -> bool:
    """Let the log begin with the batch at `offset`, which is its log start; False if that is not found.

    After a crash in between both files are there, and recovery passes the damage by, to the newer.
    """
    old = log.segments[0]
    if old.base_offset >= offset:
        return True
    if old is log.active:
        log.roll(now_ms)
    if log.bases[1] > offset:
        position = find_batch(old.file, 0, offset)
        new = _copy(log, old, offset, position, now_ms) if position is not None else None
        if new is None:
            return False
        log.replace([new], [old], now_ms)
    else:
        log.take_out(old, now_ms)
    log.remove_deleted(now_ms)
    return True


def _copy(log: Log, old: Segment, offset: int, position: int, now_ms: int) -> Segment | None:
    """What lies from `position` on, as a segment of its own, on disk; None if that is damaged as well."""
    interval = log.config.index_interval_bytes
    new = Segment(log.directory, offset, interval_bytes=interval, now_ms=now_ms, suffix=CLEANED)
    new.file.truncate(0)  # an attempt that failed may have left something
    for batch in scan(old.file, position, old.size_bytes, whole=True):
        header = batch.header
        new.append(batch.view(), header.size_bytes, header.last_offset, header.max_timestamp)
    if position + new.size_bytes < old.size_bytes:
        new.remove()
        return None
    new.seal()
    for file in new.files():
        file.sync()
    return new
