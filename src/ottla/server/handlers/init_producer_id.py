"""InitProducerId (key 22): a producer id for an idempotent producer.

v3 a producer may bring its id and epoch   v4 PRODUCER_FENCED   v6 (unstable) two-phase commit
"""

from __future__ import annotations

from ottla.model.errors import ApiError, ErrorCode
from ottla.server.context import Context
from ottla.server.dispatch import handles
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

_NONE = -1


@handles(InitProducerIdRequest)
def init_producer_id(request: InitProducerIdRequest, context: Context) -> InitProducerIdResponse:
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        return _refuse(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is None:
        # Without a transactional id nobody can be fenced: a new id is as good as the old one with a higher epoch.
        try:
            producer_id = context.metadata.next_producer_id()
        except ApiError as error:  # a new block of ids could not be written
            return _refuse(error.code)
        return InitProducerIdResponse(error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0)
    if request.transactional_id == "":
        return _refuse(ErrorCode.INVALID_REQUEST)
    return _refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _refuse(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=_NONE, producer_epoch=_NONE)
