"""TransactionMetadata: the coordinator's state of one transactional id, and its record in the journal.

Rules:
- An epoch is never used twice for one producer id, and never decreases. Clients never get the last epoch (32767), so
  that the coordinator can always fence.
- The record holds everything but `last_epoch`: as in Kafka, a repeated InitProducerId is recognised only while the
  coordinator runs.
- What a coordinator decides is asserted (`to`), but not what it reads: a Kafka whose append timed out may have written
  a decision that it took back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.machine.keyed import Entry
from ottla.model.ids import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerEpoch, ProducerId, TopicPartition
from ottla.model.limits import INT16_MAX
from ottla.txns.states import AT_REST, NEXT, TxnState
from ottla.wire.journal.transaction_state import TransactionLogKey, TransactionLogValue

NO_TIME = -1
# Transaction versions (KIP-890): from the second on, every transaction ends with a higher epoch.
EPOCH_BUMPS_SINCE = 2
_FLEXIBLE_SINCE = 1


class TransactionMetadata(NamedTuple):
    transactional_id: str
    producer_id: ProducerId
    epoch: ProducerEpoch
    timeout_ms: int
    state: TxnState = TxnState.EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    started_ms: int = NO_TIME
    updated_ms: int = NO_TIME
    previous_producer_id: ProducerId = NO_PRODUCER_ID  # the id before the last change
    # The producer's id after the markers are written, if its epochs are used up.
    next_producer_id: ProducerId = NO_PRODUCER_ID
    client_version: int = 0  # the transaction version of the client's last request
    # the epoch before the last bump, if the producer may repeat its request with it
    last_epoch: ProducerEpoch = NO_PRODUCER_EPOCH

    @property
    def bumps_epochs(self) -> bool:
        return self.client_version >= EPOCH_BUMPS_SINCE

    @property
    def exhausted(self) -> bool:
        return is_exhausted(self.epoch)

    def to(self, state: TxnState, now_ms: int, **changes: Any) -> TransactionMetadata:
        """Return the next state; the present id becomes the previous one."""
        after = self._replace(state=state, updated_ms=now_ms, previous_producer_id=self.producer_id, **changes)
        id = self.transactional_id
        assert state in NEXT[self.state], f"{id}: {self.state.text} → {state.text}"
        assert after.producer_id != self.producer_id or after.epoch >= self.epoch, f"{id}: {self.epoch} → {after.epoch}"
        assert state not in AT_REST or not after.partitions, f"{id}: {state.text}, with partitions"
        return after


def is_exhausted(epoch: int) -> bool:
    """Whether a client that has this epoch cannot get the next one."""
    return epoch >= INT16_MAX - 1


def entry_of(transaction: TransactionMetadata, transaction_version: int) -> Entry:
    """Return the record, in the version for the cluster's finalised transaction version."""
    flexible = transaction_version >= _FLEXIBLE_SINCE
    partitions = None
    if transaction.state != TxnState.EMPTY:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in transaction.partitions:
            by_topic.setdefault(topic, []).append(partition)
        schema = TransactionLogValue.PartitionsSchema
        partitions = [schema(topic=topic, partition_ids=ids) for topic, ids in by_topic.items()]
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id if flexible else NO_PRODUCER_ID,
        next_producer_id=transaction.next_producer_id if flexible else NO_PRODUCER_ID,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version if flexible else 0,
    )
    return Entry(TransactionLogKey(transactional_id=transaction.transactional_id), value, 1 if flexible else 0)


def tombstone(transactional_id: str) -> Entry:
    return Entry(TransactionLogKey(transactional_id=transactional_id), None)


def transaction_of(entry: Entry) -> TransactionMetadata:
    """Return the transaction of a record (the inverse of `entry_of`)."""
    value = entry.value
    assert isinstance(value, TransactionLogValue)
    return TransactionMetadata(
        transactional_id=entry.key.transactional_id,
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=TxnState(value.transaction_status),
        partitions=tuple(
            TopicPartition(topic.topic, index)
            for topic in value.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )
