"""An Ottla node as its own process, started the way a user starts it."""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.support.ports import free_ports
from tests.support.processes.kafka import RealKafka
from tests.support.waiting import WAIT_S

# An installed package is compiled. A start that compiles every module itself takes more than twice the CPU, so byte
# code is used whatever the environment says.
AS_INSTALLED = {
    "PYTHONDONTWRITEBYTECODE": "",
    "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "ottla-byte-code"),
}


class OttlaNode:
    """`ottla start` on `directory`/data; from a server.properties file if `properties` are given, else from options."""

    def __init__(self, directory: Path, *, properties: Mapping[str, str] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.data_dir = directory / "data"
        self.port, controller_port = free_ports(2)
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.controller = f"127.0.0.1:{controller_port}"  # if it is started from properties
        self.ready_line = ""
        self.prefix: Sequence[str] = ()  # a command that runs the node's command, with its arguments
        self._process: subprocess.Popen[bytes] | None = None
        self._arguments = ["--data", str(self.data_dir), "--listen", self.bootstrap]
        if properties is not None:
            settings = dict(properties) | {
                "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
                "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
                "log.dirs": str(self.data_dir),
            }
            path = directory / "server.properties"
            path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
            self._arguments = ["--config", str(path)]

    @classmethod
    def in_place_of(cls, kafka: RealKafka) -> "OttlaNode":
        """A node on the property file, directory and ports of a stopped Kafka."""
        node = cls(kafka.directory)
        node.data_dir, node.port, node.bootstrap = kafka.data_dir, kafka.port, kafka.bootstrap
        node._arguments = ["--config", str(kafka.properties_path)]
        return node

    @classmethod
    def on_file(cls, properties_path: Path, data_dir: Path, port: int) -> "OttlaNode":
        """A node of a cluster, with an existing property file."""
        node = cls(properties_path.parent)
        node.data_dir, node.port, node.bootstrap = data_dir, port, f"127.0.0.1:{port}"
        node._arguments = ["--config", str(properties_path)]
        return node

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, timeout_s: float = WAIT_S) -> "OttlaNode":
        with (self.directory / "ottla.err").open("ab") as err:
            self._process = subprocess.Popen(
                [*self.prefix, sys.executable, "-m", "ottla", "start", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=err,
                env=os.environ | AS_INSTALLED | {"PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "PYTHONFAULTHANDLER": "1"},
            )
        try:
            self._wait_until_ready(timeout_s)
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self, timeout_s: float = WAIT_S) -> None:
        """Send SIGTERM; the node must end in time with exit code 0."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._abort()
            self.kill()
            raise AssertionError(f"the node did not stop within {timeout_s} s:\n{self.errors()}") from None
        self._forget()
        assert code in (0, -signal.SIGTERM), f"the node ended with {code}:\n{self.errors()}"

    def kill(self) -> None:
        """Kill the node with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget()

    def _abort(self) -> None:
        """End a node that hangs, so that it prints the stacks of its threads on standard error."""
        assert self._process is not None
        self._process.send_signal(signal.SIGABRT)
        with suppress(subprocess.TimeoutExpired):  # a stopped process does not handle signals
            self._process.wait(5)

    def errors(self) -> str:
        return (self.directory / "ottla.err").read_text(errors="replace")[-6000:]

    def _forget(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        self._process.stdout.close()
        self._process = None

    def _wait_until_ready(self, timeout_s: float) -> None:
        """Read standard output up to the line `ready`; lines before it may be warnings."""
        assert self._process is not None and self._process.stdout is not None
        stdout = self._process.stdout.fileno()
        deadline = time.monotonic() + timeout_s
        seen = b""
        while True:
            for line in seen.decode(errors="replace").splitlines():
                if line.startswith("ready"):
                    self.ready_line = line
                    return
            readable, _, _ = select.select([stdout], [], [], max(0, deadline - time.monotonic()))
            chunk = os.read(stdout, 65536) if readable else b""
            if not chunk:
                if readable:
                    failure = f"the node ended with {self._process.wait()}"
                else:
                    self._abort()
                    failure = f"the node was not ready within {timeout_s} s"
                raise AssertionError(f"{failure}:\n{seen.decode(errors='replace')}\n{self.errors()}")
            seen += chunk
