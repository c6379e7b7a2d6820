"""The balancer's input (loads of brokers and partitions) and output (a plan of moves)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.model.ids import TopicPartition


class BrokerLoad(NamedTuple):
    """A broker. `capacity` is its share relative to the others; `disk_bytes` is what its disks have for the log, if
    known.

    A broker that is not `alive` gets no new replicas and keeps those it has: it may be back soon. A broker that is
    `draining` shall end up with no replicas.
    """

    id: int
    rack: str | None = None
    capacity: float = 1.0
    disk_bytes: int | None = None
    alive: bool = True
    draining: bool = False

    @property
    def takes(self) -> bool:
        """Whether replicas may be moved to it."""
        return self.alive and not self.draining


class PartitionLoad(NamedTuple):
    """A partition: its replicas, the preferred leader first; its size, and the bytes per second
    that clients write to it and read from its leader."""

    at: TopicPartition
    replicas: tuple[int, ...]
    size_bytes: int = 0
    rate: float = 0.0


class ReplicaMove(NamedTuple):
    """New replicas of a partition, or the same replicas in another order (then nothing is copied)."""

    at: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]
    size_bytes: int

    @property
    def adding(self) -> tuple[int, ...]:
        return tuple(each for each in self.after if each not in self.before)

    @property
    def copied_bytes(self) -> int:
        """How many bytes have to be copied over the network."""
        return self.size_bytes * len(self.adding)


class LoadTotals(NamedTuple):
    """The load of one broker."""

    leaders: int
    replicas: int
    size_bytes: int
    rate: float  # bytes per second that clients write to and read from the partitions it is the preferred leader of


class BalancePlan(NamedTuple):
    """The moves, sorted by partition; the load of each broker before and after; and what could not be done, in
    words.
    """

    moves: tuple[ReplicaMove, ...]
    before: Mapping[int, LoadTotals]
    after: Mapping[int, LoadTotals]
    problems: tuple[str, ...]

    @property
    def copied_bytes(self) -> int:
        return sum(each.copied_bytes for each in self.moves)


def totals(
    brokers: Iterable[int], partitions: Iterable[PartitionLoad], replicas: Mapping[TopicPartition, tuple[int, ...]]
) -> dict[int, LoadTotals]:
    """Return the load of each broker if the partitions have these replicas."""
    found = {each: [0, 0, 0, 0.0] for each in sorted(brokers)}
    for partition in partitions:
        for position, broker in enumerate(replicas[partition.at]):
            row = found.setdefault(broker, [0, 0, 0, 0.0])
            row[1] += 1
            row[2] += partition.size_bytes
            if position == 0:
                row[0] += 1
                row[3] += partition.rate
    return {each: LoadTotals(int(row[0]), int(row[1]), int(row[2]), row[3]) for each, row in found.items()}
