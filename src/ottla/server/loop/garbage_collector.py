"""Keep garbage collections short.

A full collection visits every object that may be part of a reference cycle, and the process does nothing else
meanwhile: with the partitions of a large cluster in memory, each takes half a second, again and again while the number
of objects grows. Objects that survived one long collection usually live as long as the node. So they are moved out of
the collector's sight (`gc.freeze`), and later collections visit only newer objects. A frozen object is still freed when
its reference count drops to zero; only cycles among frozen objects are never freed.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from ottla.model import limits

_OLDEST = 2


def keep_short(clock_s: Callable[[], float] = time.thread_time) -> Callable[[], None]:
    """Freeze all objects after a full collection that took long, so that the next ones are short; return a callable
    that stops this.

    "Long" is measured in CPU time: a collection that only waited for a CPU of a busy machine is no reason to freeze
    objects. Objects are frozen only after a full collection, because unreachable cycles that are not collected yet
    would stay in memory for ever.
    """
    begun_s = 0.0

    def watch(phase: str, info: dict[str, int]) -> None:
        nonlocal begun_s
        if phase == "start":
            begun_s = clock_s()
        elif info["generation"] == _OLDEST and clock_s() - begun_s > limits.COLLECTION_MS_MAX / 1000:
            gc.freeze()

    gc.callbacks.append(watch)
    return lambda: gc.callbacks.remove(watch)
