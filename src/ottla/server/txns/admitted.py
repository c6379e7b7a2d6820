"""Which batches of a produce may be written: those of transactions only if the coordinator says so.

Every produce needs this; asking the coordinator (`server/txns/admission.py`) only those of transactions do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.records.batch import BatchHeader
from ottla.replica.partition import Partition

FIRST_VERSION_BY_ID = 13
# Refusals after which the client sends the same batch again.
_COMES_AGAIN = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CONCURRENT_TRANSACTIONS)


class Admitted:
    """What the coordinator said."""

    __slots__ = ("_everyone", "_new", "_refusals")

    def __init__(
        self,
        refusals: Mapping[TopicPartition, ApiError] | None = None,
        everyone: ApiError | None = None,
        new: Sequence[TopicPartition] = (),
    ) -> None:
        self._refusals = refusals or {}
        self._everyone = everyone
        self._new = new  # partitions that were added for this produce

    def check(self, partition: Partition, header: BatchHeader) -> None:
        """Raises ApiError if a transactional batch may not be written to the partition.

        Another leader, of before or since the coordinator was asked, comes first: with that a client just goes there.
        """
        partition.require_leader()
        refusal = self._everyone or self._refusals.get(TopicPartition(partition.topic, partition.index))
        if refusal is not None:
            if refusal.code in _COMES_AGAIN:
                partition.log.producers.turned_away(header)
            raise refusal

    def check_first(self, partition: Partition, header: BatchHeader) -> None:
        """Raises ApiError if it is not the producer's first where it must be."""
        if self._new and (partition.topic, partition.index) in self._new:
            partition.log.producers.check_first(header, partition.log.next_offset)


# Without a transactional id nobody may write to a transaction.
WITHOUT_ID = Admitted(everyone=ApiError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
