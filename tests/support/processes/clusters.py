"""Clusters of real processes on loopback, ours and Kafka's, with one interface: start, kill, pause, resume, stop one.

All nodes of a cluster have the same properties, which both Ottla and Kafka accept, so the same tests run with both.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from tests.support.ports import free_ports
from tests.support.processes.kafka import BROKER, CLUSTER_ID, RealKafka
from tests.support.processes.node import OttlaNode
from tests.support.requests.raw import Closed, RawConnection
from tests.support.waiting import WAIT_S, until

from ottla.cluster.store import DOUBT
from ottla.wire.message import Request
from ottla.wire.messages.quorum.describe_quorum import DescribeQuorumRequest
from ottla.wire.messages.topics.metadata import MetadataRequest

METADATA_VERSION, QUORUM_VERSION = 12, 2

# Usual settings of a replicated cluster of three in production; all others have their defaults.
REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
}


class Place(Protocol):
    """Where nodes run and how they reach each other, if not all on loopback (`tests/chaos/links.py`)."""

    def address(self, id: int) -> str: ...
    def prefix(self, id: int) -> list[str]: ...
    def adapted(self, id: int, settings: Mapping[str, str]) -> dict[str, str]: ...


class Process(Protocol):
    prefix: Sequence[str]

    @property
    def pid(self) -> int: ...
    def start(self, timeout_s: float = ...) -> object: ...
    def stop(self, timeout_s: float = ...) -> None: ...
    def kill(self) -> None: ...


class ProcessCluster:
    """`size` nodes that are brokers and controllers; node ids are 1, 2, …; `racks` by id."""

    kind = ""

    def __init__(
        self,
        directory: Path,
        *,
        size: int = 3,
        properties: Mapping[str, str] | None = None,
        place: Place | None = None,
        racks: Mapping[int, str] | None = None,
    ) -> None:
        self.directory = directory
        self._racks = {} if racks is None else racks
        self._place = place
        self.ids = list(range(1, size + 1))
        ports = free_ports(2 * size)
        self.ports = dict(zip(self.ids, ports[:size], strict=True))
        self.controller_ports = dict(zip(self.ids, ports[size:], strict=True))
        self.properties = REPLICATED | dict(properties or {})
        self.nodes: dict[int, Process] = {}
        self.running: set[int] = set()
        for id in self.ids:
            self.nodes[id] = self.make(id, directory / f"node-{id}")
            if place is not None:
                self.nodes[id].prefix = place.prefix(id)

    def make(self, id: int, directory: Path) -> Process:
        raise NotImplementedError

    def settings_of(self, id: int, directory: Path) -> dict[str, str]:
        voters = ",".join(f"{each}@{self.controller_address(each)}" for each in self.ids)
        settings = self.properties | {
            "process.roles": "broker,controller",
            "node.id": str(id),
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{self.address(id)},CONTROLLER://{self.controller_address(id)}",
            "advertised.listeners": f"PLAINTEXT://{self.address(id)}",
            "log.dirs": str(directory / "data"),
            **({"broker.rack": self._racks[id]} if id in self._racks else {}),
        }
        return settings if self._place is None else self._place.adapted(id, settings)

    def _host(self, id: int) -> str:
        return "127.0.0.1" if self._place is None else self._place.address(id)

    def address(self, id: int) -> str:
        """The address of this node for clients and other brokers."""
        return f"{self._host(id)}:{self.ports[id]}"

    def controller_address(self, id: int) -> str:
        return f"{self._host(id)}:{self.controller_ports[id]}"

    @property
    def bootstrap(self) -> str:
        return ",".join(map(self.address, self.ids))

    @property
    def controllers(self) -> str:
        return ",".join(map(self.controller_address, self.ids))

    @property
    def pids(self) -> list[int]:
        return [self.nodes[id].pid for id in self.ids if id in self.running]

    def started(self) -> dict[int, int]:
        """Id → pid of every node that has a process, ready or not."""
        found = {}
        for id, node in self.nodes.items():
            with suppress(AssertionError):  # it has no process
                found[id] = node.pid
        return found

    def data_directory(self, id: int) -> Path:
        return self.directory / f"node-{id}" / "data"

    def is_alive(self, id: int) -> bool:
        """Whether the node's process runs; False if it was started and has ended by itself."""
        status = Path(f"/proc/{self.nodes[id].pid}/status")
        return status.exists() and "State:\tZ" not in status.read_text()

    # --- actions

    def start(self, timeout_s: float = 2 * WAIT_S) -> ProcessCluster:
        """Start all nodes at once, because none is ready before a majority runs.

        Returns when all nodes vote. An Ottla node that formatted its own directory, and reached the others too late,
        does not vote for some seconds (ADR 0022), and a test that killed another node meanwhile would have no majority.
        """
        with ThreadPoolExecutor(len(self.ids)) as pool:
            list(pool.map(lambda id: self.nodes[id].start(timeout_s), self.ids))
        self.running = set(self.ids)
        until(lambda: [id for id in self.ids if (self.data_directory(id) / DOUBT).exists()], lambda ids: not ids)
        return self

    def start_node(self, id: int, timeout_s: float = 2 * WAIT_S) -> None:
        self.nodes[id].start(timeout_s)
        self.running.add(id)

    def stop_node(self, id: int, timeout_s: float = WAIT_S) -> None:
        """Stop a node cleanly: it hands its leaderships over."""
        self.running.discard(id)
        self.nodes[id].stop(timeout_s)

    def kill(self, id: int) -> None:
        self.running.discard(id)
        self.nodes[id].kill()

    def pause(self, id: int) -> None:
        os.kill(self.nodes[id].pid, signal.SIGSTOP)

    def resume(self, id: int) -> None:
        os.kill(self.nodes[id].pid, signal.SIGCONT)

    def stop(self) -> None:
        """Stop all nodes at once, at the end: the last nodes could not hand over their leaderships anyway."""
        for node in self.nodes.values():
            node.kill()
        self.running.clear()

    # --- state

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """The leader, as a running broker reports it; -1 if there is none now."""
        request = MetadataRequest(topics=[MetadataRequest.Topic(name=topic)], allow_auto_topic_creation=False)
        answer = self.ask(request, METADATA_VERSION)
        for found in answer.topics[0].partitions if not answer.topics[0].error_code else ():
            if found.partition_index == partition:
                return int(found.leader_id)
        return -1

    def controller(self) -> int:
        """The active controller."""
        topic = DescribeQuorumRequest.TopicData(
            topic_name="__cluster_metadata",
            partitions=[DescribeQuorumRequest.TopicData.PartitionData(partition_index=0)],
        )
        answer = self.ask(DescribeQuorumRequest(topics=[topic]), QUORUM_VERSION)
        return int(answer.topics[0].partitions[0].leader_id)

    def connect(self, id: int, timeout_s: float) -> RawConnection:
        """A connection to a broker that may ask everything."""
        return RawConnection(self.address(id), timeout_s=timeout_s)

    def ask(self, request: Request, version: int, *, timeout_s: float = 20) -> Any:
        """The response of the first running broker that gives one."""
        failure: Exception | None = None
        for id in sorted(self.running):
            try:
                with self.connect(id, timeout_s) as connection:
                    return connection.call(request, version)
            except (OSError, Closed) as error:
                failure = error
        raise AssertionError(f"no broker of {self.kind} answers {type(request).__name__}: {failure!r}")


