"""AddPartitionsToTxn (key 24): add partitions to a producer's transaction, or verify that they were added.

v2 PRODUCER_FENCED   v4 many transactions at once, from brokers only (KIP-890)   v5 TRANSACTION_ABORTABLE
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from ottla.machine.stepped import in_one_go
from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster, on_topic, on_transaction
from ottla.server.api.portions import Portions, divided, put_together
from ottla.server.loop.later import Answer, Large, Later, Sliced, gather, settled
from ottla.txns.commands.add_partitions import AddPartitions, VerifyPartitions
from ottla.txns.transaction import EPOCH_BUMPS_SINCE
from ottla.wire.messages.txns.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    PartitionResult,
    TopicResult,
)

Transaction = AddPartitionsToTxnRequest.Transaction
TransactionResult = AddPartitionsToTxnResponse.Result
Reply = ApiError | list[TopicPartition] | None  # for verify_only: the partitions that are not in the transaction
Respond = Callable[[Sequence[TransactionResult]], AddPartitionsToTxnResponse]

# Older clients do not know the error PRODUCER_FENCED.
_FIRST_VERSION_OF_FENCED = 2
_FIRST_VERSION_OF_BROKERS = AddPartitionsToTxnRequest.since("transactions")


def _weight(transaction: Transaction) -> int:
    return _ALONE + sum(1 + len(topic.partitions) for topic in transaction.topics)


_AT_ONCE = limits.PARTITIONS_ADDED_PER_SLICE
_ALONE = _AT_ONCE // limits.ITEMS_PER_SLICE  # the weight of a transaction without partitions
# the portions of one transaction
_PORTIONS = Portions("topics.partitions", "topic_results.results_by_partition", _AT_ONCE)


@handles(
    AddPartitionsToTxnRequest,
    needs=Needs(
        guard="add_partitions_to_txn",
        asks=(
            on_cluster(AclOperation.CLUSTER_ACTION),
            on_transaction(AclOperation.WRITE),
            on_topic(AclOperation.WRITE),
        ),
    ),
    portions=Portions("transactions", "results_by_transaction", _AT_ONCE, _weight),
)
def add_partitions_to_txn(request: AddPartitionsToTxnRequest, context: Context) -> Answer[AddPartitionsToTxnResponse]:
    version = context.request_version
    if version >= _FIRST_VERSION_OF_BROKERS:
        return _answer(request.transactions, context, EPOCH_BUMPS_SINCE, _of_many)
    only = Transaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )

    def respond(results: Sequence[TransactionResult]) -> AddPartitionsToTxnResponse:
        (result,) = results
        if version < _FIRST_VERSION_OF_FENCED:
            _without_fenced(result)
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=result.topic_results)

    return _answer([only], context, 0, respond)


def _of_many(results: Sequence[TransactionResult]) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(error_code=ErrorCode.NONE, results_by_transaction=list(results))


def _answer(
    transactions: Sequence[Transaction], context: Context, client_version: int, respond: Respond
) -> Answer[AddPartitionsToTxnResponse]:
    questions = [_Question(each, context, client_version) for each in transactions]
    if sum(map(_weight, transactions)) > _AT_ONCE:
        return Sliced(_in_slices(questions, context, respond), changes=True)

    def results(replies: Sequence[Reply]) -> AddPartitionsToTxnResponse:
        told = [in_one_go(question.result(reply)) for question, reply in zip(questions, replies, strict=True)]
        return respond(told)

    return gather([question.ask(in_one_go(question.partitions())) for question in questions]).map(results).soonest()


async def _in_slices(
    questions: Sequence[_Question], context: Context, respond: Respond
) -> Large[AddPartitionsToTxnResponse]:
    slices = context.runtime.slices
    results = []
    for question in questions:
        await slices.turn()
        wanted = await slices.finish(question.partitions())
        reply = await question.ask(wanted)
        results.append(await slices.finish(question.result(reply)))
    return Large(respond(results))


class _Question:
    """The part of the request about one transaction. It may have very many partitions, so everything is
    done in steps.
    """

    def __init__(self, transaction: Transaction, context: Context, client_version: int) -> None:
        self._transaction = transaction
        self._context = context
        self._client_version = client_version
        self._missing: set[TopicPartition] = set()

    def partitions(self) -> Generator[None, None, tuple[TopicPartition, ...]]:
        known = self._context.member.state.topics
        wanted: list[TopicPartition] = []
        for number, (topics, _) in enumerate(divided(self._transaction.topics, ["partitions"], _PORTIONS)):
            if number:
                yield
            for topic in topics:
                found = known.get(topic.name)
                count = len(found.partitions) if found is not None else 0
                some = [TopicPartition(topic.name, index) for index in topic.partitions]
                wanted += some
                self._missing.update(each for each in some if not 0 <= each.partition < count)
        return tuple(wanted)

    def ask(self, wanted: tuple[TopicPartition, ...]) -> Later[Reply]:
        transaction = self._transaction
        id, producer_id, epoch = transaction.transactional_id, transaction.producer_id, transaction.producer_epoch
        if self._missing or not id:
            return settled(ApiError(ErrorCode.OPERATION_NOT_ATTEMPTED if self._missing else ErrorCode.INVALID_REQUEST))
        if transaction.verify_only:
            return self._submit(VerifyPartitions(id, producer_id, epoch, wanted))
        return self._submit(AddPartitions(id, producer_id, epoch, wanted, self._client_version))

    def _submit(self, command: AddPartitions | VerifyPartitions) -> Later[Reply]:
        transactions = self._context.transactions
        if self._client_version:  # the request is from a broker, which retries by itself
            return transactions.submit(command.transactional_id, command)
        return transactions.submit_patiently(command.transactional_id, command)

    def result(self, reply: Reply) -> Generator[None, None, TransactionResult]:
        code = reply.code if isinstance(reply, ApiError) else ErrorCode.NONE
        others = dict.fromkeys(self._missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not isinstance(reply, ApiError):
            others = dict.fromkeys(reply or (), ErrorCode.TRANSACTION_ABORTABLE)
        results: list[TopicResult] = []
        for number, (topics, _) in enumerate(divided(self._transaction.topics, ["partitions"], _PORTIONS)):
            if number:
                yield
            told = [
                TopicResult(
                    name=topic.name,
                    results_by_partition=[
                        PartitionResult(
                            partition_index=index,
                            partition_error_code=others.get(TopicPartition(topic.name, index), code),
                        )
                        for index in topic.partitions
                    ],
                )
                for topic in topics
            ]
            put_together(results, told, ["results_by_partition"])
        return TransactionResult(transactional_id=self._transaction.transactional_id, topic_results=results)


def _without_fenced(result: TransactionResult) -> None:
    """Replace PRODUCER_FENCED for clients that do not know it yet."""
    for topic in result.topic_results:
        for partition in topic.results_by_partition:
            if partition.partition_error_code == ErrorCode.PRODUCER_FENCED:
                partition.partition_error_code = ErrorCode.INVALID_PRODUCER_EPOCH
