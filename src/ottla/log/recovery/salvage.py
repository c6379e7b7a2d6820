"""Salvage: a log that is damaged in a part that is not needed any more is made to begin behind the damage.

Whole segments below can be deleted. The segment that holds both the damage and needed records is replaced by a copy of
its end, because lookups and recovery read a file from its beginning.
"""

from __future__ import annotations

from ottla.log.files.names import CLEANED
from ottla.log.files.scan import find_batch, scan
from ottla.log.files.segment import Segment
from ottla.log.log import Log


def split(log: Log, offset: int, now_ms: int) -> bool:
    """Make the log begin with the batch at `offset`, which is its log start; False if that batch is not found.

    After a crash in between both files exist, and recovery skips the damage and continues with the newer one.
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
    """Copy the part from `position` on to a segment of its own, synced; None if it is damaged as well."""
    interval = log.config.index_interval_bytes
    new = Segment(log.directory, offset, interval_bytes=interval, now_ms=now_ms, suffix=CLEANED)
    new.file.truncate(0)  # a failed attempt may have left something
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