class OttlaCluster(ProcessCluster):
    kind = "ottla"

    def make(self, id: int, directory: Path) -> Process:
        return ottla_node(directory, self.settings_of(id, directory), self.ports[id])


def ottla_node(directory: Path, settings: Mapping[str, str], port: int) -> OttlaNode:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return OttlaNode.on_file(path, directory / "data", port)


class KafkaCluster(ProcessCluster):
    kind = "kafka"

    def __init__(
        self,
        directory: Path,
        *,
        size: int = 3,
        properties: Mapping[str, str] | None = None,
        place: Place | None = None,
        racks: Mapping[int, str] | None = None,
        heap: str = "384m",
        jvm_options: Sequence[str] = BROKER,
    ) -> None:
        self._heap = heap
        self._jvm_options = jvm_options
        super().__init__(directory, size=size, properties=properties, place=place, racks=racks)

    def make(self, id: int, directory: Path) -> Process:
        return RealKafka(
            directory,
            properties=self.settings_of(id, directory),
            heap=self._heap,
            jvm_options=self._jvm_options,
            ports=(self.ports[id], self.controller_ports[id]),
        )

    def start(self, timeout_s: float = 2 * WAIT_S) -> ProcessCluster:
        self._format()
        return super().start(timeout_s)

    def _format(self) -> None:
        """Format the directories with at most one run of Kafka's tool."""
        first, *others = (cast(RealKafka, each) for each in self.nodes.values())
        first.prepare()
        for node in others:
            if not (node.data_dir / "meta.properties").exists():
                node.format_like(first.data_dir)


class Member(NamedTuple):
    """One node of a mixed cluster."""

    kind: str  # "ottla" or "kafka"
    roles: str  # process.roles


class MixedCluster(ProcessCluster):
    """Nodes of both kinds in one cluster, each with its own roles; ids are 1, 2, … in their order."""

    kind = "mixed"

    def __init__(self, directory: Path, members: Sequence[Member], *, properties: Mapping[str, str]) -> None:
        self._members = dict(enumerate(members, 1))
        super().__init__(directory, size=len(members), properties=properties)

    @property
    def brokers(self) -> list[int]:
        return [id for id, member in self._members.items() if "broker" in member.roles]

    @property
    def bootstrap(self) -> str:
        return ",".join(map(self.address, self.brokers))

    def start(self, timeout_s: float = 2 * WAIT_S) -> ProcessCluster:
        super().start(timeout_s)
        self.running &= set(self.brokers)  # only these answer clients
        return self

    def settings_of(self, id: int, directory: Path) -> dict[str, str]:
        settings = super().settings_of(id, directory)
        controllers = [each for each, member in self._members.items() if "controller" in member.roles]
        settings["process.roles"] = self._members[id].roles
        settings["controller.quorum.voters"] = ",".join(
            f"{each}@{self.controller_address(each)}" for each in controllers
        )
        if id not in controllers:
            settings["listeners"] = f"PLAINTEXT://{self.address(id)}"
        elif id not in self.brokers:
            settings["listeners"] = f"CONTROLLER://{self.controller_address(id)}"
            del settings["advertised.listeners"]
        return settings

    def make(self, id: int, directory: Path) -> Process:
        settings = self.settings_of(id, directory)
        if self._members[id].kind == "ottla":
            return ottla_node(directory, settings | {"ottla.cluster.id": CLUSTER_ID}, self.ports[id])
        ports = self.ports[id], self.controller_ports[id]
        node = RealKafka(directory, properties=settings, heap="256m", ports=ports)
        if "advertised.listeners" not in settings:
            del node.properties["advertised.listeners"]
        return node


@contextmanager
def running(cluster: ProcessCluster) -> Iterator[ProcessCluster]:
    try:
        yield cluster.start()
    finally:
        cluster.stop()
