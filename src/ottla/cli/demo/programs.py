"""The programs of the demo: the node, the registry and the pipeline, each started as a user would start it.

They end with the demo: each is in a session of its own, which is ended as a whole, with the JVM and the Python workers
of Spark in it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ottla.cli.terminal.plain import CommandError

_STOP_S = 20.0
_SHOWN_CHARS = 2_000


class DemoProgram:
    """`ottla` with these words; its errors go to a file, and what else it says unless somebody `listens` for `ready`: a
    pipe that nobody empties would stop it."""

    def __init__(
        self,
        name: str,
        words: list[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
        *,
        listens: bool = True,
    ) -> None:
        self.name = name
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ottla", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if listens else errors,
                stderr=errors,
                text=True,
                env={**os.environ, **(environment or {}), "PYTHONUNBUFFERED": "1", "NO_COLOR": "1"},
                start_new_session=True,
            )

    def ready(self) -> str:
        """What follows `ready` on its first line. Raises when it ends instead."""
        assert self._process.stdout is not None
        word, _, rest = self._process.stdout.readline().strip().partition(" ")
        if word != "ready":
            self.stop()
            raise self.failed()
        return rest

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def failed(self) -> CommandError:
        said = self._log.read_text(errors="replace").strip().rpartition("\n")[2][-_SHOWN_CHARS:]
        ended = f"the {self.name} ended with {self._process.wait()}"
        return CommandError(f"the demo failed: {ended}: {said}", hint=f"all that it said is in {self._log}")

    def kill(self) -> None:
        """SIGKILL, to it and everything it started: what a power cut does to a machine."""
        self._signal(signal.SIGKILL)
        self._end()

    def stop(self) -> None:
        self._signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
        self._end()

    def _end(self) -> None:
        self._process.wait()
        self._signal(signal.SIGKILL)  # what a program that ended by itself may have left behind
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
