"""The two clusters under test, with the interface of a broker for single-broker workloads: an address and processes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.support.processes.clusters import KafkaCluster, OttlaCluster, ProcessCluster

NODES = 3
REPLICATION_FACTOR = 3


class Three:
    """Three nodes that are brokers and controllers, with default settings except those that replication needs."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.name = kind
        self.cluster: ProcessCluster
        if kind == "kafka":
            # 1 GiB of heap is what Kafka's own start script gives a broker.
            jvm = ("-Xms1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
            self.cluster = KafkaCluster(directory, heap="1g", jvm_options=jvm)
        else:
            self.cluster = OttlaCluster(directory)
        self.bootstrap = self.cluster.bootstrap

    @property
    def pids(self) -> Sequence[int]:
        return self.cluster.pids

    def format(self) -> None:
        """Do nothing: formatting is part of the first launch."""

    def launch(self) -> None:
        self.cluster.start()

    def stop(self) -> None:
        self.cluster.stop()
