"""Transactions that one process opened and another one ends: two-phase commit over Kafka's own requests.

A producer delivers everything and hands its transaction over (`Producer.hand_over`). Any process that has the
`OpenTransaction` can end it, any number of times.

Rules:
- The coordinator decides: it knows which transaction the producer id and the epoch belong to. A repeated end gets the
  same answer as the first. The end of a transaction that ended otherwise (it timed out, or another producer took the
  id) is refused, and changes nothing.
- A refusal does not tell how the transaction ended: its records do (`is_committed`).
"""

from ottla.client.cluster import Cluster
from ottla.client.consumer.ranges import RangeReader, ReadOptions, Span
from ottla.client.coordinator import Coordinator, CoordinatorKind
from ottla.client.errors import ClientError, check, error_code
from ottla.client.producer.transaction import IMPLICIT_SINCE, OpenTransaction, joins_by_writing
from ottla.model.errors import ErrorCode
from ottla.model.ids import TopicPartition
from ottla.wire.messages.txns.describe_transactions import DescribeTransactionsRequest
from ottla.wire.messages.txns.end_txn import EndTxnRequest

# No transaction of this producer id and epoch can be ended in this way (any more).
REFUSED = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
)
_OPEN = "Ongoing"


async def end(cluster: Cluster, transaction: OpenTransaction, *, committed: bool) -> bool:
    """Commit or abort; return False if the coordinator refuses, because the transaction ended otherwise."""
    request = EndTxnRequest(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        committed=committed,
    )
    coordinator = Coordinator(cluster, transaction.transactional_id, CoordinatorKind.TRANSACTION, shared=True)
    answer = await coordinator.call(
        request,
        error_of=lambda each: each.error_code,
        at_most=None if transaction.implicit else IMPLICIT_SINCE[EndTxnRequest] - 1,
    )
    code = error_code(answer.error_code)
    if code in REFUSED:
        return False
    check(code, f"the end of the transaction of {transaction.transactional_id!r}: {code.message}")
    return True


async def find_open(cluster: Cluster, transactional_id: str) -> OpenTransaction | None:
    """Return the open transaction of this id, or None."""
    coordinator = Coordinator(cluster, transactional_id, CoordinatorKind.TRANSACTION, shared=True)
    answer = await coordinator.call(
        DescribeTransactionsRequest(transactional_ids=[transactional_id]),
        error_of=lambda each: each.transaction_states[0].error_code,
    )
    implicit = joins_by_writing(await coordinator.connection())
    (found,) = answer.transaction_states
    if found.error_code or found.transaction_state != _OPEN:
        return None
    return OpenTransaction(transactional_id, found.producer_id, found.producer_epoch, implicit)


class OutcomeUnknown(ClientError):
    """The outcome of a transaction cannot be found out any more: its record is gone."""


async def is_committed(cluster: Cluster, partition: TopicPartition, offset: int) -> bool:
    """Return whether a record of an ended transaction is visible. Waits until that is decided, which other
    transactions in the same partition may delay. Raises OffsetOutOfRange if retention has removed the record,
    OutcomeUnknown if compaction has, or if the broker never returned its offset.
    """
    if await _is_there(cluster, partition, offset, read_committed=True):
        return True
    if await _is_there(cluster, partition, offset, read_committed=False):
        return False
    raise OutcomeUnknown(f"there is no record at offset {offset} of {partition} any more")


async def _is_there(cluster: Cluster, partition: TopicPartition, offset: int, *, read_committed: bool) -> bool:
    if offset < 0:
        return False
    span = Span(partition.topic, partition.partition, offset, offset + 1)
    async with RangeReader(cluster, [span], ReadOptions(read_committed=read_committed)) as reader:
        return bool([record async for record in reader])
