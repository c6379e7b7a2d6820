"""OffsetStore: the committed offsets of groups, and those that wait for the end of a transaction.

Rules (Kafka's):
- A transactional commit takes effect with its producer's COMMIT marker, and only if no later commit for the same
  partition exists.
- A tombstone removes an offset, including pending ones.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.model.ids import NO_ID, LeaderEpoch, ProducerId, TopicPartition

NO_EXPIRY = -1


class CommittedOffset(NamedTuple):
    """One committed offset; `order` tells which of two commits came later in the journal."""

    offset: int
    leader_epoch: LeaderEpoch
    metadata: str
    committed_at_ms: int
    expires_at_ms: int = NO_EXPIRY
    topic_id: bytes = NO_ID
    order: int = 0


Of = dict[TopicPartition, CommittedOffset]


class OffsetStore:
    __slots__ = ("_committed", "_order", "_pending", "_producers")

    def __init__(self) -> None:
        self._committed: dict[str, Of] = {}
        self._pending: dict[ProducerId, dict[str, Of]] = {}  # producer id → group → offsets
        self._producers: dict[str, dict[ProducerId, None]] = {}  # group → producers with pending offsets for it
        self._order = 0

    # --- reading

    def of(self, group_id: str) -> Of:
        """Return all offsets of a group, in the order of their first commit."""
        return self._committed.get(group_id, {})

    def groups(self) -> tuple[str, ...]:
        """Return the groups with committed or pending offsets."""
        return (*self._committed, *(group_id for group_id in self._producers if group_id not in self._committed))

    def is_pending(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether a transaction in progress commits an offset for this partition."""
        producers = self._producers.get(group_id)
        return bool(producers) and any(partition in self._pending[id][group_id] for id in producers or ())

    def pending(self, group_id: str) -> list[TopicPartition]:
        """Return the partitions that transactions in progress commit offsets for."""
        found: dict[TopicPartition, None] = {}
        for producer_id in self._producers.get(group_id, ()):
            found.update(dict.fromkeys(self._pending[producer_id][group_id]))
        return list(found)

    @property
    def order(self) -> int:
        """The `order` of the last commit."""
        return self._order

    # --- changing, by `apply` and `note` only

    def next_order(self) -> int:
        """Return the `order` of the next commit."""
        self._order += 1
        return self._order

    def commit(
        self, group_id: str, partition: TopicPartition, committed: CommittedOffset, producer_id: ProducerId
    ) -> None:
        """Store a commit; it is pending if `producer_id` is not negative."""
        if producer_id < 0:
            self._committed.setdefault(group_id, {})[partition] = committed
            return
        self._pending.setdefault(producer_id, {}).setdefault(group_id, {})[partition] = committed
        self._producers.setdefault(group_id, {})[producer_id] = None

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        kept = self._committed.get(group_id)
        if kept is not None and kept.pop(partition, None) is not None and not kept:
            del self._committed[group_id]
        for producer_id in tuple(self._producers.get(group_id, ())):
            pending = self._pending[producer_id][group_id]
            pending.pop(partition, None)
            if not pending:
                self._forget(producer_id, group_id)

    def forget(self, group_id: str) -> None:
        """Forget all offsets of a group, including pending ones."""
        self._committed.pop(group_id, None)
        for producer_id in tuple(self._producers.get(group_id, ())):
            self._forget(producer_id, group_id)

    def end_transaction(self, producer_id: ProducerId, *, commit: bool) -> None:
        for group_id, pending in tuple(self._pending.get(producer_id, {}).items()):
            if commit:
                kept = self._committed.setdefault(group_id, {})
                for partition, committed in pending.items():
                    if partition not in kept or kept[partition].order < committed.order:
                        kept[partition] = committed
            self._forget(producer_id, group_id)

    def _forget(self, producer_id: ProducerId, group_id: str) -> None:
        del self._pending[producer_id][group_id]
        if not self._pending[producer_id]:
            del self._pending[producer_id]
        del self._producers[group_id][producer_id]
        if not self._producers[group_id]:
            del self._producers[group_id]
