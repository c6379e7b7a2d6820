"""Run a command and end everything that it started: `python -m tests.support.runs.supervised COMMAND...`.

`make test` runs the tests this way. They start brokers, JVMs and daemons, some in process sessions of their own.
Processes that outlive the tests, after Ctrl-C or because a worker died, become children of this process (on Linux it is
their "subreaper") and are killed, by their ids.

Ctrl-C, SIGTERM and SIGHUP are passed on as one SIGINT, so that the tests can clean up. After `GRACE_S`, or at the
second signal, everything is killed.

Temporary files of the run are in one directory, which is unmounted and removed, unless tests failed.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

GRACE_S = 30.0
RUN = "OTTLA_TEST_RUN"  # the prefix of the names of network namespaces
_PR_SET_CHILD_SUBREAPER = 36
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Supervisor:
    def __init__(self, command: Sequence[str]) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="ottla-test-"))
        self._root.chmod(0o711)  # a database server runs as another user
        self._run = f"ottla-{os.getpid()}-"
        self._signals: list[int] = []
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for number in _SIGNALS:
            signal.signal(number, self._note)
        root = str(self._root)
        env = {**os.environ, "TMPDIR": root, "SPARK_LOCAL_DIRS": root, RUN: self._run}
        env.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise hundreds of processes would each compile modules
        # A process group of its own: a terminal's Ctrl-C reaches only this process.
        self._command = subprocess.Popen(command, env=env, process_group=0)

    def _note(self, number: int, _: FrameType | None) -> None:
        self._signals.append(number)

    def wait(self) -> int:
        """Wait for the command; its exit status, or 128 plus the number of the signal that ended it."""
        told_at = 0.0
        while (status := self._command.poll()) is None:
            if self._signals and not told_at:
                told_at = time.monotonic()
                print(f"\ninterrupted: ending what the tests started (at most {GRACE_S:g} s)", file=sys.stderr)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._command.pid, signal.SIGINT)
            if len(self._signals) > 1 or (told_at and time.monotonic() > told_at + GRACE_S):
                break
            time.sleep(0.05)
        end_children()
        interrupted = bool(self._signals)
        self._put_away(keep=status != 0 and not interrupted)
        if interrupted:
            return 128 + self._signals[0]
        assert status is not None
        return status if status >= 0 else 128 - status

    def _put_away(self, *, keep: bool) -> None:
        for name in _listed("ip", "netns", "list"):
            if name.startswith(self._run):
                subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        for path in _listed("cut", "-d ", "-f2", "/proc/mounts"):
            if path.startswith(f"{self._root}/"):
                subprocess.run(["umount", "-l", path], capture_output=True, check=False)
        if keep:
            print(f"temporary files of the failed tests: {self._root}", file=sys.stderr)
        else:
            shutil.rmtree(self._root, ignore_errors=True)


def end_children() -> None:
    """Kill all descendants of this process and wait for them; each orphan becomes a child and is found again."""
    while pids := descendants(os.getpid()):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        time.sleep(0.02)


def descendants(pid: int) -> list[int]:
    """The descendants of `pid` that still run or have not been waited for."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name, in brackets, may contain any characters; the state and the parent follow it.
            parent = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(path.parent.name))
    found = list(parents.get(pid, []))
    for each in found:
        found += parents.get(each, [])
    return found


def _listed(*command: str) -> list[str]:
    if shutil.which(command[0]) is None:
        return []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [line.split()[0] for line in done.stdout.splitlines() if line.strip()]


if __name__ == "__main__":
    sys.exit(Supervisor(sys.argv[1:]).wait())
