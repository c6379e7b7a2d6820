"""Layout: which broker holds which replicas while a plan is made, updated move by move, and the rules that every move
keeps.

Rules that no goal may break:
- Never two replicas of a partition on one broker; never fewer or more replicas than before.
- Never fewer racks for a partition than it has now.
- No new replica for a broker that takes none, nor beyond `FULL` of its disk.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ottla.cluster.balance.loads import BrokerLoad, PartitionLoad
from ottla.model.ids import TopicPartition

FULL = 0.9


class Layout:
    def __init__(self, brokers: Iterable[BrokerLoad], partitions: Sequence[PartitionLoad]) -> None:
        self.brokers = {each.id: each for each in sorted(brokers)}
        self.partitions = {each.at: each for each in sorted(partitions)}
        self.replicas = {each.at: each.replicas for each in self.partitions.values()}
        self._rack_of: dict[int, str | int] = {
            each.id: each.id if each.rack is None else each.rack for each in self.brokers.values()
        }
        self.takers = [each.id for each in self.brokers.values() if each.takes]
        self.held: dict[int, dict[TopicPartition, None]] = {each: {} for each in self.brokers}
        self.size_bytes: dict[int, int] = dict.fromkeys(self.brokers, 0)
        for partition in self.partitions.values():
            for broker in partition.replicas:
                self.held.setdefault(broker, {})[partition.at] = None
                self.size_bytes[broker] = self.size_bytes.get(broker, 0) + partition.size_bytes

    def count(self, broker: int) -> int:
        return len(self.held[broker])

    def capacity(self, broker: int) -> float:
        return self.brokers[broker].capacity

    def may_replace(self, at: TopicPartition, old: int, new: int) -> bool:
        """Whether replica `old` of a partition may live on `new` instead."""
        replicas = self.replicas[at]
        if old not in replicas or new in replicas or not self.brokers[new].takes:
            return False
        return not self._loses_rack(replicas, old, new) and self.has_room(new, self.partitions[at].size_bytes)

    def _loses_rack(self, replicas: tuple[int, ...], old: int, new: int) -> bool:
        rack_of = self._rack_of
        leaves, enters = rack_of.get(old, old), rack_of[new]
        if leaves == enters:
            return False
        enters_new = True  # the move enters a rack that held no replica, which makes up for the rack it may leave
        for each in replicas:
            rack = rack_of.get(each, each)
            if rack == leaves and each != old:
                return False
            if rack == enters:
                enters_new = False
        return not enters_new

    def has_room(self, broker: int, size_bytes: int) -> bool:
        disk_bytes = self.brokers[broker].disk_bytes
        return disk_bytes is None or self.size_bytes[broker] + size_bytes <= FULL * disk_bytes

    def racks(self, replicas: Iterable[int]) -> int:
        """How many racks these brokers are in; a broker without a rack is in one of its own."""
        return len({self._rack_of.get(broker, broker) for broker in replicas})

    def relief(self, old: int, new: int) -> float:
        """Return how much more even the replica counts get (sum of squares, by capacity) if one replica moves from
        `old` to `new`; negative if less even.
        """
        return (2 * self.count(old) - 1) / self.capacity(old) - (2 * self.count(new) + 1) / self.capacity(new)

    def ideal_shift(self, full: int, empty: int) -> float:
        """Return how many bytes would have to move from `full` to `empty` for both to be equally full, by capacity."""
        gap = self.size_bytes[full] / self.capacity(full) - self.size_bytes[empty] / self.capacity(empty)
        return gap / (1 / self.capacity(full) + 1 / self.capacity(empty))

    def replace(self, at: TopicPartition, old: int, new: int) -> None:
        """Move a replica from `old` to `new`; the order of the partition's replicas stays."""
        self.replicas[at] = tuple(new if each == old else each for each in self.replicas[at])
        size_bytes = self.partitions[at].size_bytes
        del self.held[old][at]
        self.held[new][at] = None
        self.size_bytes[old] -= size_bytes
        self.size_bytes[new] += size_bytes

    def prefer(self, at: TopicPartition, leader: int) -> None:
        """Make another replica the preferred leader: it swaps places with the present one."""
        replicas = list(self.replicas[at])
        position = replicas.index(leader)
        replicas[0], replicas[position] = replicas[position], replicas[0]
        self.replicas[at] = tuple(replicas)
