"""The programs of the demo: the node, the registry and the pipeline, each started as a user would start it.

They end with the demo: each is in a process session of its own, which is ended as a whole, with Spark's JVM and Python
workers in it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ottla.operations.errors import CommandError

_STOP_S = 20.0
_SHOWN_CHARS = 2_000


class DemoProgram:
    """A process `ottla` with these arguments. Its stderr goes to a file; so does its stdout, unless `listens` is set to
    read the line `ready`: otherwise a pipe that is not read would fill up and block the program.
    """

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
        """The rest of the line `ready`, which must be the first line. Raises if the program ends instead."""
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
        """Send SIGKILL to the program and everything it started, like a power failure."""
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
        self._signal(signal.SIGKILL)  # processes that a program that ended by itself may have left behind
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
