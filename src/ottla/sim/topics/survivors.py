"""Survivors: what a power loss left of a node's logs, observed before they can be written again."""

from __future__ import annotations

from ottla.model.ids import TopicPartition
from ottla.server.node import Node
from ottla.sim.cluster import SimMachine
from ottla.sim.topics.check import TopicBook
from ottla.sim.topics.clients import partitions_of
from ottla.sim.topics.plan import TopicsPlan
from ottla.sim.world.disk import Crash
from ottla.sim.world.loop import SimHost


class Survivors:
    """Remembers the recovery points of a node that loses power, and tells the book where its logs end afterwards."""

    def __init__(self, machine: SimMachine, plan: TopicsPlan, book: TopicBook, *, may_lose: bool) -> None:
        """`may_lose`: acknowledged records need not have been synced."""
        self._machine = machine
        self._partitions = partitions_of(plan)
        self._book = book
        self._may_lose = may_lose
        self._before: Node | None = None  # the node that lost power
        self._synced: dict[TopicPartition, int] = {}  # logs that have not been observed again yet

    def crashed(self, kind: Crash) -> None:
        node = self._machine.incarnation
        if kind is not Crash.POWER or node is None:
            return
        if self._may_lose:
            self._book.power_lost()
        opened: dict[TopicPartition, int] = {}
        for partition in node.partitions.opened() if node.composed is not None else ():
            opened[TopicPartition(partition.topic, partition.index)] = partition.log.recovery_point
        for key in self._partitions:
            self._synced[key] = max(self._synced.get(key, 0), opened.get(key, 0))
        self._before = node

    def look(self, host: SimHost) -> None:
        """Observe each step of the node until all logs are seen: a log is opened long before it can be appended to."""
        node = self._machine.incarnation
        if not self._synced or host is not self._machine.host or node is self._before or node is None:
            return
        if not host.alive or node.composed is None:
            return
        opened = {TopicPartition(each.topic, each.index): each.log.next_offset for each in node.partitions.opened()}
        for key, recovery_point in list(self._synced.items()):
            if key in opened or not self._is_there(key):
                del self._synced[key]
                self._book.survived(key, recovery_point, opened.get(key, 0), may_lose=self._may_lose)

    def _is_there(self, partition: TopicPartition) -> bool:
        return any(disk.exists(str(partition)) for disk in self._machine.disks.values())
