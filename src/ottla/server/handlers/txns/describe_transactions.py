"""DescribeTransactions (key 65): the state of transactional ids that this node coordinates."""

from __future__ import annotations

from ottla.model import limits
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import ProducerEpoch, ProducerId
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import CheckedItems, Needs, Seen, on_topic, on_transaction
from ottla.server.api.portions import Portions
from ottla.server.loop.later import Answer, Later, gather, settled
from ottla.txns.commands.describe import Describe
from ottla.txns.transaction import TransactionMetadata
from ottla.wire.messages.txns.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse

Described = DescribeTransactionsResponse.TransactionState


@handles(
    DescribeTransactionsRequest,
    needs=Needs(
        items=CheckedItems(
            on_transaction(AclOperation.DESCRIBE, ""),
            "transactional_ids",
            "transaction_states:transactional_id",
            order="place",
        ),
        sees=(Seen(on_topic(AclOperation.DESCRIBE, "topic"), "transaction_states.topics"),),
    ),
    portions=Portions("transactional_ids", "transaction_states", limits.GROUPS_PER_SLICE),
)
def describe_transactions(
    request: DescribeTransactionsRequest, context: Context
) -> Answer[DescribeTransactionsResponse]:
    found = [_describe(id, context) for id in request.transactional_ids]
    return gather(found).map(lambda states: DescribeTransactionsResponse(transaction_states=list(states)))


def _describe(transactional_id: str, context: Context) -> Later[Described]:
    def respond(reply: TransactionMetadata | ApiError) -> Described:
        return _refusal(transactional_id, reply.code) if isinstance(reply, ApiError) else _described(reply)

    if not transactional_id:
        return settled(_refusal(transactional_id, ErrorCode.INVALID_REQUEST))
    return context.transactions.submit(transactional_id, Describe(transactional_id)).map(respond)


def _described(transaction: TransactionMetadata) -> Described:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in transaction.partitions:
        by_topic.setdefault(topic, []).append(partition)
    return Described(
        error_code=ErrorCode.NONE,
        transactional_id=transaction.transactional_id,
        transaction_state=transaction.state.text,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        topics=[Described.TopicData(topic=topic, partitions=partitions) for topic, partitions in by_topic.items()],
    )


def _refusal(transactional_id: str, code: ErrorCode) -> Described:
    return Described(
        error_code=code,
        transactional_id=transactional_id,
        transaction_state="",
        transaction_timeout_ms=0,
        transaction_start_time_ms=0,
        producer_id=ProducerId(0),
        producer_epoch=ProducerEpoch(0),
        topics=[],
    )
