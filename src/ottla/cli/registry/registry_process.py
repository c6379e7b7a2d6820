"""The registry beside the node of `ottla up`: a process of its own, so that neither blocks the other.

Rules:
- The registry is started when the node serves, and reports when it is ready; the node never waits for it.
- If the registry cannot start, a warning is printed. If it ends by itself after it was ready, it is restarted.
- The registry ends with the node: this process holds the other end of its standard input, which ends with this process
  in any case.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

_STOP_S = 5.0
_RESTART_S = 1.0


class RegistryProcess:
    """The process of the registry. `on_ready(url)` and `on_failed(why)` are called on a thread of its own. `config` is
    a file of the registry's settings.
    """

    def __init__(
        self,
        bootstrap: str,
        host: str,
        port: int,
        on_ready: Callable[[str], None],
        on_failed: Callable[[str], None],
        config: Path | None = None,
    ) -> None:
        self._words = [sys.executable, "-m", "ottla.registry", "--bootstrap", bootstrap]
        self._words += ["--host", host, "--port", str(port)]
        self._words += ["--config", str(config)] if config else []
        self._on_ready = on_ready
        self._on_failed = on_failed
        self._stopping = threading.Event()
        self._process = self._spawn()
        self._watching = threading.Thread(target=self._watch, name="registry", daemon=True)
        self._watching.start()

    def ask_to_stop(self) -> None:
        """Ask the registry to stop; `stop` waits for its end."""
        self._stopping.set()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def stop(self) -> None:
        self.ask_to_stop()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._watching.join(_STOP_S)

    def _spawn(self) -> subprocess.Popen[str]:
        # In a process session of its own: Ctrl-C goes only to the node, which then stops the registry, too.
        return subprocess.Popen(
            self._words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def _watch(self) -> None:
        """Read the output of the process to its end; restart it if it should not have ended."""
        while True:
            was_ready = told = False
            assert self._process.stdout is not None
            with self._process.stdout as lines:
                for line in lines:
                    word, _, rest = line.strip().partition(" ")
                    if word == "ready":
                        was_ready = True
                        self._on_ready(rest)
                    elif word == "failed":
                        told = True
                        self._on_failed(rest)
            code = self._process.wait()
            if self._stopping.is_set():
                return
            if not was_ready:
                if not told:
                    self._on_failed(f"it ended ({code})")
                return
            self._on_failed(f"it ended ({code}) and is started again")
            time.sleep(_RESTART_S)
            if self._stopping.is_set():
                return
            self._process = self._spawn()
