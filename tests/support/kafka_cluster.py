"""A real Apache Kafka 4.3.1 of several nodes (KRaft, each broker and controller) on loopback, for tests and benchmarks.

Starting it takes some ten seconds and a quarter of a gigabyte per node: share one per module.
"""

import shutil
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

from tests.support.java import QUICK
from tests.support.kafka import SINGLE_NODE, RealKafka
from tests.support.ports import free_ports

# Kafka's defaults for internal topics are meant for three brokers: what a single node needs is taken back.
_FOR_ONE = [name for name in SINGLE_NODE if name.endswith((".replication.factor", ".min.isr"))]


class RealKafkaCluster:
    """`count` nodes with ids from 1 on; `racks` by node id. `kill`, `stop` and `restart` take a node id."""

    def __init__(
        self,
        directory: Path,
        count: int = 3,
        *,
        properties: Mapping[str, str] | None = None,
        racks: Mapping[int, str] | None = None,
        heap: str = "256m",
    ) -> None:
        ports = free_ports(2 * count)
        pairs = {node_id: (ports[2 * node_id - 2], ports[2 * node_id - 1]) for node_id in range(1, count + 1)}
        voters = ",".join(f"{node_id}@127.0.0.1:{controller}" for node_id, (_, controller) in pairs.items())
        self.nodes: dict[int, RealKafka] = {}
        for node_id, pair in pairs.items():
            own = {"node.id": str(node_id), "controller.quorum.voters": voters}
            if racks and node_id in racks:
                own["broker.rack"] = racks[node_id]
            node = RealKafka(
                directory / f"node-{node_id}",
                properties=own | dict(properties or {}),
                heap=heap,
                jvm_options=[each for each in QUICK if not each.startswith("-Xmx")],
                ports=pair,
            )
            for name in _FOR_ONE:
                if name not in (properties or {}):
                    del node.properties[name]
            self.nodes[node_id] = node
        self.bootstrap = ",".join(node.bootstrap for node in self.nodes.values())

    def start(self) -> "RealKafkaCluster":
        self._format()
        try:
            for node in self.nodes.values():
                node.launch()
            for node in self.nodes.values():
                node.wait_until_started(120)
        except BaseException:
            self.kill_all()
            raise
        return self

    def _format(self) -> None:
        """One run of the tool; the others get a copy of the directory under their own ids."""
        first, *others = self.nodes.values()
        first.prepare()
        meta = (first.data_dir / "meta.properties").read_text().splitlines()
        for node in others:
            node.data_dir.mkdir(parents=True, exist_ok=True)
            if not (node.data_dir / "meta.properties").exists():
                shutil.copy(first.data_dir / "bootstrap.checkpoint", node.data_dir)
                own = {"node.id": node.properties["node.id"], "directory.id": _directory_id()}
                lines = [f"{name}={own.get(name, value)}" for name, _, value in (line.partition("=") for line in meta)]
                (node.data_dir / "meta.properties").write_text("\n".join(lines) + "\n")
            node.prepare()

    def kill(self, node_id: int) -> None:
        """kill -9."""
        self.nodes[node_id].kill()

    def stop(self, node_id: int) -> None:
        """A controlled shutdown."""
        self.nodes[node_id].stop()

    def restart(self, node_id: int) -> None:
        """Start a node that was stopped or killed."""
        self.nodes[node_id].launch()
        self.nodes[node_id].wait_until_started(120)

    def kill_all(self) -> None:
        """The end: nobody needs the data, and the last two of three would wait for a quorum if they were asked."""
        for node in self.nodes.values():
            node.kill()

    def __enter__(self) -> "RealKafkaCluster":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill_all()


def _directory_id() -> str:
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
