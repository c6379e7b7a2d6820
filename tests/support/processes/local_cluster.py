"""`ottla up --brokers N` as a process: the local cluster as a user starts it."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.support.ports import free_ports
from tests.support.waiting import WAIT_S

from ottla.cli.nodes.local_cluster import LocalNode, found_nodes

READY = "Ottla is up at "
NOTHING_BESIDE = ("--registry", "off", "--console", "off")


class LocalCluster:
    """Starts a local cluster on `directory`, a new or an existing one. Lines of the process are
    collected as they come.
    """

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.directory = directory
        self.lines: list[str] = []
        self._coming: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        # An existing cluster keeps its addresses. A new one gets its ports here: those from the kernel could be taken
        # by another process before the nodes listen.
        listen = "127.0.0.1:0" if found_nodes(directory) else f"127.0.0.1:{free_ports(1)[0]}"
        words = ["up", "--data", str(directory), "--listen", listen, *NOTHING_BESIDE, *arguments]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ottla", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1", "NO_COLOR": "1"},
        )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        self.bootstrap = self.wait_for(READY).partition(READY)[2]

    @property
    def pid(self) -> int:
        return self._process.pid

    def nodes(self) -> dict[int, LocalNode]:
        return {each.node_id: each for each in found_nodes(self.directory)}

    def node_pid(self, node_id: int) -> int | None:
        """The process id of one node; None if it does not run."""
        wanted = f"node-{node_id}.properties"
        for pid in children_of(self.pid):
            words = _words(pid)
            if any(each.endswith(wanted) for each in words):
                return pid
        return None

    def wait_for(self, text: str, timeout_s: float = WAIT_S) -> str:
        """The next line that contains this text."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            try:
                line = self._coming.get(timeout=max(0.0, deadline_s - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                self.kill()
                raise AssertionError(f"no {text!r} came:\n" + "\n".join(self.lines[-40:]))
            if text in line:
                return line

    def stop(self, timeout_s: float = WAIT_S) -> int:
        """Stop the cluster by Ctrl-C; its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("it did not stop:\n" + "\n".join(self.lines[-40:])) from None
        self._reading.join()
        return code

    def kill(self) -> None:
        """Kill the process with SIGKILL: the nodes must end by themselves."""
        self._process.kill()
        self._process.wait()
        self._reading.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self.lines.append(line.rstrip())
                self._coming.put(line.rstrip())
        self._coming.put(None)


def children_of(pid: int) -> list[int]:
    """The processes that the threads of a process have started."""
    found = (each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(child) for text in found for child in text.split()]


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def is_alive(pid: int) -> bool:
    """Whether a process runs (one that has ended but was not waited for does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
