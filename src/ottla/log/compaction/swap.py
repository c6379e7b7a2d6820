"""Replaces segments by their cleaned versions, so that a crash may come at any time.

`.cleaned` (complete, synced) -> `.swap`, then the originals -> `.deleted`, then `.swap` loses its suffix. Until the
first `.swap` the originals are valid; from then on a start finishes the replacement (`leftovers`).

The event loop does the renames; the syncs of the directory between them may be done elsewhere: `replacing` yields where
one is due.
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
    """Replace segments `old` by `new`. The yielded directory must be synced before the generator is resumed.

    Returns False, with the new segments removed, if `still` says that the originals have changed by then.
    """
    fresh = sorted(new, key=lambda segment: segment.base_offset)
    for segment in reversed(fresh):
        segment.rename(SWAP)
    old = list(old)
    following = next((base for base in log.bases if base > old[-1].base_offset), INT64_MAX)
    log.durable.seams.remove_range(fresh[0].base_offset, following + 1)  # gaps may lie there from now on
    try:
        yield log.directory
        goes_on = still()
    except BaseException:
        # The sync failed, or the caller gave up. The originals stay valid, and other compactions may follow: a start
        # that found these files then would replace the newer segments.
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
    """Remove the new segments, as `.cleaned`: a start must not take their indexes for those of the originals."""
    for segment in fresh:
        segment.rename(CLEANED)
        segment.remove()


def replace(log: LogState, new: Iterable[Segment], old: Iterable[Segment], now_ms: int) -> None:
    """Run `replacing` completely in this thread."""
    with closing(replacing(log, new, old, now_ms)) as steps:
        for directory in steps:
            directory.sync()
