"""Putting cleaned segments in the place of those they were made from, so that a crash may come at any time.

`.cleaned` (complete, synced) -> `.swap`, then the originals -> `.deleted`, then `.swap` loses its suffix. Until the
first `.swap` the originals count; from then on a start finishes the job (`leftovers`).

The renames are the event loop's, the syncs of the directory between them are not: `replacing` yields where one is due.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from ottla.log.files.disk import StorageError
from ottla.log.files.names import CLEANED, SWAP
from ottla.log.state import LogState
from ottla.model.limits import INT64_MAX

if TYPE_CHECKING:
    from ottla.log.files.disk import Directory
    from ottla.log.files.segment import Segment


def replacing(
    log: LogState, new: Iterable[Segment], old: Iterable[Segment], now_ms: int, still: Callable[[], bool] = lambda: True
) -> Generator[Directory, None, bool]:
    """What it yields must be synced before it goes on. False, and the new segments are gone, if the originals were not
    what they were (`still`) by then.
    """
    fresh = sorted(new, key=lambda segment: segment.base_offset)
    for segment in reversed(fresh):
        segment.rename(SWAP)
    old = list(old)
    following = next((base for base in log.bases if base > old[-1].base_offset), INT64_MAX)
    log.durable.seams.remove_range(fresh[0].base_offset, following + 1)  # from now on gaps may lie there
    try:
        yield log.directory
        goes_on = still()
    except BaseException:
        # The sync failed, or nobody goes on. The originals count, and other compactions may follow: a start that found
        # this one then would put what it has over theirs.
        with suppress(StorageError):
            _undo(fresh)
        raise
    if not goes_on:
        _undo(fresh)
        return False
    bases = [segment.base_offset for segment in fresh]
    log.producers.forget_marks_below(log.active.base_offset)
    for segment in old:
        log.take_out(segment, now_ms, keep_snapshot=segment.base_offset in bases)
    for segment in fresh:
        segment.rename("")
        at = bisect_right(log.bases, segment.base_offset)
        log.segments.insert(at, segment)
        log.bases.insert(at, segment.base_offset)
    yield log.directory
    return True


def _undo(fresh: Iterable[Segment]) -> None:
    """A start that finds this half done must not take an index for that of the log file that is in place."""
    for segment in fresh:
        segment.rename(CLEANED)
        segment.remove()


def replace(log: LogState, new: Iterable[Segment], old: Iterable[Segment], now_ms: int) -> None:
    """All of it, in this thread."""
    with closing(replacing(log, new, old, now_ms)) as steps:
        for directory in steps:
            directory.sync()
