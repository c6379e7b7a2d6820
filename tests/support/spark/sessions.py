"""Real Sparks for tests: one session per test process, separate drivers, a standalone cluster, a Connect server.

Everything listens on loopback and is small: two cores are shared with the brokers under test. A JVM costs seconds, so
tests use the `spark` fixture (tests/spark/conftest.py) unless they must kill the driver.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.ports import free_ports
from tests.support.tools import SPARK_LIBS
from tests.support.waiting import WAIT_S

# Settings of every Spark: no UI, no progress bars in the output, few shuffle partitions, RocksDB for keyed state.
QUIET: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
}
DELTA: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def jars(*names: str) -> str:
    """The jars of scripts/pom-spark.xml whose file names begin with one of `names` (by default
    all), for `spark.jars`.
    """
    found = sorted(path for path in SPARK_LIBS.glob("*.jar") if not names or path.name.startswith(names))
    return ",".join(map(str, found))


def executors() -> dict[str, str]:
    """Settings that give executors in separate processes the JVM options of drivers (archives.py)."""
    return {"spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", "")}


def environment() -> dict[str, str]:
    """Environment variables: workers run this Python, and everything uses only the loopback interface."""
    return {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "PYTHONUNBUFFERED": "1",
    }


def start_session(master: str = "local[2]", *, name: str = "ottla-tests", **settings: str) -> Any:
    """A classic session in this process, with the connector's, spark-avro's and Delta's jars."""
    os.environ.update(environment())
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName(name)
    for key, value in {**QUIET, **DELTA, **executors(), "spark.jars": jars(), **settings}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def stop_session(session: Any, timeout_s: float = WAIT_S) -> None:
    """Stop Spark and its JVM, so that the next session of this process gets a new JVM."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    session.stop()
    if gateway is not None:
        process = getattr(gateway, "proc", None)
        gateway.shutdown()
        if process is not None:
            process.stdin.close()
            process.wait(timeout_s)
        SparkContext._gateway = None
        SparkContext._jvm = None


class Process:
    """A program that was started here, with its output in a file; it is ended by its process id,
    with all its children.
    """

    def __init__(self, command: Sequence[str], log_path: Path, env: Mapping[str, str] | None = None) -> None:
        self.log_path = log_path
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**environment(), **(env or {})},
                start_new_session=True,  # so that its JVMs and Python workers can be ended with it
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        return self.log_path.read_text(errors="replace")

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, timeout_s: float = 2 * WAIT_S) -> int:
        """Its exit code. Raises, with the end of its output, if it does not end in time."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still running after {timeout_s} s:\n{self.output[-4000:]}") from None

    def wait_for(self, text: str, timeout_s: float = 2 * WAIT_S) -> None:
        """Wait until its output contains `text`."""
        deadline = time.monotonic() + timeout_s
        while text not in self.output:
            if self.poll() is not None and text not in self.output:
                raise AssertionError(f"ended with {self.poll()} before saying {text!r}:\n{self.output[-4000:]}")
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"did not say {text!r} within {timeout_s} s:\n{self.output[-4000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """Send SIGKILL to the program and everything it started."""
        self._signal(signal.SIGKILL)
        self._process.wait(30)

    def stop(self) -> None:
        """Send SIGTERM, and SIGKILL to processes that do not end."""
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(15)
        self.kill()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


def driver(script: Path, *arguments: str, log_path: Path, env: Mapping[str, str] | None = None) -> Process:
    """A separate driver: a Python script that makes its own session (for example with `start_session`)."""
    return Process([sys.executable, str(script), *arguments], log_path, env)


class StandaloneCluster:
    """A standalone master with workers of one core each. Each worker has a loopback address of its own, so that Spark
    takes it for another host and runs speculative attempts there.
    """

    def __init__(self, directory: Path, workers: int = 2) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        (port, ui) = free_ports(2)
        self.master = f"spark://127.0.0.1:{port}"
        self._processes = [
            self._start("master.Master", "master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(ui))
        ]
        _wait_for_port(port, self._processes[0])
        for number in range(workers):
            (port, ui) = free_ports(2)
            options = ["--host", f"127.0.0.{number + 1}", "--port", str(port), "--webui-port", str(ui), "--cores", "1"]
            options += ["--memory", "1g", "--work-dir", str(directory / f"worker-{number}")]
            self._processes.append(self._start("worker.Worker", f"worker-{number}", *options, self.master))
        for process in self._processes[1:]:
            process.wait_for("Successfully registered with master")

    def _start(self, main_class: str, name: str, *arguments: str) -> Process:
        command = [_spark_class(), f"org.apache.spark.deploy.{main_class}", *arguments]
        env = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_NO_DAEMONIZE": "1"}
        return Process(command, self._directory / f"{name}.log", env)

    def close(self) -> None:
        for process in reversed(self._processes):
            process.kill()


class ConnectServer:
    """A Spark Connect server; `remote` is its address for a client's builder."""

    def __init__(self, directory: Path, master: str = "local[2]", **settings: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        (port,) = free_ports(1)
        self.remote = f"sc://127.0.0.1:{port}"
        wanted = {
            **QUIET,
            **DELTA,
            "spark.jars": jars(),
            "spark.connect.grpc.binding.port": str(port),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            **settings,
        }
        options = [part for key, value in wanted.items() for part in ("--conf", f"{key}={value}")]
        main = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--name", "ottla-connect"]
        command = [str(Path(_spark_class()).with_name("spark-submit")), "--master", master, *main, *options]
        self._process = Process([*command, "spark-internal"], directory / "connect.log")
        _wait_for_port(port, self._process)

    @property
    def output(self) -> str:
        return self._process.output

    def close(self) -> None:
        self._process.kill()


def _spark_class() -> str:
    import pyspark

    return str(Path(pyspark.__file__).parent / "bin" / "spark-class")


def _wait_for_port(port: int, process: Process, timeout_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise AssertionError(f"nothing listens at {port}:\n{process.output[-4000:]}") from None
            time.sleep(0.1)
