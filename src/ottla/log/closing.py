"""A clean stop: what the next start may then believe without looking.

A closed log has complete index files, a producer snapshot at its end, and all of it on disk; only then may the mark of
a clean stop be written. A log that nobody touched since it was opened is complete already and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.log.durable import Again
from ottla.log.files.disk import Disk

if TYPE_CHECKING:
    from ottla.log.log import Log

# Up to so many logs are synced one by one: a few fsyncs cost less than all that others wrote to the file system.
_SYNC_EACH_MAX = 32


def close(log: Log, *, sync: bool) -> None:
    """Complete the files of one log and give its descriptors back; sync them unless the caller does."""
    log.write_waiting()
    end = log.next_offset
    complete = end == 0 or (end in log.snapshots.offsets and log.active.indexes_complete())
    if log.epochs.is_stale:
        log.epochs.write()
        log.durable.names_changed = True
    if not complete:
        log.active.write_indexes()
        log.snapshots.write(end, log.producers.snapshot())
        log.durable.rolled.append(log.active)
        log.durable.names_changed = True
    if sync and log.needs_sync:
        log.flush()
    log.trash.empty()
    log.release()


def close_logs(disk: Disk, logs: Sequence[Log]) -> None:
    """Close all logs of one disk, syncing thousands at once. StorageError if any of it did not get to the disk."""
    for log in logs:
        close(log, sync=False)
    dirty = [log for log in logs if log.needs_sync]
    if len(dirty) <= _SYNC_EACH_MAX:
        for log in dirty:
            log.flush()
            log.release()
        return
    for log in dirty:
        for file in log.files_to_sync():
            if isinstance(file, Again):
                file.write()
    disk.sync_all()
    for log in dirty:
        log.mark_synced()
        log.release()
