"""EndTxn (key 26): commit or abort a transaction; answered when the decision is committed to the journal.

v2 PRODUCER_FENCED   v5 the end of a transaction raises the producer's epoch, which is in the answer (KIP-890)
"""

from __future__ import annotations

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import ProducerIdentity
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_transaction
from ottla.server.loop.later import Answer
from ottla.txns.commands.end import EndTransaction
from ottla.txns.transaction import EPOCH_BUMPS_SINCE
from ottla.wire.messages.txns.end_txn import EndTxnRequest, EndTxnResponse

# Older clients do not know the error PRODUCER_FENCED.
_FIRST_VERSION_OF_FENCED = 2
_FIRST_VERSION_OF_BUMPS = EndTxnResponse.since("producer_epoch")


@handles(EndTxnRequest, needs=Needs((on_transaction(AclOperation.WRITE),)))
def end_txn(request: EndTxnRequest, context: Context) -> Answer[EndTxnResponse]:
    version = context.request_version

    def respond(producer: ProducerIdentity) -> EndTxnResponse:
        return EndTxnResponse(
            error_code=ErrorCode.NONE, producer_id=producer.producer_id, producer_epoch=producer.epoch
        )

    def refuse(error: ApiError) -> EndTxnResponse:
        fenced = error.code == ErrorCode.PRODUCER_FENCED and version < _FIRST_VERSION_OF_FENCED
        return EndTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_EPOCH if fenced else error.code)

    id = request.transactional_id
    if not id:
        return refuse(ApiError(ErrorCode.INVALID_REQUEST))
    command = EndTransaction(
        id,
        request.producer_id,
        request.producer_epoch,
        request.committed,
        EPOCH_BUMPS_SINCE if version >= _FIRST_VERSION_OF_BUMPS else 0,
    )
    return context.transactions.ask_with_ids(id, command, respond, refuse)
