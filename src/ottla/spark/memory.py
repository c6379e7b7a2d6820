"""Memory of a Spark worker that reads: kept by the process, for it is needed again at once.

Buffers of megabytes come and go with every answer. The C library gives such memory back to the system each time, and
getting it anew costs as much as filling it.
"""

import ctypes
from functools import cache

from ottla.model.limits import MIB

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)


@cache
def keep_freed_memory() -> bool:
    """From now on, keep up to some 128 MiB of what is freed. False where the C library has no such switch."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, 32 * MIB) and mallopt(_TRIM_THRESHOLD, 128 * MIB))
