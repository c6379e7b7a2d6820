"""A real single-node Apache Kafka 4.3.1 (KRaft, both roles) on loopback, for tests and the benchmark."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support.java.archives import formatted, kafka_archive, options
from tests.support.java.programs import BRIEF, QUICK
from tests.support.ports import free_ports
from tests.support.tools import KAFKA_LIBS
from tests.support.waiting import WAIT_S

from ottla.model.ids import random_uuid, uuid_text

CLUSTER_ID = "b3R0bGEtcmVhbC1rYWZrYQ"
STARTED = "Kafka Server started"
# JVM options of brokers and tools in tests; the benchmark uses those of Kafka's own start script.
ARCHIVED = options(kafka_archive())
BROKER = (*BRIEF, *ARCHIVED)
LOG_CONFIG = Path(__file__).with_name("log4j2-broker.yaml")

# Settings that one node needs for its internal topics; all others are Kafka's defaults.
SINGLE_NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class RealKafka:
    """A broker on `directory`/data, which is formatted if it is new. Ports are free ones unless given.

    By default the JVM has the options for tests; the benchmark gives those of Kafka's own start script.
    """

    def __init__(
        self,
        directory: Path,
        *,
        properties: Mapping[str, str] | None = None,
        heap: str = "512m",
        jvm_options: Sequence[str] = BROKER,
        ports: tuple[int, int] | None = None,
        plugins: Path | None = None,
    ) -> None:
        """`plugins` is a directory with classes of plug-ins that the properties name."""
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.data_dir = directory / "data"
        self.log_path = directory / "kafka.log"
        self.port, controller_port = ports or free_ports(2)
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.controller = f"127.0.0.1:{controller_port}"
        self._heap = heap
        self._jvm_options = jvm_options
        # The archive of classes wants its own class path in front.
        self._class_path = f"{KAFKA_LIBS}/*" + (f"{os.pathsep}{plugins}" if plugins is not None else "")
        self._process: subprocess.Popen[bytes] | None = None
        self.prefix: Sequence[str] = ()  # a command that runs the broker's command, with its arguments
        self.properties = SINGLE_NODE | {
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.data_dir),
        }
        self.properties |= properties or {}
        self.properties_path = directory / "server.properties"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, timeout_s: float = 2 * WAIT_S) -> "RealKafka":
        self.prepare()
        self.launch()
        self.wait_until_started(timeout_s)
        return self

    def prepare(self) -> None:
        """Write the properties, and format the data directory if it is new."""
        lines = [f"{name}={value}" for name, value in self.properties.items()]
        self.properties_path.write_text("\n".join(lines) + "\n")
        if not (self.data_dir / "meta.properties").exists():
            self._format()

    def launch(self) -> None:
        """Start the process and return at once (the benchmark times what follows)."""
        self.log_path.write_bytes(b"")
        with (self.directory / "kafka.err").open("ab") as err:
            self._process = subprocess.Popen(
                [
                    *self.prefix,
                    *self._java(f"-Xmx{self._heap}", *self._jvm_options),
                    "kafka.Kafka",
                    str(self.properties_path),
                ],
                stdin=subprocess.DEVNULL,
                stdout=err,
                stderr=err,
                env=os.environ | {"LC_ALL": "C.UTF-8"},
            )

    def stop(self, timeout_s: float = WAIT_S) -> None:
        """Shut down cleanly; a broker that does not stop in time is killed and reported."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"Kafka did not stop within {timeout_s} s:\n{self._tail()}") from None
        self._process = None

    def kill(self) -> None:
        """Kill the broker with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _java(self, *options: str) -> list[str]:
        logging = (f"-Dlog4j2.configurationFile={LOG_CONFIG}", f"-Dottla.kafka.log={self.log_path}")
        return ["java", *options, *logging, "-cp", self._class_path]

    def format_like(self, formatted: Path) -> None:
        """Make the data directory a copy of one that Kafka's tool formatted, with ids of its own."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        shutil.copy(formatted / "bootstrap.checkpoint", self.data_dir)
        own = {"node.id": self.properties["node.id"], "directory.id": uuid_text(random_uuid(random.Random()))}
        pairs = (line.partition("=") for line in (formatted / "meta.properties").read_text().splitlines())
        lines = [f"{name}={own.get(name, value)}" for name, _, value in pairs]
        (self.data_dir / "meta.properties").write_text("\n".join(lines) + "\n")

    def _format(self) -> None:
        is_plain = self.properties["log.dirs"] == str(self.data_dir) and "controller.quorum.voters" in self.properties
        if is_plain and formatted().exists():
            self.format_like(formatted())
            return
        self.data_dir.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [
                *self._java(*QUICK, *ARCHIVED),
                "kafka.tools.StorageTool",
                "format",
                "-t",
                CLUSTER_ID,
                "-c",
                str(self.properties_path),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"StorageTool format failed:\n{done.stdout}{done.stderr}"

    def wait_until_started(self, timeout_s: float) -> None:
        assert self._process is not None
        deadline = time.monotonic() + timeout_s
        while STARTED not in self.log_path.read_text(errors="replace"):
            if self._process.poll() is not None:
                self._process = None
                raise AssertionError(f"Kafka ended while starting:\n{self._tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"Kafka was not ready within {timeout_s} s:\n{self._tail()}")
            time.sleep(0.1)

    def _tail(self) -> str:
        return (self.directory / "kafka.err").read_text()[-2000:] + self.log_path.read_text(errors="replace")[-4000:]
