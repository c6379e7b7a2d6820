"""The processes of a local cluster: start them, read their output, and end them with this process.

Rules:
- Each node is a process `ottla start` with its file, in a process session of its own: Ctrl-C goes only to this process,
  which then ends all nodes at once. This process holds the other end of their standard input and they end at its end of
  file, so they end even after a kill -9 of this process.
- The output of a node is printed line by line, with its name in front. A node that ends is reported, not restarted: the
  cluster goes on without it, and a restart would hide the reason.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from ottla.cli.nodes.local_cluster import LocalNode

_STOP_S = 30.0


class NodeEvent(NamedTuple):
    """An event of a node: it is `ready`, `says` a line, or has `ended` with an exit code."""

    name: str
    what: str
    text: str


class NodeProcess:
    """The process of one node."""

    def __init__(self, node: LocalNode, words: Sequence[str], events: queue.SimpleQueue[NodeEvent]) -> None:
        self.node = node
        self.is_ready = False
        self._events = events
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ottla", "start", str(node.path), "--until-eof", "--log-level", "WARNING", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"},
            start_new_session=True,
        )
        self._threads = [
            threading.Thread(target=each, name=node.name, daemon=True) for each in (self._listen, self._pass_on)
        ]
        for thread in self._threads:
            thread.start()

    def ask_to_stop(self) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def wait(self, deadline_s: float) -> bool:
        """Wait until the process has ended; False if it had to be killed."""
        try:
            self._process.wait(max(0.0, deadline_s - time.monotonic()))
            clean = True
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            clean = False
        for thread in self._threads:
            thread.join()
        if self._process.stdin is not None:
            self._process.stdin.close()
        return clean

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                word, _, rest = line.strip().partition(" ")
                if word == "ready":
                    self.is_ready = True
                    self._events.put(NodeEvent(self.node.name, "ready", rest))
        self._events.put(NodeEvent(self.node.name, "ended", str(self._process.wait())))

    def _pass_on(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                self._events.put(NodeEvent(self.node.name, "says", line.rstrip()))


class Fleet:
    """The processes of all nodes. `events` is a queue for one thread to read."""

    def __init__(self, words: Sequence[str] = ()) -> None:
        self.events: queue.SimpleQueue[NodeEvent] = queue.SimpleQueue()
        self.processes: dict[str, NodeProcess] = {}
        self._words = words

    def start(self, node: LocalNode) -> None:
        self.processes[node.name] = NodeProcess(node, self._words, self.events)

    def stop(self, names: Sequence[str] | None = None) -> bool:
        """Stop these nodes (by default all) at once; whether all stopped without being killed."""
        ending = [self.processes[each] for each in (list(self.processes) if names is None else names)]
        for process in ending:
            process.ask_to_stop()
        deadline_s = time.monotonic() + _STOP_S
        clean = [process.wait(deadline_s) for process in ending]
        for process in ending:
            del self.processes[process.node.name]
        return all(clean)
