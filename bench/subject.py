"""The two brokers under test, seen from outside: processes with an address, their CPU time and their memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tests.support.certificates import Authority
from tests.support.ports import free_ports
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import AS_INSTALLED

_TICKS = os.sysconf("SC_CLK_TCK")


class Subject(Protocol):
    name: str
    bootstrap: str
    tls: TlsPort | None

    @property
    def pids(self) -> Sequence[int]: ...
    def format(self) -> None: ...
    def launch(self) -> None: ...
    def stop(self) -> None: ...


class TlsPort:
    """A second listener of a broker, with TLS: its address, and the settings of the broker and of clients."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        (port,) = free_ports(1)
        self.bootstrap = f"127.0.0.1:{port}"
        authority = Authority()
        self.trusted = authority.write(directory / "ca.pem")
        store = authority.server().write(directory, "broker")
        self.broker_settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}
        self.client_settings = {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
        }


class Kafka:
    name = "kafka"

    def __init__(self, directory: Path, *, with_tls: bool = False) -> None:
        self.tls = TlsPort(directory / "tls") if with_tls else None
        # 1 GiB of heap is what Kafka's own start script gives a broker.
        self._kafka = RealKafka(directory, heap="1g", jvm_options=("-Xms1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"))
        self.bootstrap = self._kafka.bootstrap
        if self.tls is not None:
            for setting in ("listeners", "advertised.listeners"):
                self._kafka.properties[setting] += f",SSL://{self.tls.bootstrap}"
            self._kafka.properties["listener.security.protocol.map"] += ",SSL:SSL"
            self._kafka.properties |= self.tls.broker_settings

    @property
    def pids(self) -> Sequence[int]:
        return [self._kafka.pid]

    def format(self) -> None:
        self._kafka.prepare()

    def launch(self) -> None:
        self._kafka.launch()

    def stop(self) -> None:
        self._kafka.stop(timeout_s=180)


class Ottla:
    name = "ottla"

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None, *, with_tls: bool = False) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._more_settings = settings or {}
        (port,) = free_ports(1)
        self._directory = directory
        self.bootstrap = f"127.0.0.1:{port}"
        self.tls = TlsPort(directory / "tls") if with_tls else None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pids(self) -> Sequence[int]:
        assert self._process is not None
        return [self._process.pid]

    def format(self) -> None:
        """The node formats its directory by itself."""

    def launch(self) -> None:
        with (self._directory / "ottla.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command("ottla"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | AS_INSTALLED,
            )

    def _command(self, module: str, *first: str) -> list[str]:
        """The command that starts the node by a module that takes the words of `ottla`, behind its own."""
        data = ["--data", str(self._directory / "data")]
        settings = (word for name, value in self._settings().items() for word in ("--set", f"{name}={value}"))
        return [sys.executable, "-m", module, *first, "start", *data, *settings]

    def _settings(self) -> dict[str, str]:
        listeners = f"PLAINTEXT://{self.bootstrap}"
        secured = {}
        if self.tls is not None:
            listeners += f",SSL://{self.tls.bootstrap}"
            secured = self.tls.broker_settings
        return secured | {
            "listeners": listeners,
            "group.initial.rebalance.delay.ms": "0",  # RealKafka has it, too
            **self._more_settings,
        }

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(60)
            self._process = None


def cpu_s(pids: Iterable[int]) -> float:
    """User and system time of processes so far."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICKS


def run_time_s(pids: Iterable[int]) -> float:
    """The time for which threads of processes, as they are now, were on a CPU; finer than `cpu_s`."""
    tasks = (task for pid in pids for task in Path(f"/proc/{pid}/task").iterdir())
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def resident_mib(pids: Iterable[int]) -> float:
    """The resident memory of all processes; shared memory is counted for each."""
    return sum(_resident_kib(pid) for pid in pids) / 1024


def _resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError(f"no VmRSS for {pid}")


class Cost:
    """`with Cost(subject) as cost:` measures the CPU time that the broker, or the whole cluster, used meanwhile."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.cpu_s = 0.0
        self.wall_s = 0.0

    def __enter__(self) -> Cost:
        self._cpu = cpu_s(self._subject.pids)
        self._wall = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.cpu_s = cpu_s(self._subject.pids) - self._cpu
        self.wall_s = time.perf_counter() - self._wall
