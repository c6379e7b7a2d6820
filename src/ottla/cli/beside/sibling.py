"""A process beside the nodes of `ottla up`, so that neither blocks the other: the registry, the console.

Rules:
- It is started when the nodes serve, and reports when it is ready; the nodes never wait for it.
- If it cannot start, that is told. If it ends by itself after it was ready, it is restarted.
- It ends with `ottla up`: this process holds the other end of its standard input, which ends with this process in any
  case. It is started by the thread that watches it, because on Linux it also ends with that thread.
- It prints a line `ready` and its URL, or `failed` and why.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

# How long a process may take to end, if it has nothing to put away.
STOP_S = 5.0
_RESTART_S = 1.0
# What the user has set for commands about other clusters.
_NOT_FOR_IT = ("OTTLA_PROFILE", "OTTLA_BOOTSTRAP", "OTTLA_REGISTRY")


class SiblingReports(NamedTuple):
    """What is called on the watching thread: with the URL, and with a sentence that says why there is none."""

    ready: Callable[[str], None]
    failed: Callable[[str], None]


class SiblingProcess:
    """The process of `python -m ...` with the words that `words` returns. That is called on the watching thread, where
    it may wait for something. When it has not ended `stop_s` seconds after it was asked to, it is killed.
    """

    def __init__(
        self, name: str, words: Callable[[], Sequence[str]], reports: SiblingReports, stop_s: float = STOP_S
    ) -> None:
        self._stop_s = stop_s
        self._words = words
        self._reports = reports
        self._stopping = threading.Event()
        self._starting = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._watching = threading.Thread(target=self._watch, name=name, daemon=True)
        self._watching.start()

    def ask_to_stop(self) -> None:
        """Ask the process to stop; `stop` waits for its end."""
        with self._starting:
            self._stopping.set()
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()

    def stop(self) -> None:
        self.ask_to_stop()
        if self._process is not None:
            try:
                self._process.wait(self._stop_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._watching.join(STOP_S)

    def _start(self, words: Sequence[str]) -> subprocess.Popen[str] | None:
        with self._starting:
            if self._stopping.is_set():
                return None
            # In a process session of its own: Ctrl-C goes only to `ottla up`, which then stops the process, too.
            self._process = subprocess.Popen(
                [sys.executable, "-m", *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
                env={name: value for name, value in os.environ.items() if name not in _NOT_FOR_IT},
            )
            return self._process

    def _watch(self) -> None:
        """Start the process and read its output to the end; restart it if it should not have ended."""
        words = self._words()
        while (process := self._start(words)) is not None:
            was_ready, was_told = self._heard(process)
            code = process.wait()
            if self._stopping.is_set():
                return
            if not was_ready:
                if not was_told:
                    self._reports.failed(f"it ended ({code})")
                return
            self._reports.failed(f"it ended ({code}) and is started again")
            self._stopping.wait(_RESTART_S)

    def _heard(self, process: subprocess.Popen[str]) -> tuple[bool, bool]:
        """Pass on what the process says until its end; return whether it was ready, and whether it said why not."""
        was_ready = was_told = False
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                word, _, rest = line.strip().partition(" ")
                if word == "ready":
                    was_ready = True
                    self._reports.ready(rest)
                elif word == "failed":
                    was_told = True
                    self._reports.failed(rest)
        return was_ready, was_told
