"""A clean stop: it lets the next start skip recovery.

A closed log has complete index files, a producer snapshot at its end, and all of it on disk; only then may the clean
shutdown file be written. A log that was not changed since it was opened is complete already and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.log.durable import RewrittenFile
from ottla.log.files.disk import Disk
from ottla.log.log import Log

# Up to this many logs are synced one by one: a few fsyncs cost less than syncing the whole file system.
_SYNC_EACH_MAX = 32


def close_logs(disk: Disk, logs: Sequence[Log]) -> None:
    """Close all logs of one disk, syncing thousands at once.

    StorageError if any of the data did not get to the disk.
    """
    for log in logs:
        log.close(sync=False)
    dirty = [log for log in logs if log.needs_sync]
    if len(dirty) <= _SYNC_EACH_MAX:
        for log in dirty:
            log.flush()
            log.release()
        return
    for log in dirty:
        for file in log.files_to_sync():
            if isinstance(file, RewrittenFile):
                file.write()
    disk.sync_all()
    for log in dirty:
        log.mark_synced()
        log.release()
