"""Records of `__transaction_state`: one key per transactional id.

A record's key starts with its type as an int16 (always 0), its value with its version as an int16.
"""

from __future__ import annotations

from ottla.wire.message import Data, Struct, on
from ottla.wire.types import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Int8,
    Int16,
    Int32,
    Int64,
    ProducerEpoch,
    ProducerId,
    String,
)


class TransactionLogKey(Data, key=0, versions="0"):
    """A transactional id."""

    transactional_id: String


class TransactionLogValue(Data, key=0, versions="0-1", flexible="1+"):
    """The producer, state and partitions of a transactional id's current transaction.

    v1   flexible; + previous_producer_id, next_producer_id, next_producer_epoch, client_transaction_version
    """

    producer_id: ProducerId
    previous_producer_id: ProducerId = on("1+", NO_PRODUCER_ID, tag=0)
    next_producer_id: ProducerId = on("1+", NO_PRODUCER_ID, tag=1)
    producer_epoch: ProducerEpoch
    next_producer_epoch: ProducerEpoch = on("1+", NO_PRODUCER_EPOCH, tag=3)
    transaction_timeout_ms: Int32
    transaction_status: Int8

    class PartitionsSchema(Struct):
        topic: String
        partition_ids: list[Int32]

    transaction_partitions: list[PartitionsSchema] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Int16 = on("1+", 0, tag=2)
