"""AddOffsetsToTxn (key 25): add a group's partition of `__consumer_offsets` to a producer's transaction.

v2 PRODUCER_FENCED   v4 TRANSACTION_ABORTABLE. Clients with KIP-890 only send TxnOffsetCommit.
"""

from __future__ import annotations

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import TopicPartition
from ottla.model.names import CONSUMER_OFFSETS_TOPIC
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_group, on_transaction
from ottla.server.loop.later import Answer, Later
from ottla.txns.commands.add_partitions import AddPartitions
from ottla.wire.messages.txns.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

# Older clients do not know the error PRODUCER_FENCED.
_FIRST_VERSION_OF_FENCED = 2


@handles(AddOffsetsToTxnRequest, needs=Needs((on_transaction(AclOperation.WRITE), on_group(AclOperation.READ))))
def add_offsets_to_txn(request: AddOffsetsToTxnRequest, context: Context) -> Answer[AddOffsetsToTxnResponse]:
    knows_fenced = context.request_version >= _FIRST_VERSION_OF_FENCED

    def refuse(error: ApiError) -> AddOffsetsToTxnResponse:
        fenced = error.code == ErrorCode.PRODUCER_FENCED and not knows_fenced
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH if fenced else error.code)

    def respond(value: ApiError | None) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.NONE) if value is None else refuse(value)

    id = request.transactional_id
    if not id:
        return refuse(ApiError(ErrorCode.INVALID_REQUEST))
    groups, transactions = context.groups.coordinators, context.transactions
    outcome: Later[ApiError | None] = Later()

    def ready(error: ApiError | None) -> None:
        try:
            if error is not None:
                raise error
            journal = TopicPartition(CONSUMER_OFFSETS_TOPIC, groups.partition_of(request.group_id))
        except ApiError as refusal:
            outcome.set(refusal)
            return
        command = AddPartitions(id, request.producer_id, request.producer_epoch, (journal,))
        transactions.submit_patiently(id, command).then(outcome.set, outcome.fail)

    groups.ensure_topic().then(ready, outcome.fail)
    return outcome.map(respond).soonest()
