"""AddPartitionsToTxn (key 24): partitions join a producer's transaction, or a leader asks whether they have.

v2 PRODUCER_FENCED   v4 many transactions at once, from brokers only (KIP-890)   v5 TRANSACTION_ABORTABLE
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.server.answer import Answer, Later, gather
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.server.portions import Portions
from ottla.server.transactional import submit_patiently
from ottla.txns.commands.add_partitions import AddPartitions, VerifyPartitions
from ottla.txns.transaction import EPOCH_BUMPS_SINCE
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    PartitionResult,
    Topic,
    TopicResult,
)

Transaction = AddPartitionsToTxnRequest.Transaction
TransactionResult = AddPartitionsToTxnResponse.Result
Outcome = Callable[[TopicPartition], ErrorCode]

_FIRST_VERSION_OF_FENCED = 2
_FIRST_VERSION_OF_BROKERS = 4


@handles(AddPartitionsToTxnRequest, portions=Portions("transactions", "results_by_transaction", limits.ITEMS_PER_SLICE))
def add_partitions_to_txn(request: AddPartitionsToTxnRequest, context: Context) -> Answer[AddPartitionsToTxnResponse]:
    version = context.request_version
    if version >= _FIRST_VERSION_OF_BROKERS:
        results = [_one(each, context, EPOCH_BUMPS_SINCE) for each in request.transactions]
        return gather(results).map(_of_many)
    only = Transaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )

    def respond(result: TransactionResult) -> AddPartitionsToTxnResponse:
        if version < _FIRST_VERSION_OF_FENCED:
            _without_fenced(result)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)

    later = _one(only, context, 0).map(respond)
    return later.taken() if later.done else later


def _of_many(results: Sequence[TransactionResult]) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(error_code=ErrorCode.NONE, results_by_transaction=list(results))


def _one(transaction: Transaction, context: Context, client_version: int) -> Later[TransactionResult]:
    id, topics = transaction.transactional_id, transaction.topics
    wanted = tuple(TopicPartition(topic.name, index) for topic in topics for index in topic.partitions)
    known = context.metadata.state.topics
    missing = {
        each
        for each in wanted
        if each.topic not in known or not 0 <= each.partition < len(known[each.topic].partitions)
    }
    refused: Later[TransactionResult] = Later()
    if missing:
        refused.set(
            _result(
                id,
                topics,
                lambda each: (
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if each in missing else ErrorCode.OPERATION_NOT_ATTEMPTED
                ),
            )
        )
        return refused
    if not id:
        refused.set(_result(id, topics, lambda _: ErrorCode.INVALID_REQUEST))
        return refused
    producer_id, epoch = transaction.producer_id, transaction.producer_epoch
    command: AddPartitions | VerifyPartitions
    if transaction.verify_only:
        command = VerifyPartitions(id, producer_id, epoch, wanted)
    else:
        command = AddPartitions(id, producer_id, epoch, wanted, client_version)

    def respond(reply: ApiError | list[TopicPartition] | None) -> TransactionResult:
        if isinstance(reply, ApiError):
            code = reply.code
            return _result(id, topics, lambda _: code)
        outside = frozenset(reply or ())
        return _result(id, topics, lambda each: ErrorCode.TRANSACTION_ABORTABLE if each in outside else ErrorCode.NONE)

    if client_version:
        return context.services.txns.submit(id, command).map(respond)  # a broker asks, which is patient itself
    return submit_patiently(context, id, command).map(respond)


def _result(transactional_id: str, topics: list[Topic], outcome: Outcome) -> TransactionResult:
    return TransactionResult(
        transactional_id=transactional_id,
        topic_results=[
            TopicResult(
                name=topic.name,
                results_by_partition=[
                    PartitionResult(
                        partition_index=index, partition_error_code=outcome(TopicPartition(topic.name, index))
                    )
                    for index in topic.partitions
                ],
            )
            for topic in topics
        ],
    )


def _without_fenced(result: TransactionResult) -> None:
    """For clients that do not know PRODUCER_FENCED yet."""
    for topic in result.topic_results:
        for partition in topic.results_by_partition:
            if partition.partition_error_code == ErrorCode.PRODUCER_FENCED:
                partition.partition_error_code = ErrorCode.INVALID_PRODUCER_EPOCH
