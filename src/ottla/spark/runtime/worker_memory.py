"""Memory settings of Spark's Python workers: freed memory is kept by the process, and garbage collection skips loaded
modules.

- Buffers of megabytes are allocated and freed with every response. The C library returns such memory to the system each
  time, and getting new memory costs as much as filling it.
- Spark's daemon collects garbage after every task. With numba loaded that visits some 400,000 objects, none of which is
  ever freed, and takes as long as reading 500,000 records.
"""

import ctypes
import gc
import sys
from functools import cache

from ottla.model.limits import MIB

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt(3)
_DAEMON = "pyspark.daemon"


@cache
def keep_freed_memory() -> bool:
    """Keep up to some 128 MiB of freed memory from now on. False if the C library has no such setting."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, 32 * MIB) and mallopt(_TRIM_THRESHOLD, 128 * MIB))


@cache
def settle() -> bool:
    """Exclude all objects that exist now from garbage collection. This is done once per worker, when it has loaded its
    modules; in other processes (a driver, a test) it does nothing and returns False.
    """
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is None or spec.name != _DAEMON:
        return False
    gc.freeze()
    return True
