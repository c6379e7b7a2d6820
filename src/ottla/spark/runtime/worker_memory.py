"""Memory of Spark's Python workers: kept by the process, and looked through for garbage no more often than it pays.

- Buffers of megabytes come and go with every answer. The C library gives such memory back to the system each time, and
  getting it anew costs as much as filling it.
- Spark's daemon collects garbage after every task. With numba loaded that looks at some 400,000 objects, none of which
  ever goes, and takes as long as reading 500,000 records.
"""

import ctypes
import gc
import sys
from functools import cache

from ottla.model.limits import MIB

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt(3)
_DAEMON = "pyspark.daemon"


@cache
def keep_freed_memory() -> bool:
    """From now on, keep up to some 128 MiB of what is freed. False where the C library has no such switch."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, 32 * MIB) and mallopt(_TRIM_THRESHOLD, 128 * MIB))


@cache
def settle() -> bool:
    """All that is loaded by now stays, and the collector need not look at it again. Once per worker, when it has loaded
    what it works with; elsewhere (in a driver, in a test) this does nothing and is False."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is None or spec.name != _DAEMON:
        return False
    gc.freeze()
    return True
