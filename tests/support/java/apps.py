"""Java programs that run until they are killed: copiers, Streams applications, Connect workers."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.java.programs import CLASSPATH_431, command


class App:
    """Runs a program, one process at a time; its output goes to `log_path`."""

    def __init__(self, log_path: Path, main_class: str, *words: str, classpath: str = CLASSPATH_431) -> None:
        self._words: Sequence[str] = command(main_class, *words, classpath=classpath)
        self._log_path = log_path
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert self._process is None
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(self._words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def kill(self) -> None:
        """Kill the program with SIGKILL; also works if it has ended by itself."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def said(self) -> str:
        return self._log_path.read_text(errors="replace")[-4000:]
