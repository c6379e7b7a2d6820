"""InitProducerId (key 22): a producer id for an idempotent producer, and with a transactional id also its next epoch.

v3 a producer may send its id and epoch   v4 PRODUCER_FENCED   v6 (unstable) two-phase commit
"""

from __future__ import annotations

from ottla.model.errors import ApiError, ErrorCode
from ottla.model.ids import FIRST_PRODUCER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ProducerIdentity
from ottla.security.acls import AclOperation
from ottla.server.api.context import Context
from ottla.server.api.dispatch import handles
from ottla.server.api.needs import Needs, on_cluster, on_topic, on_transaction
from ottla.server.loop.later import Answer
from ottla.txns.commands.init_producer import InitProducer
from ottla.wire.messages.txns.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_NONE = -1
# Older clients do not know the error PRODUCER_FENCED.
_FIRST_VERSION_OF_FENCED = 4


@handles(
    InitProducerIdRequest,
    needs=Needs(
        guard="init_producer_id",
        asks=(
            on_transaction(AclOperation.WRITE),
            on_transaction(AclOperation.TWO_PHASE_COMMIT),
            on_cluster(AclOperation.IDEMPOTENT_WRITE),
            on_topic(AclOperation.WRITE),
        ),
    ),
)
def init_producer_id(request: InitProducerIdRequest, context: Context) -> Answer[InitProducerIdResponse]:
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        return _refuse(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        # Without a transactional id there is no fencing: a new id is as good as the old one with a higher epoch.
        return context.member.producer_ids.ready().map(lambda problem: _next(problem, context)).soonest()
    if request.transactional_id == "":
        return _refuse(ErrorCode.INVALID_REQUEST)
    expected = (
        ProducerIdentity(request.producer_id, request.producer_epoch) if request.producer_id != NO_PRODUCER_ID else None
    )
    command = InitProducer(request.transactional_id, request.transaction_timeout_ms, expected)
    knows_fenced = context.request_version >= _FIRST_VERSION_OF_FENCED

    def refuse(error: ApiError) -> InitProducerIdResponse:
        if error.code == ErrorCode.PRODUCER_FENCED and not knows_fenced:
            return _refuse(ErrorCode.INVALID_PRODUCER_EPOCH)
        return _refuse(error.code)

    return context.transactions.ask_with_ids(request.transactional_id, command, _respond, refuse)


def _next(problem: ApiError | None, context: Context) -> InitProducerIdResponse:
    if problem is not None:  # a new block of ids could not be allocated
        return _refuse(problem.code)
    try:
        return _respond(ProducerIdentity(context.member.producer_ids.next_producer_id(), FIRST_PRODUCER_EPOCH))
    except ApiError as error:  # other requests took the ids meanwhile
        return _refuse(error.code)


def _respond(producer: ProducerIdentity) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=ErrorCode.NONE, producer_id=producer.producer_id, producer_epoch=producer.epoch
    )


def _refuse(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
