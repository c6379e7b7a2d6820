"""Keep garbage collections short.

A full collection visits every object that may be part of a reference cycle, and the process does nothing else
meanwhile: with the partitions of a large cluster in memory, each takes half a second, again and again while the number
of objects grows. Objects that survived one long collection usually live as long as the node. So they are moved out of
the collector's sight (`gc.freeze`), and later collections visit only newer objects. A frozen object is still freed when
its reference count drops to zero; only cycles among frozen objects are never freed.

Clients decide how many connections there are, so closed connections must not stay for ever even if something makes a
cycle of them: those that are still in memory are counted, and if there are many, all objects are examined again.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from weakref import WeakSet

from ottla.model import limits

_OLDEST = 2

_unneeded: WeakSet[object] = WeakSet()


def note_unneeded(thing: object) -> None:
    """Count a thing that a client caused and that nobody needs any more, as long as it is in memory."""
    _unneeded.add(thing)


def unneeded_count() -> int:
    """Return how many such things are in memory."""
    return len(_unneeded)


def keep_short(clock_s: Callable[[], float] = time.thread_time) -> Callable[[], None]:
    """Freeze all objects after a full collection that took long, so that the next ones are short; return a callable
    that stops this.

    "Long" is measured in CPU time: a collection that only waited for a CPU of a busy machine is no reason to freeze
    objects. Objects are frozen only after a full collection, because unreachable cycles that are not collected yet
    would stay in memory for ever.
    """
    begun_s = 0.0
    known = 0  # unneeded things that the last look at all objects has left in memory
    thawed = False

    def watch(phase: str, info: dict[str, int]) -> None:
        nonlocal begun_s, known, thawed
        if info["generation"] != _OLDEST:
            return
        if phase == "start":
            known = min(known, unneeded_count())
            thawed = unneeded_count() > known + limits.UNNEEDED_KEPT_MAX
            if thawed:
                gc.unfreeze()
            begun_s = clock_s()
            return
        if thawed:
            known = unneeded_count()
        if clock_s() - begun_s > limits.COLLECTION_MS_MAX / 1000:
            gc.freeze()

    gc.callbacks.append(watch)
    return lambda: gc.callbacks.remove(watch)
