"""Three measured nodes that are one cluster, in one process."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.stalls.measuring.measure import Callback, MeasuredNode, recorded, without_collections
from tests.support.ports import free_ports
from tests.support.waiting import WAIT_S

COUNT = 3


class MeasuredCluster:
    def __init__(self, nodes: list[MeasuredNode]) -> None:
        self.nodes = nodes

    @property
    def controller(self) -> MeasuredNode:
        """The node that decides."""
        return next(each for each in self.nodes if each.node.member.controller.active)

    @property
    def other(self) -> MeasuredNode:
        """One that only follows."""
        return next(each for each in self.nodes if each is not self.controller)

    def cost(self, work: Callable[[], object]) -> Callback:
        """The dearest callback of any node while `work` is done and until all nodes know of it."""
        recording = self.nodes[0].recording
        self.settle()
        self.controller.call(recording.clear)
        with without_collections():
            work()
            self.settle()
        return recording.worst()

    def settle(self) -> None:
        """Waits until every node has applied what the controller has written, and followed it."""
        end = self.controller.call(lambda: self.controller.node.member.quorum.end_offset)
        deadline_s = time.monotonic() + WAIT_S
        while not all(each.call(lambda each=each: _knows(each, end)) for each in self.nodes):
            assert time.monotonic() < deadline_s, "not all nodes know of it"
            time.sleep(0.02)


def _knows(node: MeasuredNode, offset: int) -> bool:
    return node.node.metadata.end_offset >= offset


@contextlib.contextmanager
def measured_cluster(root: Path) -> Iterator[MeasuredCluster]:
    ports = free_ports(2 * COUNT)
    voters = ",".join(f"{number + 1}@127.0.0.1:{ports[COUNT + number]}" for number in range(COUNT))
    patience = {  # many nodes share one interpreter here, and perhaps a busy machine
        "controller.quorum.fetch.timeout.ms": 60_000,
        "controller.quorum.election.timeout.ms": 5_000,
        "controller.quorum.request.timeout.ms": 60_000,
        "broker.session.timeout.ms": 60_000,
    }
    nodes = [
        MeasuredNode(
            root / str(number),
            {
                "process.roles": "broker,controller",
                "node.id": number + 1,
                "controller.listener.names": "CONTROLLER",
                "listeners": f"PLAINTEXT://127.0.0.1:{ports[number]},CONTROLLER://127.0.0.1:{ports[COUNT + number]}",
                "controller.quorum.voters": voters,
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                **patience,
            },
        )
        for number in range(COUNT)
    ]
    with recorded() as recording:
        for node in nodes:
            node.recording = recording
            node.begin()
        try:
            for node in nodes:
                node.until_ready()
            yield MeasuredCluster(nodes)
        finally:
            for node in nodes:
                node.end()
