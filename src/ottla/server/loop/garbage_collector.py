"""Short garbage collections.

Python's collector looks at every object that may be part of a circle, and nobody works meanwhile: with the partitions
of a large cluster in memory that is half a second, again and again while they become more. What has survived one long
collection lives about as long as the node. So it is put aside (`gc.freeze`), and the next collections look only at what
came since. What is put aside is still freed when nobody refers to it any more; only circles in it stay.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from ottla.model import limits

_OLDEST = 2


def keep_short(clock_s: Callable[[], float] = time.thread_time) -> Callable[[], None]:
    """From now on no full collection of this process takes long twice; gives what ends it.

    Long is CPU time: a collection that only waited for its turn on a busy machine is no reason to put anything aside.
    After a full collection only: before it there may be circles that nobody refers to, which would stay for ever.
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
