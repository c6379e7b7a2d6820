"""A slow disk without page cache: first reads, syncs and, if wanted, writes take a while."""

import asyncio
import os
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ottla.server.ports import os_file as osfile
from ottla.server.ports import page_cache

_BLOCK_BYTES = 64 * 1024


class SlowDisk:
    """`on_loops` are the stacks of operations that an event loop had to wait for; `elsewhere` counts those of other
    threads.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, delay_s: float) -> None:
        self.delay_s = delay_s
        self.on_loops: list[str] = []
        self.elsewhere = 0
        self._lock = threading.Lock()
        self._files: set[int] = set()
        self._written_slowly: set[int] = set()
        self._warm: set[tuple[int, int]] = set()
        self._pread, self._preadv, self._sendfile = os.pread, os.preadv, os.sendfile
        self._fdatasync, self._pwrite = osfile._fdatasync, os.pwrite
        monkeypatch.setattr(os, "pwrite", self.pwrite)
        monkeypatch.setattr(os, "pread", self.pread)
        monkeypatch.setattr(os, "preadv", self.preadv)
        monkeypatch.setattr(os, "sendfile", self.sendfile)
        monkeypatch.setattr(page_cache, "_NO_WAIT", getattr(os, "RWF_NOWAIT", 8))
        monkeypatch.setattr(osfile, "_fdatasync", self.fdatasync)
        monkeypatch.setattr(osfile, "FRESH_S", 0)
        monkeypatch.setattr(osfile, "WARM_S", 0)

    def slow_down(self, directory: Path) -> None:
        """Make the files in this directory slow from now on, with nothing of them in the page cache."""
        self._files.update(path.stat().st_ino for path in directory.iterdir())
        self._warm.clear()

    def slow_to_write(self, directory: Path) -> None:
        """Make writes to the files in this directory slow from now on; reads stay as they are."""
        self._written_slowly.update(path.stat().st_ino for path in directory.iterdir())

    def quicken(self) -> None:
        self._files.clear()
        self._written_slowly.clear()

    def pwrite(self, fd: int, data: Any, position: int) -> int:
        if self._written_slowly and os.fstat(fd).st_ino in self._written_slowly:
            self._wait()
        return self._pwrite(fd, data, position)

    def pread(self, fd: int, size_bytes: int, position: int) -> bytes:
        self._read(fd, position, size_bytes)
        return self._pread(fd, size_bytes, position)

    def preadv(self, fd: int, buffers: Sequence[Any], position: int, flags: int = 0) -> int:
        size_bytes = sum(map(len, buffers))
        if flags and self._cold(fd, position, size_bytes):
            raise BlockingIOError
        self._read(fd, position, size_bytes)
        return self._preadv(fd, buffers, position)

    def sendfile(self, to: int, fd: int, position: int, size_bytes: int) -> int:
        self._read(fd, position, size_bytes)
        return self._sendfile(to, fd, position, size_bytes)

    def fdatasync(self, fd: int) -> None:
        if os.fstat(fd).st_ino in self._files:
            self._wait()
        self._fdatasync(fd)

    def _cold(self, fd: int, position: int, size_bytes: int) -> set[tuple[int, int]]:
        file = os.fstat(fd)
        if file.st_ino not in self._files:
            return set()
        end = min(position + size_bytes, file.st_size)
        blocks = range(position // _BLOCK_BYTES, -(-end // _BLOCK_BYTES))
        return {(file.st_ino, block) for block in blocks} - self._warm

    def _read(self, fd: int, position: int, size_bytes: int) -> None:
        cold = self._cold(fd, position, size_bytes)
        if cold:
            self._wait()
            self._warm |= cold

    def _wait(self) -> None:
        with self._lock:
            if asyncio._get_running_loop() is None:
                self.elsewhere += 1
            else:
                self.on_loops.append("".join(traceback.format_stack(limit=12)))
        time.sleep(self.delay_s)
