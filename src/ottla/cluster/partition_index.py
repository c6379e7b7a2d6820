"""Index: the partitions by broker in their ISR and ELR, those without a leader, with a leader that is not preferred,
and those being reassigned.

The cost of fencing a broker must depend on the partitions it holds, not on all partitions of the cluster, so these sets
are updated with every change of a partition. They are bit sets: a map from a block of a topic's partitions to an int
whose bits say which partitions of the block are in the set. A partition then costs bits, not objects, and copying a set
for a new active controller is copying one dict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ottla.cluster.entities import NO_LEADER, PartitionState
from ottla.model.ids import FIRST_LEADER_EPOCH, FIRST_PARTITION_EPOCH

# Partitions per block: setting a bit copies the block's int, which has some hundred bytes at most.
_BLOCK_BITS = 10
_MASK = (1 << _BLOCK_BITS) - 1
_ID_BYTES = 16


class PartitionSet:
    """A set of (topic id, partition). Iterates in the order in which blocks were added, then by partition."""

    __slots__ = ("_blocks",)

    def __init__(self, blocks: dict[bytes, int] | None = None) -> None:
        self._blocks = blocks if blocks is not None else {}

    def add(self, topic_id: bytes, partition: int) -> None:
        key = topic_id if partition <= _MASK else topic_id + (partition >> _BLOCK_BITS).to_bytes(4, "big")
        self._blocks[key] = self._blocks.get(key, 0) | (1 << (partition & _MASK))

    def add_block(self, topic_id: bytes, block: int, bits: int) -> None:
        """Add the partitions of a topic from `block << _BLOCK_BITS` on whose bits are set."""
        key = topic_id + block.to_bytes(4, "big") if block else topic_id
        self._blocks[key] = self._blocks.get(key, 0) | bits

    def discard(self, topic_id: bytes, partition: int) -> None:
        key = topic_id if partition <= _MASK else topic_id + (partition >> _BLOCK_BITS).to_bytes(4, "big")
        left = self._blocks.get(key, 0) & ~(1 << (partition & _MASK))
        if left:
            self._blocks[key] = left
        else:
            self._blocks.pop(key, None)

    def discard_topic(self, topic_id: bytes, partitions: int) -> None:
        """Remove all partitions of a topic, which has at most this many."""
        self._blocks.pop(topic_id, None)
        for block in range(1, (partitions >> _BLOCK_BITS) + 1):
            self._blocks.pop(topic_id + block.to_bytes(4, "big"), None)

    def copy(self) -> PartitionSet:
        return PartitionSet(self._blocks.copy())

    def __iter__(self) -> Iterator[tuple[bytes, int]]:
        for key, bits in self._blocks.items():
            first = int.from_bytes(key[_ID_BYTES:], "big") << _BLOCK_BITS
            while bits:
                low = bits & -bits
                yield key[:_ID_BYTES], first + low.bit_length() - 1
                bits ^= low

    def __len__(self) -> int:
        return sum(bits.bit_count() for bits in self._blocks.values())

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def __eq__(self, other: object) -> bool:
        return self._blocks == other._blocks if isinstance(other, PartitionSet) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"PartitionSet({list(self)})"


class Index:
    """Sets of partitions by what their state says. `move` keeps it up to date."""

    __slots__ = ("by_elr", "by_isr", "leaderless", "moving", "unpreferred")

    def __init__(self) -> None:
        self.by_isr: dict[int, PartitionSet] = {}
        self.by_elr: dict[int, PartitionSet] = {}
        self.leaderless = PartitionSet()
        self.unpreferred = PartitionSet()  # the leader is not the first replica
        self.moving = PartitionSet()  # being reassigned

    def copy(self) -> Index:
        new = Index()
        new.by_isr = {broker: held.copy() for broker, held in self.by_isr.items()}
        new.by_elr = {broker: held.copy() for broker, held in self.by_elr.items()}
        new.leaderless = self.leaderless.copy()
        new.unpreferred = self.unpreferred.copy()
        new.moving = self.moving.copy()
        return new

    def move(self, topic_id: bytes, old: PartitionState | None, new: PartitionState | None) -> None:
        """Update the sets: a partition was added (no `old`), changed, or removed (no `new`)."""
        was, now = old or _NOWHERE, new or _NOWHERE
        partition = (new or was).index
        if was.isr is not now.isr:
            _move(self.by_isr, topic_id, partition, was.isr, now.isr)
        if was.elr is not now.elr:
            _move(self.by_elr, topic_id, partition, was.elr, now.elr)
        if was.leader != now.leader:
            _set(self.leaderless, topic_id, partition, was.leader == NO_LEADER, now.leader == NO_LEADER)
        if was.leader != now.leader or was.replicas is not now.replicas:
            _set(self.unpreferred, topic_id, partition, _unpreferred(was), _unpreferred(now))
        if was.adding is not now.adding or was.removing is not now.removing:
            _set(self.moving, topic_id, partition, was.moving, now.moving)

    def add_all(self, topic_id: bytes, new: Iterable[PartitionState]) -> None:
        """`move` for many new partitions. Nearly all are led by their first replica and not being reassigned."""
        blocks: dict[tuple[tuple[int, ...], int], int] = {}
        for state in new:
            index, replicas, isr, leader, _, _, _, removing, adding, _, elr, _ = state
            if not replicas or leader != replicas[0] or removing or adding or elr:
                self.move(topic_id, None, state)
            else:
                key = isr, index >> _BLOCK_BITS
                blocks[key] = blocks.get(key, 0) | 1 << (index & _MASK)
        for (isr, block), bits in blocks.items():
            for broker in isr:
                held = self.by_isr.get(broker)
                if held is None:
                    held = self.by_isr[broker] = PartitionSet()
                held.add_block(topic_id, block, bits)

    def remove_topic(self, topic_id: bytes, partitions: int) -> None:
        """`move` for all partitions of a topic that was deleted."""
        for held in (self.leaderless, self.unpreferred, self.moving):
            held.discard_topic(topic_id, partitions)
        for by_broker in (self.by_isr, self.by_elr):
            for broker, held in tuple(by_broker.items()):
                held.discard_topic(topic_id, partitions)
                if not held:
                    del by_broker[broker]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Index):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # it changes


# The state of a partition before it is added and after it is removed: in none of the sets.
_NOWHERE = PartitionState(
    index=0, replicas=(), isr=(), leader=-2, leader_epoch=FIRST_LEADER_EPOCH, partition_epoch=FIRST_PARTITION_EPOCH
)


def _set(held: PartitionSet, topic_id: bytes, partition: int, was: bool, now: bool) -> None:
    if now and not was:
        held.add(topic_id, partition)
    elif was and not now:
        held.discard(topic_id, partition)


def _unpreferred(partition: PartitionState) -> bool:
    return partition.leader >= 0 and partition.replicas[:1] != (partition.leader,)


def _move(
    held: dict[int, PartitionSet], topic_id: bytes, partition: int, before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    for broker in before:
        if broker not in after:
            held[broker].discard(topic_id, partition)
            if not held[broker]:
                del held[broker]
    for broker in after:
        if broker not in before:
            found = held.get(broker)
            if found is None:
                found = held[broker] = PartitionSet()
            found.add(topic_id, partition)
