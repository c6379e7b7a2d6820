"""Watch for an fsync on an event loop's thread, where it would block all clients of that loop."""

import asyncio
import os
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from ottla.server.ports import os_disk as osdisk
from ottla.server.ports import os_file as osfile

# While a node starts or stops, no client is served, so a sync on the event loop is allowed.
_NOBODY_IS_SERVED = (("node.py", "start"), ("node.py", "stop"), ("node.py", "_close_storage"))


class SyncsOnLoops:
    """`found` are the stacks of syncs on a running event loop; `elsewhere` counts the others."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: list[str] = []
        self.elsewhere = 0
        for module, name in ((os, "fsync"), (osfile, "_fdatasync"), (osdisk, "_sync_file_system")):
            monkeypatch.setattr(module, name, self._watched(getattr(module, name)))

    def _watched(self, sync: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any) -> Any:
            if asyncio._get_running_loop() is None:
                self.elsewhere += 1
            else:
                self._look()
            return sync(*arguments)

        return watched

    def _look(self) -> None:
        frames = [frame for frame in traceback.extract_stack() if "/ottla/" in frame.filename]
        if not any((frame.filename.rpartition("/")[2], frame.name) in _NOBODY_IS_SERVED for frame in frames):
            calls = (f"{frame.filename.rpartition('/ottla/')[2]}:{frame.lineno} {frame.name}" for frame in frames)
            self.found.append(" > ".join(calls))
