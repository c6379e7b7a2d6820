"""Stop processes of a Spark job at named steps of the sink (`ottla.spark.sink.faults`), and kill them there."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from ottla.spark.sink.faults import VARIABLE, FaultPoint


class Steps:
    """A directory in which steps are armed."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.env = {VARIABLE: str(directory)}

    def arm(self, step: FaultPoint) -> None:
        """Let the next process that reaches the step wait there."""
        (self._directory / step.value).touch()

    def wait(self, step: FaultPoint, check: Callable[[], None], timeout_s: float = 240) -> int:
        """Wait until a process waits at the step; its pid. `check` raises if that cannot happen any more."""
        deadline = time.monotonic() + timeout_s
        while True:
            for found in self._directory.glob(f"{step.value}.*"):
                if found.suffix[1:].isdigit():
                    return int(found.suffix[1:])
            check()
            assert time.monotonic() < deadline, f"nobody came to {step.value} within {timeout_s} s"
            time.sleep(0.02)

    def release(self, step: FaultPoint, pid: int) -> None:
        """Let the process go on."""
        (self._directory / f"{step.value}.{pid}").unlink(missing_ok=True)

    def kill(self, step: FaultPoint, pid: int) -> None:
        """Send SIGKILL to the process that waits there."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self.release(step, pid)

    def close(self) -> None:
        """Kill the processes that still wait."""
        for found in self._directory.glob("*.*.*"):
            self.kill(FaultPoint(found.stem), int(found.suffix[1:]))


def ancestors(pid: int) -> list[int]:
    """The processes that started this one, nearest first."""
    found: list[int] = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        found.append(pid)
    return found


def command_of(pid: int) -> str:
    """The command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def environment_of(pid: int) -> dict[str, str]:
    """The environment that a process was started with."""
    words = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    return dict(word.split("=", 1) for word in words if "=" in word)
