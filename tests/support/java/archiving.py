"""Make the missing archives of `archives`: `python -m tests.support.java.archiving`, which `make test` runs first.

Each archive is made by a training run, in which a JVM does some of everything that tests do, and is written atomically
when that JVM ends. A training run that fails prints the reason, and tests run without the archive, only slower.
"""

import fcntl
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.support.java.archives import DIRECTORY, SILENT, formatted, kafka_archive, spark_archive, spark_environment
from tests.support.java.programs import BRIEF
from tests.support.ports import free_ports
from tests.support.processes.kafka import RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.spark.sessions import Process
from tests.support.tools import ROOT

from ottla.client.blocking.blocking import Blocking

_SPARK_S = 600
_SPARK_TRAINING = ROOT / "tests" / "spark" / "drivers" / "training.py"


def main() -> None:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    with (DIRECTORY / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test runs may begin at the same time
        for archive, train in ((spark_archive(), _train_spark), (kafka_archive(), _train_kafka)):
            if not archive.exists():
                _make(archive, train)


def _make(archive: Path, train: Callable[[Path, str], None]) -> None:
    print(f"tests: archiving classes for {archive.stem}", flush=True)
    new = archive.with_suffix(".new")
    with tempfile.TemporaryDirectory() as directory:
        try:
            train(Path(directory), f"-XX:ArchiveClassesAtExit={new}")
            new.replace(archive)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            print(f"tests: no archive, so the tests take longer: {error}", flush=True)


def _train_kafka(directory: Path, option: str) -> None:
    kafka = RealKafka(directory, jvm_options=(*BRIEF, option, SILENT))
    kafka.prepare()
    shutil.rmtree(formatted(), ignore_errors=True)
    shutil.copytree(kafka.data_dir, formatted())
    kafka.start()
    try:
        with Blocking(kafka.bootstrap) as client:
            client.admin.topics.create("training", 2)
            client.send_all("training", [(b"key", b"value")] * 100)
            assert len(list(client.read("training"))) == 100
        kafka.stop(120)
    finally:
        kafka.kill()


def _train_spark(directory: Path, option: str) -> None:
    node = OttlaNode(directory / "node").start()
    try:
        command = [sys.executable, str(_SPARK_TRAINING), node.bootstrap, str(directory), str(free_ports(1)[0])]
        env = {**spark_environment(option, SILENT), "PYTHONPATH": str(ROOT)}
        training = Process(command, directory / "log", env)
        try:
            assert training.wait(_SPARK_S) == 0, training.output[-3000:]
        finally:
            training.kill()
    finally:
        node.stop()


if __name__ == "__main__":
    main()
