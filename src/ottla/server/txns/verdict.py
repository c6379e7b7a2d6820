"""Verdict: which transactional batches of a produce may be appended, according to the transaction coordinator.

Every produce has one; only those with a transactional id ask the coordinator (`server/txns/gate.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import BatchHeader
from ottla.replica.partition import Partition

# Refusals after which the client sends the same batch again.
_RETRIABLE = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CONCURRENT_TRANSACTIONS)


class TransactionalBatch(NamedTuple):
    """A batch that wants to join a transaction. `partition` is None if it is not led here: then the append refuses the
    batch.
    """

    header: BatchHeader
    partition: Partition | None


class Verdict:
    """`refusals` are by partition; `refuses_all` is for all transactional batches; `added` are the partitions that this
    produce added to the transaction.
    """

    __slots__ = ("_added", "_refusals", "_refuses_all")

    def __init__(
        self,
        refusals: Mapping[TopicPartition, ApiError] | None = None,
        refuses_all: ApiError | None = None,
        added: Sequence[TopicPartition] = (),
    ) -> None:
        self._refusals = refusals or {}
        self._refuses_all = refuses_all
        self._added = added

    def check(self, partition: Partition, header: BatchHeader) -> None:
        """Raise ApiError if a transactional batch may not be appended to the partition.

        If the partition is not led here (any more), raise NOT_LEADER_OR_FOLLOWER first, so that the client asks the
        leader.
        """
        partition.require_leader()
        refusal = self._refuses_all or self._refusals.get(TopicPartition(partition.topic, partition.index))
        if refusal is not None:
            if refusal.code in _RETRIABLE:
                partition.log.producers.note_refusal(header)
            raise refusal

    def check_first(self, partition: Partition, header: BatchHeader) -> None:
        """Raise ApiError if the batch must be the producer's first one in the partition, and is not."""
        if self._added and (partition.topic, partition.index) in self._added:
            partition.log.producers.check_first(header, partition.log.next_offset)


# A produce without a transactional id may not write to a transaction.
WITHOUT_ID = Verdict(refuses_all=ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
