"""Get free memory back from the host of a virtual machine before anything is measured.

A guest may report its free memory, and the host then takes it away until it is touched again. Each such page costs a
fault in the hypervisor, which the guest counts as system time of the process that wrote: 2.3 s of CPU per GiB of page
cache, where memory in use costs 0.1 s. How much a load is affected depends on what ran on the machine before, and is
the same for every broker. A machine that has been up for a while has its memory full of page cache and does not have
this cost.

So memory is filled with clean pages of a sparse file: the disk is not touched, and the kernel reuses these pages for
any process that needs memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_READ_BYTES = 1 << 20
_MEMINFO = Path("/proc/meminfo")


@contextmanager
def in_hand(directory: Path) -> Iterator[None]:
    """A context in which free memory is full of page cache that can be reused. Memory that processes free meanwhile is
    not filled again.
    """
    path = directory / "hole"
    size_bytes = _free_bytes()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.ftruncate(descriptor, size_bytes)
        taken = [bytearray(_READ_BYTES)]
        for position in range(0, size_bytes, _READ_BYTES):
            os.preadv(descriptor, taken, position)
        yield
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)


def _free_bytes() -> int:
    if not _MEMINFO.exists():
        return 0
    found = dict(line.split(":") for line in _MEMINFO.read_text().splitlines())
    return int(found["MemFree"].split()[0]) * 1024
